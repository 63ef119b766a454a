package importcheck

import (
	"encoding/json"
	"errors"
	"io"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"
)

const module = "github.com/rope-rewrite/rope-rewrite/"

func TestImports(t *testing.T) {
	seen := map[string]bool{}
	for _, p := range packages(t) {
		folder := strings.TrimPrefix(p.ImportPath, module)
		r, ok := RuleOf(folder)
		if !ok {
			t.Errorf("no rule says what %s may import: add one to rules.go", folder)
			continue
		}
		seen[r.Folder] = true
		for _, imported := range p.Imports {
			target, ours := strings.CutPrefix(imported, module)
			switch {
			case ours && !r.Allows(target):
				t.Errorf("%s imports %s: it knows %s, and may import %q", folder, target, r.Knows, r.May)
			case ours && !Downwards(folder, target):
				t.Errorf("%s imports %s, which is no stage before it", folder, target)
			case !ours && strings.Contains(strings.Split(imported, "/")[0], ".") && !r.AllowsThird(imported):
				t.Errorf("%s imports %s: of other modules it may import %q", folder, imported, r.Third)
			}
		}
	}
	for _, r := range Rules {
		if !seen[r.Folder] {
			t.Errorf("the rule of %s is for no package", r.Folder)
		}
	}
}

// The rules themselves point one way: no folder may import another that may import it.
func TestRulesPointOneWay(t *testing.T) {
	for _, a := range Rules {
		for _, b := range Rules {
			if a.Folder != b.Folder && !within(a.Folder, b.Folder) && !within(b.Folder, a.Folder) &&
				!slices.Contains(a.May, All) && !slices.Contains(b.May, All) && a.Allows(b.Folder) && b.Allows(a.Folder) {
				t.Errorf("%s and %s may import one another", a.Folder, b.Folder)
			}
		}
	}
}

// What the rules allow and forbid, spelled out.
func TestRules(t *testing.T) {
	for _, c := range []struct {
		from, to string
		want     bool
	}{
		{"rope/ref", "rope", true},
		{"rope", "onnx", false},
		{"rope", "internal/suggest", true},
		{"rope", "internal/configfile", false},
		{"onnx", "onnx/onnxpb", true},
		{"onnx/opset", "onnx", true},
		{"onnx/opset", "internal/clone", false},
		{"customop", "onnx", false},
		{"provenance", "rewrite", false},
		{"rewrite/internal/site", "rope", true},
		{"rewrite/internal/fused/msrotary", "rewrite/internal/fused", true},
		{"rewrite/internal/fused/msrotary", "rewrite/internal/graph", false},
		{"rewrite/definition", "rewrite/internal/ir", true},
		{"rewrite/definition", "rope", false},
		{"rewrite", "internal/decoder", false},
		{"rewrite", "validate", false},
		{"rewrite", "lm", false},
		{"audit", "validate", false},
		{"validate", "modeldiff", true},
		{"lm", "rewrite", false},
		{"lm", "internal/engine", false},
		{"lm/tokenizer", "lm", false},
		{"lm/chat", "lm/chat/jinja", true},
		{"lm/chat/jinja", "lm/chat", false},
		{"lm/chat/jinja", "internal/configfile", false},
		{"internal/signature", "rewrite", false},
		{"internal/engine", "internal/decoder", false},
		{"internal/decoder", "internal/engine", true},
		{"internal/modelconfig", "rewrite", false},
		{"cmd/internal/figure", "rope", false},
		{"cmd/internal/evaluation", "cmd/internal/recipe", false},
		{"cmd/rope-rewrite", "rewrite", true},
	} {
		r, ok := RuleOf(c.from)
		if !ok || r.Allows(c.to) != c.want {
			t.Errorf("%s imports %s: allowed %v, want %v", c.from, c.to, !c.want, c.want)
		}
	}
	for _, c := range []struct {
		from, to string
		want     bool
	}{
		{"cmd/rope-rewrite", "github.com/spf13/cobra/doc", true},
		{"cmd/rope-rewrite", "github.com/yalue/onnxruntime_go", false},
		{"cmd/internal/figure", "gonum.org/v1/plot/vg", true},
		{"rewrite", "github.com/spf13/cobra", false},
		{"rope", "gonum.org/v1/plot", false},
		{"lm", "github.com/yalue/onnxruntime_go", true},
	} {
		if r, _ := RuleOf(c.from); r.AllowsThird(c.to) != c.want {
			t.Errorf("%s imports %s: allowed %v, want %v", c.from, c.to, !c.want, c.want)
		}
	}
}

// The order of the stages, spelled out.
func TestStages(t *testing.T) {
	for _, c := range []struct {
		from, to string
		want     bool
	}{
		{"rewrite/internal/measure", "rewrite/internal/site", true},
		{"rewrite/internal/site", "rewrite/internal/measure", false},
		{"rewrite/internal/dim", "rewrite/internal/ir", false},
		{"rewrite/internal/site", "rewrite", false},
		{"rewrite/internal/site", "rope", true},
		{"rewrite/internal/graph", "rewrite/internal/fused/msrotary", true},
		{"rewrite/internal/fused/msrotary", "rewrite/internal/graph", false},
		{"rewrite/internal/fused/msrotary", "rewrite/internal/ir", true},
		{"rewrite/internal/unheard", "rewrite/internal/dim", false},
		{"rewrite", "rewrite/internal/plainonnx", true},
		{"rewrite/internal/tests/kit", "rewrite", true},
		{"rewrite/internal/tests/kit", "rewrite/internal/measure", true},
		{"rewrite/internal/measure", "rewrite/internal/tests/kit", false},
	} {
		if got := Downwards(c.from, c.to); got != c.want {
			t.Errorf("%s imports %s: downwards %v, want %v", c.from, c.to, got, c.want)
		}
	}
}

// CONTRIBUTING.md shows the rules as they are.
func TestContributing(t *testing.T) {
	page, err := os.ReadFile("../../CONTRIBUTING.md")
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(string(page), Table()) {
		t.Errorf("the table of CONTRIBUTING.md is not that of rules.go. It should read:\n%s", Table())
	}
}

// listed is what go list says of a package. Imports are those of its own files,
// without those of its tests.
type listed struct {
	ImportPath string
	Imports    []string
}

func packages(t *testing.T) []listed {
	t.Helper()
	out, err := exec.Command("go", "list", "-e", "-json=ImportPath,Imports", module+"...").Output()
	if err != nil {
		t.Fatalf("go list: %v", err)
	}
	var all []listed
	for decoder := json.NewDecoder(strings.NewReader(string(out))); ; {
		var p listed
		if err := decoder.Decode(&p); errors.Is(err, io.EOF) {
			return all
		} else if err != nil {
			t.Fatal(err)
		}
		all = append(all, p)
	}
}
