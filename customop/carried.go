package customop

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"github.com/rope-rewrite/rope-rewrite/customop/bundled/carry"
	"github.com/rope-rewrite/rope-rewrite/internal/configfile"
	"github.com/rope-rewrite/rope-rewrite/internal/ownfile"
)

// bundledFolders are where the op library that is built into this program (package customop/bundled)
// may be unpacked, each named by its checksum: in the user's cache, else in a folder of the user's own among
// temporary files. Most programs have no library inside, and no such folders.
func bundledFolders() (folders []string) {
	library := carry.Library()
	if library == nil {
		return nil
	}
	hash := sha256.Sum256(library)
	sum := hex.EncodeToString(hash[:8])
	if cache, err := os.UserCacheDir(); err == nil {
		folders = append(folders, filepath.Join(cache, "rope-rewrite", sum))
	}
	for _, temporary := range ownfile.TemporaryFolders() {
		folders = append(folders, filepath.Join(temporary, fmt.Sprintf("rope-rewrite-%d-%s", os.Geteuid(), sum)))
	}
	return folders
}

// Carries reports whether the op library is built into this program (package customop/bundled).
func Carries() bool { return carry.Library() != nil }

// unpackAdvice is for programs with a library inside that can be unpacked nowhere.
const unpackAdvice = "set XDG_CACHE_HOME to a folder that this user may write to and that is not mounted noexec, for the library inside " +
	"this program, or set " + LibraryVariable + " to a copy of the library (rope-rewrite ops install DIR writes one)"

// unpackBundled unpacks the library into its folder when that is looked at.
func unpackBundled(folder string) *unfitError {
	if !slices.Contains(bundledFolders(), folder) {
		return nil
	}
	err := ownFolder(folder)
	if err == nil {
		var path string
		if path, err = Unpack(folder); err == nil {
			err = ownfile.Loadable(path)
		}
	}
	if err == nil {
		return nil
	}
	return &unfitError{problem: withoutPath(err).Error(), advice: unpackAdvice}
}

// ownFolder makes a folder that nobody but this user and root can write to, or says why the one that is there is
// none. What runs from it may be trusted then once it was compared.
func ownFolder(folder string) error {
	parent := filepath.Dir(folder)
	if err := os.MkdirAll(parent, 0o755); err != nil {
		return err
	}
	if above, err := os.Stat(parent); err != nil {
		return err
	} else if above.Mode().Perm()&0o002 != 0 && above.Mode()&fs.ModeSticky == 0 {
		return fmt.Errorf("everybody may rename what is in %s", parent)
	}
	if err := os.Mkdir(folder, 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	there, err := os.Lstat(folder)
	if err != nil {
		return err
	}
	if !there.IsDir() {
		return errors.New("is not a folder")
	}
	return ownfile.Ours(there)
}

// Unpack writes the op library of this program into a folder, and returns its path. One
// that is there, is the same to the byte and can be changed by nobody else stays; any other is replaced. The file appears at once and
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
	if isSame(path, library) {
		return path, nil
	}
	return path, PlaceLibrary(path, library)
}

// isSame reports whether a file holds a library. A link does not: what it leads to may change.
func isSame(path string, library []byte) bool {
	info, err := os.Lstat(path)
	if err != nil || !info.Mode().IsRegular() || ownfile.Ours(info) != nil {
		return false
	}
	there, err := configfile.Read(path, configfile.Library)
	return err == nil && bytes.Equal(there, library)
}

// PlaceLibrary writes a library at a path. It appears at once and complete, so that a process that
// has another one loaded from there keeps that.
func PlaceLibrary(path string, library []byte) error {
	return configfile.Write(path, library, 0o755)
}
