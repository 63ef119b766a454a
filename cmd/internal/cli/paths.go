package cli

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/pflag"

	"github.com/rope-rewrite/rope-rewrite/onnx"
)

// Self is the path of this program, which is also the child process that runs models.
func Self() (string, error) {
	path, err := os.Executable()
	if err != nil {
		return "", fmt.Errorf("models run in a child process, but this program cannot find its own file to start one: %w", err)
	}
	return path, nil
}

// CheckOutput refuses an output that could not be written, before any work.
// onnx.Model.Save refuses what shows only later.
func CheckOutput(output, input string, force bool) error {
	link, err := os.Lstat(output)
	if errors.Is(err, fs.ErrNotExist) {
		folder := filepath.Dir(output)
		if info, err := os.Stat(folder); err != nil || !info.IsDir() {
			return fmt.Errorf("%s is not a folder; make it first or give another name with -o", folder)
		}
		return nil
	}
	if err != nil {
		return err
	}
	if link.IsDir() {
		return fmt.Errorf("%s is a folder; give -o the name of a file", output)
	}
	original, errIn := os.Stat(input)
	target, errOut := os.Stat(output)
	if errIn == nil && errOut == nil && os.SameFile(original, target) {
		return fmt.Errorf("%s is the input, which is never overwritten; give another name with -o", output)
	}
	if errOut == nil && !target.Mode().IsRegular() {
		return fmt.Errorf("%s is not a regular file, and only regular files are replaced; give another name with -o", output)
	}
	if !force {
		return errExists(output)
	}
	return nil
}

func errExists(output string) error {
	return fmt.Errorf("%s exists; give --force to replace it or -o for another name", output)
}

// SameFolder says whether two files are, or would be, in one folder.
func SameFolder(a, b string) bool {
	x, errX := os.Stat(filepath.Dir(a))
	y, errY := os.Stat(filepath.Dir(b))
	return errX == nil && errY == nil && os.SameFile(x, y)
}

// Save writes the model; an interrupt ends it and leaves nothing behind.
func Save(m *onnx.Model, output string, opts onnx.SaveOptions, p *Progress, interrupted func() error) error {
	opts.Progress = func(written, total int64) error {
		p.Say(fmt.Sprintf("writing %d of %d MB", written>>20, total>>20))
		return interrupted()
	}
	err := m.Save(output, opts)
	if errors.Is(err, fs.ErrExist) && exists(output) && !opts.Force {
		return errExists(output)
	}
	return err
}

// IsFolder says whether a path is a folder.
func IsFolder(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.IsDir()
}

// Weights is the flag for how weights come to another folder.
type Weights struct {
	Link bool
}

// Flag adds it to a command.
func (v *Weights) Flag(f *pflag.FlagSet) {
	f.Var(v, "weights", "for an output in another folder, copy or link the weights, as `KIND`: copy (default; shares blocks on disk where the file system can), or link, which takes no space. A change to a linked file changes the original too, and while both exist, Python's onnx reads neither model.")
}

func (v *Weights) String() string {
	if v.Link {
		return "link"
	}
	return ""
}

func (v *Weights) Type() string { return "word" }

func (v *Weights) Set(text string) error {
	word, _, err := choose("weights", text)
	v.Link = err == nil && word.name == "link"
	return err
}

// manyBytes is the size from which on the space of copies is reported.
const manyBytes = 1 << 20

// Placed says how files came to another folder.
func Placed(w *Writer, files []onnx.PlacedFile) {
	names := map[onnx.Placement][]string{}
	bytes := map[onnx.Placement]int64{}
	for _, f := range files {
		names[f.How] = append(names[f.How], f.Path)
		bytes[f.How] += f.Bytes
	}
	if bytes[onnx.Copied] >= manyBytes {
		w.Line("%s", Wrap(fmt.Sprintf("Copied %s of weights and other files (--weights link takes no space).", megabytes(bytes[onnx.Copied])), "  "))
	}
	if bytes[onnx.Cloned] >= manyBytes {
		w.Line("%s", Wrap(fmt.Sprintf("Copied %s; the copies share their blocks on disk with the originals until one is changed.", megabytes(bytes[onnx.Cloned])), "  "))
	}
	if names[onnx.Linked] != nil {
		w.Line("%s", Wrap(fmt.Sprintf("Linked to the original's files: %s. While both models exist, Python's onnx reads neither.", strings.Join(names[onnx.Linked], ", ")), "  "))
	}
}

// megabytes says how large a file is.
func megabytes(bytes int64) string { return fmt.Sprintf("%.1f MB", float64(bytes)/1e6) }
