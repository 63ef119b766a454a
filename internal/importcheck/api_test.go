package importcheck

import (
	"encoding/json"
	"errors"
	"go/importer"
	"go/token"
	"go/types"
	"io"
	"os"
	"os/exec"
	"strings"
	"testing"
)

// public are the packages whose exported names need nothing that only this module may import.
var public = []string{"audit", "modeldiff", "validate", "validate/capture"}

// A program outside this module can call what a public package exports: no signature and no
// exported field or method has a type of a folder internal/.
func TestPublicTypes(t *testing.T) {
	exports := exportData(t)
	load := importer.ForCompiler(token.NewFileSet(), "gc", func(path string) (io.ReadCloser, error) { return os.Open(exports[path]) })
	for _, folder := range public {
		p, err := load.Import(module + folder)
		if err != nil {
			t.Fatal(err)
		}
		for _, name := range p.Scope().Names() {
			o := p.Scope().Lookup(name)
			if !o.Exported() {
				continue
			}
			list := []types.Object{o}
			if named, ok := o.Type().(*types.Named); ok {
				for m := range named.Methods() {
					list = append(list, m)
				}
			}
			for _, o := range list {
				if of := internalType(o.Type(), map[types.Type]bool{}); o.Exported() && of != "" {
					t.Errorf("%s.%s has the type %s", folder, o.Name(), of)
				}
			}
		}
	}
}

// internalType names a type of a folder internal/ that a user of t meets, "" if there is none.
// Types of other packages are the matter of these.
func internalType(t types.Type, seen map[types.Type]bool) string {
	if seen[t] {
		return ""
	}
	seen[t] = true
	first := func(list ...types.Type) string {
		for _, t := range list {
			if of := internalType(t, seen); of != "" {
				return of
			}
		}
		return ""
	}
	switch t := t.(type) {
	case *types.Alias:
		return first(types.Unalias(t))
	case *types.Named:
		p := t.Obj().Pkg()
		if p != nil && strings.Contains(p.Path(), "/internal/") {
			return t.String()
		}
		if p == nil || !strings.HasPrefix(p.Path(), module) {
			return ""
		}
		return first(t.Underlying())
	case *types.Struct:
		for f := range t.Fields() {
			if of := internalType(f.Type(), seen); f.Exported() && of != "" {
				return of
			}
		}
	case *types.Signature:
		return first(t.Params(), t.Results())
	case *types.Tuple:
		for v := range t.Variables() {
			if of := first(v.Type()); of != "" {
				return of
			}
		}
	case *types.Map:
		return first(t.Key(), t.Elem())
	case interface{ Elem() types.Type }: // pointers, slices, arrays, channels
		return first(t.Elem())
	}
	return ""
}

// exportData says for each package where the compiler left its types.
func exportData(t *testing.T) map[string]string {
	t.Helper()
	args := []string{"list", "-export", "-deps", "-json=ImportPath,Export"}
	for _, folder := range public {
		args = append(args, module+folder)
	}
	out, err := exec.Command("go", args...).Output()
	if err != nil {
		t.Fatal(err)
	}
	files := map[string]string{}
	for d := json.NewDecoder(strings.NewReader(string(out))); ; {
		var p struct{ ImportPath, Export string }
		if err := d.Decode(&p); errors.Is(err, io.EOF) {
			return files
		} else if err != nil {
			t.Fatal(err)
		}
		files[p.ImportPath] = p.Export
	}
}
