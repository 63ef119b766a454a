package modelfolder

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"
)

// Names of files that are not only copied.
const (
	modelExtension      = ".onnx"
	configFile          = "config.json"
	genaiConfigFile     = "genai_config.json"
	tokenizerConfigFile = "tokenizer_config.json"
)

// source is one file of the folder that is read.
type source struct {
	path string // relative to the folder, with slashes
	file string // with links followed, as the system has it
	size int64
	info fs.FileInfo // when the folder was read
}

// scan lists the files below a folder, and what is left out: hidden files and folders, and
// what is not a regular file. Links to files are followed, because a hub's cache consists of
// them; links to folders are not, but for the folder itself.
func scan(folder string) (list []source, left []string, err error) {
	if folder, err = filepath.EvalSymlinks(folder); err != nil {
		return nil, nil, err
	}
	err = filepath.WalkDir(folder, func(name string, d fs.DirEntry, err error) error {
		if err != nil || name == folder {
			return err
		}
		rel, err := filepath.Rel(folder, name)
		if err != nil {
			return err
		}
		rel = filepath.ToSlash(rel)
		if strings.HasPrefix(d.Name(), ".") {
			left = append(left, rel)
			if d.IsDir() {
				return fs.SkipDir
			}
			return nil
		}
		if d.IsDir() {
			return nil
		}
		file, err := filepath.EvalSymlinks(name)
		if errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("%s is a link to a file that does not exist", name)
		}
		if err != nil {
			return err
		}
		info, err := os.Stat(file)
		if err != nil {
			return err
		}
		if !info.Mode().IsRegular() {
			left = append(left, rel)
			return nil
		}
		list = append(list, source{rel, file, info.Size(), info})
		return nil
	})
	return list, left, err
}

func (s source) isModel() bool { return strings.EqualFold(path.Ext(s.path), modelExtension) }
