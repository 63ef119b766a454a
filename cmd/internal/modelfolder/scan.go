package modelfolder

import (
	"errors"
	"fmt"
	"io/fs"
	"path"
	"path/filepath"
	"strings"

	"github.com/rope-rewrite/rope-rewrite/internal/links"
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
	path string      // relative to the folder, with slashes
	info fs.FileInfo // when the folder was read
}

// scan lists the files below a folder, and what is left out: hidden files and folders, what is not a regular file, and
// links to files out of the folder. Links to folders are not followed, but for the folder itself.
func scan(folder links.Folder) (list []source, left []string, err error) {
	top, err := filepath.EvalSymlinks(folder.Path)
	if err != nil {
		return nil, nil, err
	}
	err = filepath.WalkDir(top, func(name string, d fs.DirEntry, err error) error {
		if err != nil || name == top {
			return err
		}
		rel, err := filepath.Rel(top, name)
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
		file, err := folder.Open(filepath.FromSlash(rel))
		switch {
		case errors.Is(err, fs.ErrNotExist):
			return fmt.Errorf("%s is a link to a file that does not exist", name)
		case errors.Is(err, links.ErrNotRegular):
			left = append(left, rel)
			return nil
		case errors.Is(err, links.ErrOut):
			left = append(left, rel+" ("+links.ErrOut.Error()+")")
			return nil
		case err != nil:
			return err
		}
		info, err := file.Stat()
		list = append(list, source{rel, info})
		return errors.Join(err, file.Close())
	})
	return list, left, err
}

func (s source) isModel() bool { return strings.EqualFold(path.Ext(s.path), modelExtension) }
