package audit

import (
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"strings"
)

// most is how many models of a folder are audited.
const most = 1000

// Models lists the .onnx files in a folder and the folders in it, but for hidden
// ones. Links are not followed.
func Models(folder string) (paths []string, err error) {
	err = filepath.WalkDir(folder, func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && path != folder && strings.HasPrefix(d.Name(), "."):
			return filepath.SkipDir
		case d.Type().IsRegular() && strings.EqualFold(filepath.Ext(path), ".onnx"):
			paths = append(paths, path)
		}
		if len(paths) > most {
			return fmt.Errorf("%s has more than %d .onnx files; give a folder of fewer", folder, most)
		}
		return nil
	})
	if err == nil && len(paths) == 0 {
		err = fmt.Errorf("there is no .onnx file in %s", folder)
	}
	return paths, err
}

// IsUnclaimed says whether an error of Run says that nothing beside the model claims
// anything.
func IsUnclaimed(err error) bool {
	unclaimed := (*NoConfigError)(nil)
	return errors.As(err, &unclaimed)
}
