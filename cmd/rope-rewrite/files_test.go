package main

import (
	"errors"
	"go/ast"
	"go/parser"
	"go/token"
	"go/types"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// A sub-command stands by itself: it uses nothing of another's files (NAME.go and NAME_*.go).
// root.go lists them all; what several share is in cmd/internal/cli.
func TestSubCommandsStandAlone(t *testing.T) {
	paths, err := filepath.Glob("*.go")
	if err != nil {
		t.Fatal(err)
	}
	fset := token.NewFileSet()
	var files []*ast.File
	for _, path := range paths {
		if strings.HasSuffix(path, "_test.go") {
			continue
		}
		source, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		f, err := parser.ParseFile(fset, path, source, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		files = append(files, f)
	}
	command := func(at token.Pos) string {
		name, _, _ := strings.Cut(strings.TrimSuffix(fset.Position(at).Filename, ".go"), "_")
		return name
	}
	info := &types.Info{Uses: map[*ast.Ident]types.Object{}}
	config := types.Config{Importer: noImports{}, Error: func(error) {}} // what is imported is not looked at
	p, _ := config.Check("main", fset, files, info)
	seen := 0
	for id, o := range info.Uses {
		if o.Pkg() != p || o.Parent() != p.Scope() {
			continue
		}
		seen++
		if from, to := command(id.Pos()), command(o.Pos()); from != to && from != "root" && !(from == "main" && to == "root") {
			t.Errorf("%s: %s is of %s.go", fset.Position(id.Pos()), o.Name(), to)
		}
	}
	if seen < 50 {
		t.Errorf("only %d uses were seen", seen)
	}
}

type noImports struct{}

func (noImports) Import(string) (*types.Package, error) { return nil, errors.New("not looked at") }
