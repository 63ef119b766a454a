package importcheck

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

// verb is one of a format: %q, %-10s, %%.
var verb = regexp.MustCompile(`%[-+# 0-9.]*[a-zA-Z%]`)

// A quoted text in a message is bounded by the package short: what is quoted comes from a model, a file or an argument. Only a call that
// makes no message writes it whole.
func TestQuotedNamesAreShort(t *testing.T) {
	root := filepath.Join("..", "..")
	seen := 0
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		folder, err := filepath.Rel(root, path)
		if err != nil {
			return err
		}
		folder = filepath.ToSlash(folder)
		if d.IsDir() {
			if strings.HasPrefix(d.Name(), ".") && d.Name() != ".." || strings.HasPrefix(d.Name(), "test") || tools[folder] {
				return fs.SkipDir
			}
			return nil
		}
		if !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
			return nil
		}
		source, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		files := token.NewFileSet()
		file, err := parser.ParseFile(files, path, source, parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		ast.Inspect(file, func(n ast.Node) bool {
			call, ok := n.(*ast.CallExpr)
			if !ok || writes(call) {
				return true
			}
			for _, arg := range quoted(call) {
				seen++
				if !bounded(arg) {
					t.Errorf("%s: %s is quoted whole: use short.Name, or short.Names for a list", files.Position(arg.Pos()), source[files.Position(arg.Pos()).Offset:files.Position(arg.End()).Offset])
				}
			}
			return true
		})
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if seen < 300 {
		t.Errorf("only %d quoted texts were seen", seen)
	}
}

// tools are folders whose messages are for people who work on this repository, or quote what they wrote themselves.
var tools = map[string]bool{"build": true, "cmd/dev": true, "examples": true, "internal/npz": true, "internal/largemodel": true, "internal/buildfiles": true,
	"rewrite/internal/tests": true, "rewrite/internal/fused/fusedtest": true, "rewrite/definition": true}

// writes reports whether a call makes no message: hashes of graphs are written with Fprintf.
func writes(call *ast.CallExpr) bool {
	f, ok := call.Fun.(*ast.SelectorExpr)
	return ok && f.Sel.Name == "Fprintf"
}

// quoted returns the arguments of a call that its format quotes whole: %.60q bounds its own.
func quoted(call *ast.CallExpr) (list []ast.Expr) {
	for i, a := range call.Args {
		text, ok := a.(*ast.BasicLit)
		if !ok || text.Kind != token.STRING {
			continue
		}
		format, err := strconv.Unquote(text.Value)
		if err != nil || !strings.Contains(format, "%") {
			continue
		}
		at := i + 1
		for _, v := range verb.FindAllString(format, -1) {
			if v == "%%" {
				continue
			}
			if strings.HasSuffix(v, "q") && !strings.Contains(v, ".") && at < len(call.Args) {
				list = append(list, call.Args[at])
			}
			at++
		}
		return list
	}
	return nil
}

// bounded reports whether an argument is a call of the package short, a literal, or a character.
func bounded(arg ast.Expr) bool {
	switch x := arg.(type) {
	case *ast.BasicLit:
		return true
	case *ast.Ident:
		return x.Name == "r" // a rune, by this repository's habit
	case *ast.CallExpr:
		f, ok := x.Fun.(*ast.SelectorExpr)
		if !ok {
			return false
		}
		p, ok := f.X.(*ast.Ident)
		return ok && p.Name == "short"
	}
	return false
}
