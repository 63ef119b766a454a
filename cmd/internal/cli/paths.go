package cli

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

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
		return fmt.Errorf("%s is the input, which is never changed; give another name with -o", output)
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
