package importcheck

import (
	"encoding/json"
	"errors"
	"io"
	"os/exec"
	"slices"
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
	{"docs", []string{""}, ""},
	{"internal/signature", []string{"onnx", "customop", "internal/sidefile"}, "internal/signature stands below lm and the decoder"},
	{"internal/similar", nil, "internal/similar knows words and nothing else"},
	{"internal/clone", nil, "internal/clone knows files' blocks and nothing else"},
	{"internal/modelconfig", []string{"rope", "internal/sidefile"}, "internal/modelconfig stands below rewrite: it reads what files claim, and knows no graphs"},
	{"internal", []string{""}, ""},
	{"rope", []string{"internal/similar"}, "rope knows mathematics and nothing else"},
	{"onnx", []string{"internal/clone"}, "onnx knows files and nothing else"},
	{"customop", []string{"internal/sidefile"}, "customop knows kernels, neither graphs nor mathematics"},
	{"rewrite/fused", []string{"rope", "onnx", "internal", "rewrite/internal/ir"}, "an adapter knows one fused op, not what is done with it; it writes nodes with the builder of the rewriter (ir), which knows no attention"},
	{"rewrite/contrib", []string{"onnx", "customop", "rewrite/definition", "rewrite/internal/ir"}, "it is the op in nodes of ONNX Runtime: it knows neither models nor mathematics"},
	{"rewrite/definition", []string{"onnx", "customop", "rewrite/internal/ir"}, "a definition is the op's specification in nodes of a graph: it knows neither models nor mathematics"},
	{"lm/chat/jinja", nil, "lm/chat/jinja is a language by itself, which others import: it knows neither chats nor files"},
	{"lm/chat", []string{"internal/sidefile"}, "lm/chat makes a text of a conversation: it knows files, and neither models nor tokenizers"},
	{"lm/sample", nil, "lm/sample chooses among numbers and knows nothing else"},
	{"lm/tokenizer", []string{"internal/sidefile"}, "lm/tokenizer turns texts into ids, whatever model they are for"},
	{"lm", []string{"onnx", "customop", "internal/signature", "internal/sidefile"}, "lm runs models, whoever rewrote them: it reads files and registers the op, and knows neither graphs nor mathematics"},
	{"provenance", []string{"rope", "onnx"}, "a record is values in a model's metadata, whoever wrote them"},
	{"rewrite", []string{"rope", "onnx", "customop", "provenance", "internal"}, "rewrite knows graphs, and stands below the commands"},
}

// stages are the packages of rewrite/internal in the order in which a model goes
// through them, as rewrite/doc.go has it. Each may import those before it.
var stages = []string{"dim", "ir", "bound", "search", "graph", "eval", "site", "rotation", "score", "measure", "lower", "prove", "unread", "plainonnx", "head"}

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
			target, ours := strings.CutPrefix(imported, module)
			if ours && !r.allows(target) {
				t.Errorf("%s imports %s: %s", path, target, r.why)
			}
			if ours && !downwards(path, target) {
				t.Errorf("%s imports %s, which is no stage before it", path, target)
			}
		}
	}
	for _, folder := range []string{"rope", "onnx", "customop", "lm", "provenance", "rewrite", "rewrite/fused", "rewrite/definition", "rewrite/contrib", "lm/chat/jinja"} {
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
		{"rope", "internal/similar", true},
		{"rope", "internal/sidefile", false},
		{"internal/similar", "rope", false},
		{"onnx", "onnx/onnxpb", true},
		{"onnx", "rope", false},
		{"onnx/opset", "onnx", true},
		{"onnx/opset", "internal/similar", false},
		{"customop", "onnx", false},
		{"provenance", "rope", true},
		{"provenance", "rewrite", false},
		{"customop", "rewrite", false},
		{"rewrite/internal/site", "rope", true},
		{"rewrite/fused/msrotary", "rewrite/fused", true},
		{"rewrite/fused/msrotary", "rewrite/internal/graph", false},
		{"rewrite/fused", "rewrite/internal/ir", true},
		{"rewrite/fused", "rope", true},
		{"rewrite/definition", "rewrite/internal/ir", true},
		{"rewrite/definition", "rope", false},
		{"rewrite", "cmd/rope-rewrite", false},
		{"rewrite", "lm", false},
		{"lm", "onnx", true},
		{"lm/chat", "lm/chat/jinja", true},
		{"lm/chat/jinja", "lm/chat", false},
		{"lm/chat/jinja", "internal/sidefile", false},
		{"lm", "rewrite", false},
		{"lm", "internal/signature", true},
		{"lm", "internal/engine", false},
		{"internal/signature", "rewrite", false},
		{"internal/decoder", "internal/engine", true},
		{"internal/modelconfig", "rope", true},
		{"internal/modelconfig", "rewrite", false},
		{"cmd/rope-rewrite", "rewrite", true},
	} {
		r, ok := ruleOf(c.from)
		if !ok || r.allows(c.to) != c.want {
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
		{"rewrite/internal/graph", "rewrite/fused/msrotary", true},
		{"rewrite/internal/unheard", "rewrite/internal/dim", false},
		{"rewrite", "rewrite/internal/plainonnx", true},
	} {
		if got := downwards(c.from, c.to); got != c.want {
			t.Errorf("%s imports %s: downwards %v, want %v", c.from, c.to, got, c.want)
		}
	}
}

// downwards reports whether an import keeps the order of the stages.
func downwards(from, to string) bool {
	from, staged := strings.CutPrefix(from, "rewrite/internal/")
	if !staged {
		return true
	}
	if to == "rewrite" {
		return false
	}
	to, staged = strings.CutPrefix(to, "rewrite/internal/")
	return !staged || slices.Contains(stages, from) && slices.Contains(stages[:slices.Index(stages, from)], to)
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
