//go:build unix

package ownfile

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"syscall"
)

// TemporaryFolders are those for temporary files: the one that is set, and the one that systems keep when
// they mount /tmp in their own way.
func TemporaryFolders() []string { return []string{os.TempDir(), "/var/tmp"} }

// Ours says why others than this user and root may change a file or a folder, nil if they may not.
func Ours(info fs.FileInfo) error {
	if owner := info.Sys().(*syscall.Stat_t).Uid; !slices.Contains([]int{0, os.Geteuid()}, int(owner)) {
		return fmt.Errorf("belongs to another user, number %d", owner)
	}
	if info.Mode().Perm()&0o022 != 0 {
		return errors.New("others may write to it")
	}
	return nil
}
