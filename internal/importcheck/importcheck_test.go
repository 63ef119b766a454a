package importcheck

import (
	"encoding/json"
	"errors"
	"io"
	"os/exec"
	"strings"
	"testing"
)

const module = "github.com/rope-rewrite/rope-rewrite/"

// rule says what the packages of a folder may import of this module, besides
// one another.
type rule struct {
	folder string
	may    []string // folders; "" is everything
	why    string
}

var rules = []rule{
	{"cmd", []string{""}, ""},
	{"examples", []string{""}, ""},
	{"internal/signature", []string{"onnx", "customop", "internal/sidefile"}, "internal/signature stands below lm and the decoder"},
	{"internal", []string{""}, ""},
	{"rope", nil, "rope knows mathematics and nothing else"},
	{"onnx", nil, "onnx knows files and nothing else"},
	{"customop", []string{"internal/sidefile"}, "customop knows kernels, neither graphs nor mathematics"},
	{"lm", []string{"onnx", "customop", "internal/signature", "internal/sidefile"}, "lm runs models, whoever rewrote them: it reads files and registers the op, and knows neither graphs nor mathematics"},
	{"rewrite", []string{"rope", "onnx", "customop", "internal"}, "rewrite knows graphs, and stands below the commands"},
}

func TestDependenciesPointDownwards(t *testing.T) {
	seen := map[string]bool{}
	for _, p := range packages(t) {
		path := strings.TrimPrefix(p.ImportPath, module)
		r, ok := ruleOf(path)
		if !ok {
			t.Errorf("no rule says what %s may import: add one to this test", path)
			continue
		}
		seen[r.folder] = true
		for _, imported := range p.Imports {
			if target, ours := strings.CutPrefix(imported, module); ours && !r.allows(target) {
				t.Errorf("%s imports %s: %s", path, target, r.why)
			}
		}
	}
	for _, folder := range []string{"rope", "onnx", "customop", "lm", "rewrite"} {
		if !seen[folder] {
			t.Errorf("no package was found in %s", folder)
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
		{"rope", "ropes", false},
		{"onnx", "onnx/onnxpb", true},
		{"onnx", "rope", false},
		{"customop", "onnx", false},
		{"customop", "rewrite", false},
		{"rewrite/fused", "rope", true},
		{"rewrite", "cmd/rope-rewrite", false},
		{"rewrite", "lm", false},
		{"lm", "onnx", true},
		{"lm", "rewrite", false},
		{"lm", "internal/signature", true},
		{"lm", "internal/engine", false},
		{"internal/signature", "rewrite", false},
		{"internal/decoder", "internal/engine", true},
		{"cmd/rope-rewrite", "rewrite", true},
	} {
		r, ok := ruleOf(c.from)
		if !ok || r.allows(c.to) != c.want {
			t.Errorf("%s imports %s: allowed %v, want %v", c.from, c.to, !c.want, c.want)
		}
	}
}

func ruleOf(path string) (rule, bool) {
	for _, r := range rules {
		if within(path, r.folder) {
			return r, true
		}
	}
	return rule{}, false
}

func (r rule) allows(target string) bool {
	for _, folder := range append(r.may, r.folder) {
		if within(target, folder) {
			return true
		}
	}
	return false
}

func within(path, folder string) bool {
	return folder == "" || path == folder || strings.HasPrefix(path, folder+"/")
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
