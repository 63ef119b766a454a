package modelfolder_test

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/rope-rewrite/rope-rewrite/cmd/internal/modelfolder"
)

// On a disk that is full the folder that was there stays, and nothing is left beside it.
func TestFullDisk(t *testing.T) {
	disk := t.TempDir()
	if err := syscall.Mount("tmpfs", disk, "tmpfs", 0, "size=128k"); err != nil {
		t.Skipf("no small disk can be mounted here: %v", err)
	}
	t.Cleanup(func() {
		if err := syscall.Unmount(disk, 0); err != nil {
			t.Error(err)
		}
	})
	write(t, disk, "new/config.json", "old")
	f := prepared(t, "new")
	err := f.Write(context.Background(), filepath.Join(disk, "new"), modelfolder.WriteOptions{Force: true})
	if want := "the disk has no space for " + filepath.Join(disk, "new", "model.onnx") + ", and nothing was changed"; err == nil || !strings.HasPrefix(err.Error(), want) {
		t.Errorf("%v, want %s", err, want)
	}
	entries, failed := os.ReadDir(disk)
	if failed != nil || len(entries) != 1 || read(t, disk, "new/config.json") != "old" {
		t.Errorf("on the disk: %v, %v", entries, failed)
	}
}
