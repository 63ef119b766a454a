package importcheck

import (
	"slices"
	"strings"
)

// Rule says what the packages of a folder know, and what they may import besides one another.
type Rule struct {
	Folder string
	Knows  string
	May    []string // folders of this repository; All is every one
	Third  []string // modules or packages of others; their packages below are included
}

// All stands for every folder in Rule.May.
const All = "everything"

// Rules are all folders with packages. The longest folder that a package lies in counts.
var Rules = []Rule{
	{"cmd/rope-rewrite", "the command line: one file per sub-command", []string{All}, []string{"github.com/spf13/cobra", "github.com/spf13/pflag", "golang.org/x/term"}},
	{"cmd/internal/cli", "what sub-commands share: flags, limits, mistakes, the screen", []string{"cmd/internal/schema", "rewrite", "provenance", "customop", "onnx", "rope", "lm", "difference", "internal/configfile", "internal/modelfiles", "internal/ranges", "internal/suggest"}, []string{"github.com/spf13/cobra", "github.com/spf13/pflag", "golang.org/x/term"}},
	{"cmd/internal/diagram", "pictures of a method: what is drawn", []string{"cmd/internal/figure", "rope"}, nil},
	{"cmd/internal/figure", "pictures of a method: how it looks", nil, []string{"gonum.org/v1/plot"}},
	{"cmd/internal/cachescales", "which scales the caches of a model need as int8", []string{"rewrite", "onnx", "internal"}, nil},
	{"cmd/internal/drift", "what rounding does to attention when positions are shifted", []string{"validate/capture", "rewrite", "rope", "onnx", "customop", "internal"}, nil},
	{"cmd/internal/evaluation", "which method helps: tasks, samples, reports", []string{"cmd/internal/figure", "rewrite", "lm", "rope", "onnx", "provenance", "internal/configfile", "internal/suggest"}, []string{"go.yaml.in/yaml", "gonum.org/v1/gonum/mathext"}},
	{"cmd/internal/schema", "the JSON Schema of what commands print", nil, nil},
	{"cmd/internal/recommend", "which method a model needs for a context, measured", []string{"cmd/internal/evaluation"}, nil},
	{"cmd/internal/demo", "a small model to try the command on", []string{"internal/disk"}, nil},
	{"cmd/internal/modelfolder", "a model folder, rewritten as a whole", []string{"audit", "rewrite", "provenance", "onnx", "customop", "rope", "internal"}, nil},
	{"cmd/internal/recipe", "a rewrite written down as a file", []string{"provenance", "rope", "internal/ranges", "internal/suggest"}, []string{"go.yaml.in/yaml"}},
	{"cmd/internal/docblocks", "the test that runs the blocks of the documentation", nil, nil},
	{"cmd/dev", "programs for work on this repository, in a module of their own", []string{All}, []string{"github.com/bufbuild/protocompile", "github.com/spf13/cobra", "github.com/x448/float16", "golang.org/x/sys", "gonum.org/v1/plot", "google.golang.org/protobuf"}},
	{"examples", "programs to start from", []string{All}, nil},
	{"examples/serve", "OpenAI's HTTP interface, in a module of its own", []string{"customop", "lm"}, []string{"github.com/prometheus/client_golang"}},

	{"validate/capture", "what each attention layer of a model reads and gives", []string{"rewrite", "rope", "onnx", "internal/decoder", "internal/engine"}, nil},
	{"validate", "whether a rewritten model computes what its record says", []string{"modeldiff", "rewrite", "provenance", "customop", "lm", "rope", "onnx", "internal"}, nil},
	{"modeldiff", "in what two models differ", []string{"audit", "rewrite", "provenance", "onnx", "customop", "difference", "internal/ranges"}, nil},
	{"audit", "whether a model computes what its configuration claims", []string{"rewrite", "rope", "onnx", "difference", "internal/modelconfig", "internal/ranges"}, nil},
	{"difference", "the shape of a difference of two models, or of a model and a claim", nil, nil},

	{"rewrite", "graphs: find, measure, verify, edit, lower", []string{"rope", "onnx", "customop", "provenance", "internal/engine", "internal/float16", "internal/modelconfig", "internal/ranges", "internal/version"}, []string{"google.golang.org/protobuf", "github.com/x448/float16"}},
	{"rewrite/definition", "the op's fallback: ONNX functions of standard operators", []string{"onnx", "customop", "rewrite/internal/ir"}, nil},
	{"rewrite/internal/contrib", "the op as ONNX Runtime's GroupQueryAttention", []string{"onnx", "customop", "rewrite/definition", "rewrite/internal/ir"}, nil},
	{"rewrite/internal/fused", "fused ops as the primitive nodes that compute the same", []string{"rope", "onnx", "internal/engine", "rewrite/internal/ir"}, nil},
	{"rewrite/internal/fused/fusedtest", "cases that the tests of all fused ops run", []string{"rewrite/internal/fused", "rope", "onnx", "internal"}, nil},
	{"rewrite/internal/tests", "the tests of rewrites, a folder for each subject, and `kit`, which they share", []string{All}, nil},

	{"lm", "running a language model: many texts at a time, caches, conversations", []string{"onnx", "customop", "internal/signature", "internal/modelconfig", "internal/modelfiles", "internal/configfile", "internal/links", "internal/offheap"}, []string{"github.com/yalue/onnxruntime_go", "github.com/x448/float16"}},
	{"lm/chat", "a conversation as a text", []string{"internal/configfile", "internal/links"}, nil},
	{"lm/chat/jinja", "chat templates as Python's Jinja2 renders them, for any Go program", nil, []string{"golang.org/x/text"}},
	{"lm/sample", "choosing tokens", nil, nil},
	{"lm/tokenizer", "texts as ids and back", []string{"internal/configfile", "internal/links"}, []string{"github.com/dlclark/regexp2", "github.com/rivo/uniseg", "golang.org/x/text"}},

	{"provenance", "the record of a rewrite in a model's metadata", []string{"rope", "onnx"}, nil},
	{"customop", "the op: its specification, its Go side, its library and how to find it", []string{"internal/configfile", "internal/ownfile"}, []string{"github.com/yalue/onnxruntime_go"}},
	{"onnx", "model files: open, edit, save without touching the rest", []string{"internal/clone", "internal/disk", "internal/links"}, []string{"google.golang.org/protobuf", "github.com/x448/float16", "golang.org/x/sys"}},
	{"onnx/opset", "newer versions of the standard operators", []string{"onnx"}, nil},
	{"rope", "mathematics: encodings, position maps, masks; the float64 reference", []string{"internal/suggest"}, nil},

	{"internal/buildfiles", "where the Makefile puts what it builds", []string{"customop"}, nil},
	{"internal/clone", "files that share blocks", nil, []string{"golang.org/x/sys"}},
	{"internal/configfile", "small files beside a model, read within bounds", []string{"internal/links"}, nil},
	{"internal/decoder", "a decoder fed in any chunks, for comparison", []string{"customop", "onnx", "internal/engine", "internal/float16", "internal/signature"}, nil},
	{"internal/disk", "folders synced, exchanged and locked; files that changed", nil, []string{"golang.org/x/sys"}},
	{"internal/engine", "evaluating models, in this process or a worker", []string{"customop", "onnx"}, []string{"github.com/yalue/onnxruntime_go", "github.com/x448/float16", "golang.org/x/sys"}},
	{"internal/float16", "tensors in 16 bits", []string{"customop", "onnx"}, nil},
	{"internal/importcheck", "the test that imports point one way", nil, nil},
	{"internal/largemodel", "large models, for tests", []string{"onnx/onnxpb"}, []string{"google.golang.org/protobuf"}},
	{"internal/links", "which links of a model's folder are followed", nil, nil},
	{"internal/modelconfig", "what config.json and genai_config.json claim", []string{"rope", "internal/configfile", "internal/links"}, []string{"github.com/tidwall"}},
	{"internal/modelfiles", "the models of a folder, and of two folders in pairs", []string{"onnx", "provenance", "internal/links"}, nil},
	{"internal/npz", "NumPy's archives", nil, []string{"github.com/sbinet/npyio"}},
	{"internal/offheap", "large memory that the collector does not count", nil, nil},
	{"internal/ownfile", "whether code may be loaded from a file", nil, nil},
	{"internal/ranges", "lists of numbers as text", nil, nil},
	{"internal/short", "how much of a long name a message repeats; every folder may import it", nil, nil},
	{"internal/signature", "what the inputs and outputs of a language model are", []string{"customop", "onnx", "internal/configfile"}, nil},
	{"internal/suggest", "the nearest known word", nil, nil},
	{"internal/testengine", "an engine that remembers what models gave, for tests", []string{"internal/engine"}, nil},
	{"internal/testfuzz", "inputs for fuzz targets where go test does not fuzz", nil, nil},
	{"internal/testmarkup", "what a name could bring into a page or a picture, for tests", nil, nil},
	{"internal/testmodel", "small models, for tests", []string{"onnx", "internal/engine"}, nil},
	{"internal/testruntime", "ONNX Runtime and the op library, for tests", []string{"customop", "internal/buildfiles"}, nil},
	{"internal/testsample", "how many of a test's cases make test runs", nil, nil},
	{"internal/version", "what the program was built from", []string{"customop"}, nil},
}

// Stages are the packages of rewrite/internal in the order in which a model goes
// through them, as rewrite/doc.go has it. Each may import those before it. Its tests are no stage.
var Stages = []string{"dim", "ir", "fused", "bound", "bisect", "graph", "eval", "formula", "positions", "site", "rotation", "score", "measure", "lower", "contrib", "prove", "paddingreaders", "plainonnx", "lastlogits",
	"sharedengine", "calls", "earlier", "analysis", "plan", "feature", "fallback", "backend"}

// RuleOf returns the rule of a package, given by its folder.
func RuleOf(folder string) (Rule, bool) {
	best := Rule{}
	for _, r := range Rules {
		if within(folder, r.Folder) && len(r.Folder) > len(best.Folder) {
			best = r
		}
	}
	return best, best.Folder != ""
}

// shared is what every folder may import.
const shared = "internal/short"

// Allows reports whether packages under the rule may import one of this repository.
func (r Rule) Allows(folder string) bool {
	if folder == shared {
		return true
	}
	if under, ok := RuleOf(folder); ok && under.Folder == r.Folder {
		return true
	}
	for _, may := range append(r.May, r.Folder) {
		if may == All || within(folder, may) {
			return true
		}
	}
	return false
}

// AllowsThird reports whether they may import a package of others.
func (r Rule) AllowsThird(path string) bool {
	return slices.ContainsFunc(r.Third, func(module string) bool { return within(path, module) })
}

// Downwards reports whether an import keeps the order of the stages.
func Downwards(from, to string) bool {
	from, staged := strings.CutPrefix(from, "rewrite/internal/")
	if !staged || within(from, "tests") {
		return true
	}
	if to == "rewrite" {
		return false
	}
	to, staged = strings.CutPrefix(to, "rewrite/internal/")
	if !staged {
		return true
	}
	from, _, _ = strings.Cut(from, "/")
	to, _, _ = strings.Cut(to, "/")
	return slices.Contains(Stages, from) && slices.Contains(Stages[:slices.Index(Stages, from)+1], to)
}

func within(path, folder string) bool { return path == folder || strings.HasPrefix(path, folder+"/") }

// Table returns the rules as the table of CONTRIBUTING.md.
func Table() string {
	var b strings.Builder
	b.WriteString("| folder | knows | may import |\n|---|---|---|\n")
	for _, r := range Rules {
		var may []string
		for _, m := range r.May {
			if m != All {
				m = "`" + m + "`"
			}
			may = append(may, m)
		}
		for _, t := range r.Third {
			may = append(may, t[strings.LastIndex(t, "/")+1:])
		}
		text := strings.Join(may, ", ")
		if text == "" {
			text = "nothing"
		}
		b.WriteString("| `" + r.Folder + "/` | " + r.Knows + " | " + text + " |\n")
	}
	return b.String()
}
