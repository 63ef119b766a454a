package customop

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"os"
	"path/filepath"
	"slices"

	"github.com/rope-rewrite/rope-rewrite/customop/bundled/carry"
	"github.com/rope-rewrite/rope-rewrite/internal/configfile"
)

// bundledFolders is where the op library belongs that is built into this program (package
// customop/bundled): a folder of the user's cache that is named by its checksum. Most programs have none.
func bundledFolders() []string {
	library := carry.Library()
	if library == nil {
		return nil
	}
	cache, err := os.UserCacheDir()
	if err != nil {
		return nil
	}
	sum := sha256.Sum256(library)
	return []string{filepath.Join(cache, "rope-rewrite", hex.EncodeToString(sum[:8]))}
}

// Carries reports whether the op library is built into this program (package customop/bundled).
func Carries() bool { return carry.Library() != nil }

// unpackBundled unpacks the library into its folder when that is looked at. Where it cannot, nothing
// is found there, and the search says where it looked.
func unpackBundled(folder string) {
	if slices.Contains(bundledFolders(), folder) {
		_, _ = Unpack(folder)
	}
}

// Unpack writes the op library of this program into a folder, and returns its path. One
// that is there and is the same, to the byte, stays; any other is replaced. The file appears at once and
// complete. The error says so where the program has none.
func Unpack(folder string) (path string, err error) {
	library := carry.Library()
	if library == nil {
		return "", fmt.Errorf("this program has no built-in op library: only release builds do; %s", libraryAdvice)
	}
	if err := os.MkdirAll(folder, 0o755); err != nil {
		return "", err
	}
	path = filepath.Join(folder, LibraryFile())
	if there, err := configfile.Read(path, configfile.Library); err == nil && bytes.Equal(there, library) {
		return path, nil
	}
	return path, PlaceLibrary(path, library)
}

// PlaceLibrary writes a library at a path. It appears at once and complete, so that a process that
// has another one loaded from there keeps that.
func PlaceLibrary(path string, library []byte) error {
	return configfile.Write(path, library, 0o755)
}
