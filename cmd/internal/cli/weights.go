package cli

import (
	"fmt"
	"strings"

	"github.com/spf13/pflag"

	"github.com/rope-rewrite/rope-rewrite/onnx"
)

// Weights is the flag for how weights come to another folder.
type Weights struct {
	Link bool
}

// Flag adds it to a command.
func (v *Weights) Flag(f *pflag.FlagSet) {
	f.Var(v, "weights", "for an output in another folder, bring weights as `KIND`: copy (default; shares blocks on disk where the file system can), or link, which takes no space. A linked file is also the original's; while both exist, Python's onnx reads neither model.")
}

func (v *Weights) String() string {
	if v.Link {
		return "link"
	}
	return ""
}

func (v *Weights) Type() string { return "word" }

func (v *Weights) Set(text string) error {
	word, err := Choose("weights", text)
	v.Link = word == "link"
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
