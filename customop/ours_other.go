//go:build !unix

package customop

import (
	"io/fs"
	"os"
)

// temporaryFolders: Windows gives each user one.
func temporaryFolders() []string { return []string{os.TempDir()} }

// ours: in Windows, a user's folders for caches and temporary files are that user's alone.
func ours(fs.FileInfo) error { return nil }
