package importcheck

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"os/exec"
	"path"
	"strings"
	"testing"
)

// wallClocks are the files that read the clock on the wall, and why it may jump there. Everything else asks how long
// something took, for which Go has a clock that never jumps.
var wallClocks = map[string]string{
	"internal/disk/doc.go":     "the time of a file is only compared for being the same",
	"lm/chat/jinja/globals.go": "templates ask for the date",
	"examples/serve/answer.go": "the interface has the time of an answer",
	"examples/serve/server.go": "the interface has the time of a model",

	"cmd/rope-rewrite/eval_show.go": "a report has its date",
}

// wall are the methods of a time, and functions of the package, that lose the clock that never jumps.
var wall = map[string]bool{"Unix": true, "UnixMilli": true, "UnixMicro": true, "UnixNano": true, "ModTime": true, "UTC": true, "Local": true,
	"Format": true, "AppendFormat": true, "Chtimes": true}

// A clock that is set, or jumps, changes nothing: what reads it is on a list.
func TestWallClocks(t *testing.T) {
	out, err := exec.Command("git", "-C", "../..", "ls-files", "*.go").Output()
	if err != nil {
		t.Skip("these sources are no git repository: ", err)
	}
	seen := map[string]bool{}
	for name := range strings.Lines(string(out)) {
		name = strings.TrimSpace(name)
		source, err := os.ReadFile("../../" + name)
		if err != nil || strings.HasSuffix(name, "_test.go") {
			continue // a file that was removed and is not committed yet
		}
		files := token.NewFileSet()
		file, err := parser.ParseFile(files, name, source, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		ast.Inspect(file, func(n ast.Node) bool {
			call, ok := n.(*ast.CallExpr)
			if !ok {
				return true
			}
			if of, ok := call.Fun.(*ast.SelectorExpr); ok && wall[of.Sel.Name] && !ofAnotherPackage(file, of.X) {
				seen[name] = true
				if wallClocks[name] == "" {
					t.Errorf("%s reads the clock on the wall, which jumps: take time.Since, or say in this test why it may jump", files.Position(call.Pos()))
				}
			}
			return true
		})
	}
	for name := range wallClocks {
		if !seen[name] {
			t.Errorf("%s reads no clock: take it from the list", name)
		}
	}
}

// ofAnotherPackage reports whether an expression is the name of an import, but for time and os.
func ofAnotherPackage(file *ast.File, x ast.Expr) bool {
	name, ok := x.(*ast.Ident)
	if !ok || name.Name == "time" || name.Name == "os" {
		return false
	}
	for _, i := range file.Imports {
		if path.Base(strings.Trim(i.Path.Value, `"`)) == name.Name {
			return true
		}
	}
	return false
}
