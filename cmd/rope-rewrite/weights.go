package main

import (
	"fmt"
	"strings"

	"github.com/spf13/pflag"

	"github.com/rope-rewrite/rope-rewrite/onnx"
)

// weights is the flag that says how files of weights come to another folder.
type weights struct {
	link bool
}

func (v *weights) flag(f *pflag.FlagSet) {
	f.Var(v, "weights", "of an output in another folder: `copy` files of weights (where the file system can, blocks on disk are shared until one file is changed), or link them, which takes no space; a linked file is one with the original's, and Python's onnx reads neither model then")
}

func (v *weights) String() string {
	if v.link {
		return "link"
	}
	return ""
}

func (v *weights) Type() string { return "word" }

func (v *weights) Set(text string) error {
	word, err := choose("weights", text)
	v.link = word == "link"
	return err
}

// manyBytes is from where on it is said what copies took and how to save it.
const manyBytes = 1 << 20

// placed says how files came to another folder.
func placed(w *writer, files []onnx.PlacedFile) {
	names := map[onnx.Placement][]string{}
	bytes := map[onnx.Placement]int64{}
	for _, f := range files {
		names[f.How] = append(names[f.How], f.Path)
		bytes[f.How] += f.Bytes
	}
	if bytes[onnx.Copied] >= manyBytes {
		w.line("%s", wrap(fmt.Sprintf("Copied %s of weights and other files (--weights link takes no space).", megabytes(bytes[onnx.Copied])), "  "))
	}
	if bytes[onnx.Cloned] >= manyBytes {
		w.line("%s", wrap(fmt.Sprintf("Copied %s that share their blocks on disk with the original's until one is changed.", megabytes(bytes[onnx.Cloned])), "  "))
	}
	if names[onnx.Linked] != nil {
		w.line("%s", wrap(fmt.Sprintf("Linked %s: the file is one with the original's, and Python's onnx reads neither model as long as it is.", strings.Join(names[onnx.Linked], ", ")), "  "))
	}
}

// megabytes says how large a file is.
func megabytes(bytes int64) string { return fmt.Sprintf("%.1f MB", float64(bytes)/1e6) }
