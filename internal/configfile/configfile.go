// Package configfile reads the small files that stand beside models:
// configurations, tokenizers, texts. They come from other people with the model,
// so one may be a pipe that nobody writes to, a link to a device, or larger than
// memory.
package configfile

import (
	"fmt"
	"io"
	"io/fs"
	"os"
	"syscall"
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

// Read returns the contents of a regular file of at most limit bytes; links are
// followed. The error names the file, and wraps fs.ErrNotExist if it is missing.
func Read(path string, limit int64) ([]byte, error) {
	// Opening a device can do something already, so it is asked first what it is.
	// It may be another file by the time it is opened: a pipe must not block then.
	info, err := os.Stat(path)
	if err == nil {
		err = check(path, info, limit)
	}
	if err != nil {
		return nil, err
	}
	file, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	if info, err = file.Stat(); err == nil {
		err = check(path, info, limit)
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

func check(path string, info fs.FileInfo, limit int64) error {
	switch {
	case !info.Mode().IsRegular():
		return fmt.Errorf("%s is not a regular file, so it is not read", path)
	case info.Size() > limit:
		return tooLarge(path, limit)
	}
	return nil
}

func tooLarge(path string, limit int64) error {
	return fmt.Errorf("%s has more than %d MiB, so it is not read", path, limit>>20)
}
