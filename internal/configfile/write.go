package configfile

import (
	"errors"
	"os"
	"path/filepath"
)

// Write writes a file as a whole: it appears at path at once and complete, so that who has another
// one open from there keeps that. What fails leaves nothing.
func Write(path string, content []byte, mode os.FileMode) error {
	part, err := os.CreateTemp(filepath.Dir(path), ".rope-rewrite-*")
	if err != nil {
		return err
	}
	defer os.Remove(part.Name()) // of what failed; else the name is gone
	_, err = part.Write(content)
	if err = errors.Join(err, part.Chmod(mode), part.Sync(), part.Close()); err != nil {
		return err
	}
	return os.Rename(part.Name(), path)
}
