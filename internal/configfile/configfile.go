// Package configfile reads the small files that stand beside models:
// configurations, tokenizers, texts. They come from other people with the model,
// so one may be a pipe that nobody writes to, a link to a device, or larger than
// memory.
package configfile

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/rope-rewrite/rope-rewrite/internal/links"
)

// Limits in bytes, for what is read.
const (
	// Config is for config.json and what else holds parameters. Those of language
	// models have a few kilobytes; classifiers with 20,000 labels about a megabyte.
	Config = 4 << 20
	// Text is for tokenizer.json and documents. Tokenizers of 260,000 tokens have
	// some 33 MB.
	Text = 64 << 20
	// Library is for shared libraries with kernels for several GPUs.
	Library = 1 << 30
)

// Read returns the contents of a regular file of at most limit bytes that the user named, so that links are
// followed. The error names the file, and wraps fs.ErrNotExist if it is missing.
func Read(path string, limit int64) ([]byte, error) {
	file, err := links.Open(path)
	return read(path, file, err, limit)
}

// ReadBeside is Read of a file of a model's folder, which the model's maker chose: a link out of it is an error.
func ReadBeside(path string, limit int64) ([]byte, error) {
	return ReadIn(links.Folder{Path: filepath.Dir(path)}, filepath.Base(path), limit)
}

// ReadIn reads a file by its path from a model's folder. The error wraps links.ErrOut where a link must not be followed.
func ReadIn(folder links.Folder, name string, limit int64) ([]byte, error) {
	file, err := folder.Open(name)
	return read(filepath.Join(folder.Path, name), file, err, limit)
}

func read(path string, file *os.File, err error, limit int64) ([]byte, error) {
	switch {
	case errors.Is(err, links.ErrOut), errors.Is(err, links.ErrNotRegular):
		return nil, fmt.Errorf("%w, so it is not read", err)
	case err != nil:
		return nil, err
	}
	defer file.Close()
	info, err := file.Stat()
	if err == nil && info.Size() > limit {
		err = tooLarge(path, limit)
	}
	if err != nil {
		return nil, err
	}
	data, err := io.ReadAll(io.LimitReader(file, limit+1)) // it may grow meanwhile
	if err == nil && int64(len(data)) > limit {
		err = tooLarge(path, limit)
	}
	return data, err
}

func tooLarge(path string, limit int64) error {
	return fmt.Errorf("%s has more than %d MiB, so it is not read", path, limit>>20)
}
