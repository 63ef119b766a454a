// Package modelfiles finds the models of a folder, and which of two folders belong together.
package modelfiles

import (
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"

	"github.com/rope-rewrite/rope-rewrite/internal/links"
)

// most is how many models a folder may have.
const most = 1000

// List lists the .onnx files in a folder and the folders in it, but for hidden ones. The folder may be a link;
// links in it are not followed. Those that a rewrite made from one beside them are apart. A folder without any model is
// an error.
func List(folder string) (paths []string, made []Made, err error) {
	real, err := filepath.EvalSymlinks(folder)
	if err != nil {
		return nil, nil, err
	}
	var names []string
	err = filepath.WalkDir(real, func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && path != real && strings.HasPrefix(d.Name(), "."):
			return filepath.SkipDir
		case d.Type().IsRegular() && strings.EqualFold(filepath.Ext(path), ".onnx"):
			place, err := filepath.Rel(real, path)
			if err != nil {
				return err
			}
			names = append(names, place)
		}
		if len(names) > most {
			return fmt.Errorf("%s has more than %d .onnx files; give a folder of fewer", folder, most)
		}
		return nil
	})
	if err == nil && len(names) == 0 {
		err = fmt.Errorf("there is no .onnx file in %s", folder)
	}
	if err != nil {
		return nil, nil, err
	}
	names, made = Apart(links.Folder{Path: folder}, names)
	for _, name := range names {
		paths = append(paths, filepath.Join(folder, name))
	}
	for i, m := range made {
		made[i] = Made{filepath.Join(folder, m.Path), filepath.Join(folder, m.From)}
	}
	return paths, made, nil
}

// Pair is the same model of two folders.
type Pair struct{ A, B string }

// Pairs pairs the models of two folders by their place in them, and lists those that only one has, and those that
// were made from others. The only model of each folder makes a pair whatever their names.
func Pairs(a, b string) (pairs []Pair, alone []string, made []Made, err error) {
	var lists [2][]string
	for i, folder := range []string{a, b} {
		var apart []Made
		if lists[i], apart, err = List(folder); err != nil {
			return nil, nil, nil, err
		}
		made = append(made, apart...)
	}
	if len(lists[0]) == 1 && len(lists[1]) == 1 {
		return []Pair{{lists[0][0], lists[1][0]}}, nil, made, nil
	}
	for _, x := range lists[0] {
		place, err := filepath.Rel(a, x)
		if err != nil {
			return nil, nil, nil, err
		}
		y := filepath.Join(b, place)
		if i := slices.Index(lists[1], y); i >= 0 {
			pairs, lists[1] = append(pairs, Pair{x, y}), slices.Delete(lists[1], i, i+1)
		} else {
			alone = append(alone, x)
		}
	}
	alone = append(alone, lists[1]...)
	if len(pairs) == 0 {
		err = fmt.Errorf("no model of %s has the same name as one of %s", a, b)
	}
	return pairs, alone, made, err
}
