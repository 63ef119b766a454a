//go:build !unix

package ownfile

import (
	"io/fs"
	"os"
)

// TemporaryFolders: Windows gives each user one.
func TemporaryFolders() []string { return []string{os.TempDir()} }

// Ours: in Windows, a user's folders for caches and temporary files are that user's alone.
func Ours(fs.FileInfo) error { return nil }
