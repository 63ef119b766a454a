package demo

import (
	"embed"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/rope-rewrite/rope-rewrite/internal/disk"
)

//go:embed llama
var files embed.FS

// Write writes the model's folder. It appears complete or not at all, and nothing is replaced.
func Write(folder string) error {
	if _, err := os.Lstat(folder); err == nil {
		return fmt.Errorf("%s exists; give another name", folder)
	}
	stage, err := os.MkdirTemp(filepath.Dir(filepath.Clean(folder)), ".rope-rewrite-demo-*")
	if err != nil {
		return fmt.Errorf("%s cannot be written: %w", folder, disk.Cause(err))
	}
	err = os.CopyFS(stage, files)
	if err == nil {
		err = os.Rename(filepath.Join(stage, "llama"), folder) // fails where something is by now
	}
	if err != nil {
		err = fmt.Errorf("%s cannot be written: %w", folder, disk.Cause(err))
	}
	return errors.Join(err, os.RemoveAll(stage))
}
