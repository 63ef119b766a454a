package modelfolder

import (
	"errors"
	"fmt"
	"io/fs"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/rope-rewrite/rope-rewrite/internal/links"
	"github.com/rope-rewrite/rope-rewrite/internal/modelfiles"
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
// links to files out of the folder, and models that were made from one beside them. Links to folders are not followed,
// but for the folder itself.
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
	if err != nil {
		return nil, nil, err
	}
	list, made := apart(folder, list)
	return list, append(left, made...), nil
}

// apart takes the models that were made from one beside them out of a folder's files.
func apart(folder links.Folder, list []source) (originals []source, left []string) {
	var names []string
	for _, s := range list {
		if s.isModel() {
			names = append(names, filepath.FromSlash(s.path))
		}
	}
	_, made := modelfiles.Apart(folder, names)
	for _, m := range made {
		name := filepath.ToSlash(m.Path)
		list = slices.DeleteFunc(list, func(s source) bool { return s.path == name })
		left = append(left, name+" (made from "+path.Base(filepath.ToSlash(m.From))+")")
	}
	return list, left
}

func (s source) isModel() bool { return strings.EqualFold(path.Ext(s.path), modelExtension) }
