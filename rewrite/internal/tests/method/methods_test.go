package method_test

import (
	"context"
	"flag"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/rope-rewrite/rope-rewrite/internal/decoder"
	"github.com/rope-rewrite/rope-rewrite/internal/engine"
	"github.com/rope-rewrite/rope-rewrite/internal/npz"
	"github.com/rope-rewrite/rope-rewrite/internal/testruntime"
	"github.com/rope-rewrite/rope-rewrite/internal/testsample"
	"github.com/rope-rewrite/rope-rewrite/rewrite"
	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/tests/kit"
	"github.com/rope-rewrite/rope-rewrite/rope"
)

var methodTable = flag.String("method-table", "", "`FILE` that gets the table of TestMethodGoldens, for docs/results/accuracy.md")

// firstGoldens are those of testdata/goldens/llama.npz or llama_masks.npz.
func firstGoldens(t *testing.T, part string) kit.MethodGoldens {
	t.Helper()
	g := kit.MethodGoldens{Trained: 16, Context: 48, Step: 1}
	var err error
	if g.Logits, err = npz.Open(filepath.Join(kit.Testdata, "goldens", "llama"+part+".npz")); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { g.Logits.Close() })
	if part == "" {
		g.Cases = map[string]kit.MethodCase{
			"plain":     {Oracle: "transformers"},
			"linear4":   {Edits: []string{"scaling linear:factor=4"}, Oracle: "transformers"},
			"theta500k": {Edits: []string{"scaling theta:rope_theta=500000"}, Oracle: "transformers"},
			"string":    {Edits: []string{"positions string:shift=16,window=4"}, Oracle: "matrices"},
		}
		return g
	}
	g.Cases = map[string]kit.MethodCase{
		"anchor":       {Edits: []string{"mask anchor"}, Oracle: "matrices"},
		"intra":        {Edits: []string{"mask intra-document-reset:start=9"}, Oracle: "matrices"},
		"anchor_reset": {Edits: []string{"mask anchor:restart=true"}, Oracle: "matrices"},
		"first_keys":   {Edits: []string{"mask first-keys:count=2,window=8"}, Oracle: "matrices"},
	}
	return g
}

// shownExports are the models on which every column of a case is computed, by
// the architecture of the goldens.
var shownExports = map[string]string{
	"llama": "llama__optimum", "qwen3": "qwen3__optimum", "gpt_neox": "gpt_neox__optimum",
	"cohere": "cohere__dynamo18", "gemma3_text": "gemma3_text__dynamo18",
	"gemma2": "gemma2__dynamo18-eager", "vaultgemma": "vaultgemma__dynamo18-eager", "gpt_oss": "gpt_oss__dynamo18-eager", "olmo3": "olmo3__dynamo18-eager", "mistral": "mistral__dynamo18-eager",
}

// TestMethodGoldens compares patched models with transformers and with explicit
// matrices of distances: in prefill and decode, in batches, padded, with every
// kind of cache and for both targets, by the op library and by the definition that the
// model carries, and the op itself at far positions.
func TestMethodGoldens(t *testing.T) {
	t.Parallel()
	testruntime.Require(t)
	eng := kit.Local(t)
	var mu sync.Mutex
	var rows []string
	t.Cleanup(func() { writeMethodTable(t, rows) })
	for _, goldens := range []kit.MethodGoldens{kit.ReadMethodGoldens(t, "layers"), kit.ReadMethodGoldens(t, "methods"), kit.ReadMethodGoldens(t, "others"), firstGoldens(t, ""), firstGoldens(t, "_masks")} {
		names := slices.Sorted(maps.Keys(goldens.Cases))
		linear := slices.DeleteFunc(slices.Clone(names), func(name string) bool { return !strings.HasSuffix(name, "/linear") }) // of every kind of layers
		rest := slices.DeleteFunc(names, func(name string) bool { return slices.Contains(linear, name) })
		for _, name := range append(linear, testsample.Of(t, rest, 3)...) {
			c := goldens.Cases[name]
			architecture, _, named := strings.Cut(name, "/")
			if !named {
				architecture = "llama"
			}
			export := shownExports[architecture]
			if strings.HasSuffix(name, "randomized") {
				export = "llama__dynamo18-nocache" // it is for whole texts
			}
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				r := methodRun{eng: eng, goldens: goldens, name: name, architecture: architecture, export: export, MethodCase: c, worst: map[string]float64{}}
				r.all(t)
				mu.Lock()
				defer mu.Unlock()
				rows = append(rows, r.row())
			})
		}
	}
}

// writeMethodTable logs the table of TestMethodGoldens, and writes it where a flag asks for it.
func writeMethodTable(t *testing.T, rows []string) {
	slices.Sort(rows)
	table := "| model | method | oracle | " + strings.Join(columns, " | ") + " |\n|" + strings.Repeat("---|", 3+len(columns)) + "\n" + strings.Join(rows, "")
	t.Log("\n" + table)
	if *methodTable != "" {
		if err := os.WriteFile(*methodTable, []byte(table), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

// columns of the table. Prefill and decode are of a text alone.
// All are with the op library, but for one: all the same calls without it.
var columns = []string{"prefill", "decode", "batch", "padding", "rotated", "raw", "fixed", "onnx", "no library", "at 131,071"}

// methodRun is one case on one export.
type methodRun struct {
	kit.MethodCase
	eng                        engine.Engine
	goldens                    kit.MethodGoldens
	name, architecture, export string

	worst map[string]float64 // by column
	ratio float64            // at 131,071: of the op's error to plain float32's
}

// all fills the columns.
func (r *methodRun) all(t *testing.T) {
	opts := r.Options(t, r.goldens)
	path, report := kit.Patch(t, kit.Model(r.export), opts)
	defer r.far(t, report, opts)
	d := r.open(t, path)
	if strings.HasSuffix(r.name, "_run") {
		r.run(t, d, "raw")
		opts.Cache.Capacity = 48
		path, _ = kit.Patch(t, kit.Model(r.export), opts)
		r.run(t, r.open(t, path), "fixed")
		opts.Cache.Capacity, opts.Target = 0, rewrite.PlainONNX
		path, _ = kit.Patch(t, kit.Model(r.export), opts)
		r.run(t, r.open(t, path), "onnx")
		return
	}
	raw := slices.Contains(report.Edits, "cache raw")
	both := []kit.Golden{r.golden(t, false), r.golden(t, true)}
	own := "rotated"
	if raw {
		own = "raw"
	}
	for _, g := range both {
		column := "batch"
		if g.Padded {
			column = "padding"
		}
		r.note(t, d, g, []int64{48}, column)
		if d.Cached() {
			r.note(t, d, g, kit.ThenDecode, column, own)
			r.note(t, d, g, kit.Ways["two chunks"], column, own)
		}
	}
	alone := first(both[0])
	r.note(t, d, alone, []int64{48}, "prefill")
	if d.Cached() {
		r.note(t, d, alone, kit.Ways["token by token"], "decode", own)
		r.note(t, d, alone, kit.ThenDecode, "decode", own)
		opts.Cache.Capacity = 48
		r.cached(t, opts, both, "fixed")
		if opts.Cache.Capacity = 0; !raw && !strings.Contains(r.name, "reset") && r.name != "intra" { // a raw cache knows no restarts
			opts.Cache.Raw = true
			r.cached(t, opts, both, "raw")
			opts.Cache.Raw = false
		}
	}
	opts.Target = rewrite.PlainONNX
	r.cached(t, opts, both, "onnx")
}

// run fills the columns of a method that goes by the length of each call: one
// call for the whole text is what transformers computes, and each step that of
// an eager float64 model which keeps raw keys and turns them all by the call's
// frequencies.
func (r *methodRun) run(t *testing.T, d opened, cache string) {
	t.Helper()
	steps := append([]int64{r.goldens.RunPrefill}, slices.Repeat([]int64{1}, int(48-r.goldens.RunPrefill))...)
	name := r.name
	for _, padded := range []bool{false, true} {
		batch := "batch"
		if padded {
			batch = "padding"
		}
		r.name = name
		g := r.golden(t, padded)
		r.note(t, d, g, steps, batch, cache)
		if !padded {
			r.note(t, d, first(g), steps, "decode", cache)
		}
		r.name = name + "_full"
		g = r.golden(t, padded)
		r.note(t, d, g, []int64{48}, batch)
		if !padded {
			r.note(t, d, first(g), []int64{48}, "prefill")
		}
	}
	r.name = name
}

// far fills the last column.
func (r *methodRun) far(t *testing.T, report *rewrite.Report, opts rewrite.Options) {
	t.Helper()
	for _, s := range report.Sites {
		a := *s.Attention
		for _, e := range opts.Edits {
			a = r.applied(t, a, e, opts)
		}
		for _, e := range opts.LayerEdits {
			if e.Layers != nil && e.Layers(s.Layer) {
				a = r.applied(t, a, e.Spec, opts)
			}
		}
		op, plain := far(t, r.eng, a)
		r.ratio = max(r.ratio, op/plain)
		if op > 2*plain {
			t.Errorf("at 131,071: off by %.2g, plain float32 by %.2g", op, plain)
		}
	}
}

func (r *methodRun) applied(t *testing.T, a rope.Attention, s rope.Spec, opts rewrite.Options) rope.Attention {
	t.Helper()
	edited, _, err := s.Apply(a, opts.Context)
	if err != nil {
		t.Fatal(err)
	}
	return edited
}

// cached notes the decoding of another patched model.
func (r *methodRun) cached(t *testing.T, opts rewrite.Options, both []kit.Golden, column string) {
	t.Helper()
	path, _ := kit.Patch(t, kit.Model(r.export), opts)
	if opts.Target == rewrite.PlainONNX {
		kit.NoCustomNodes(t, path)
	}
	d := r.open(t, path)
	way := kit.ThenDecode
	if strings.Contains(strings.Join(r.Edits, " "), "positions randomized") {
		way = []int64{48} // whole texts only
	}
	for _, g := range both {
		r.note(t, d, g, way, column)
	}
}

func (r *methodRun) open(t *testing.T, path string) opened {
	t.Helper()
	return opened{r.openWith(t, r.eng, path), r.openWith(t, kit.Unregistered{Engine: r.eng}, path)}
}

func (r *methodRun) openWith(t *testing.T, eng engine.Engine, path string) *decoder.Decoder {
	t.Helper()
	d, err := decoder.Open(context.Background(), eng, path, decoder.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { d.Close() })
	return d
}

// opened is a model in two decoders.
type opened struct {
	*decoder.Decoder                  // where the op library is registered
	unregistered     *decoder.Decoder // where it is not
}

// golden reads the inputs and what they must give.
func (r *methodRun) golden(t *testing.T, padded bool) kit.Golden {
	t.Helper()
	g := kit.ReadGolden(t, "llama", "plain", padded) // the inputs are the same for all
	if r.Documents() {
		g = kit.ReadMaskGolden(t, "llama", "anchor", "documents", padded)
	}
	suffix := ""
	if padded {
		suffix = "_pad"
	}
	var err error
	if g.Want, _, err = r.goldens.Logits.Float32(r.name + suffix); err != nil {
		t.Fatal(err)
	}
	return g
}

// first is the first text of a batch of two.
func first(g kit.Golden) kit.Golden {
	s := &g.Sequence
	s.Batch = 1
	s.IDs, s.Mask, s.Positions = s.IDs[:s.Length], s.Mask[:s.Length], s.Positions[:s.Length]
	if s.Documents != nil {
		s.Documents = s.Documents[:s.Length]
	}
	g.Want = g.Want[:len(g.Want)/2]
	return g
}

// note compares one way of running, with the op library and without, and keeps the
// largest error of each column.
func (r *methodRun) note(t *testing.T, d opened, g kit.Golden, chunks []int64, columns ...string) {
	t.Helper()
	compare := func(d *decoder.Decoder, columns ...string) {
		t.Helper()
		off := kit.SparseDistance(t, g, kit.Chunked(t, d, g.Sequence, chunks), g.Want, r.goldens.Step)
		if !(off <= 1e-4) {
			t.Errorf("%v, %d texts in %d calls, padded %v: off by %.2g", columns, g.Sequence.Batch, len(chunks), g.Padded, off)
		}
		for _, c := range columns {
			r.worst[c] = max(r.worst[c], off)
		}
	}
	compare(d.Decoder, columns...)
	compare(d.unregistered, "no library")
}

// row writes the case as a line of the table.
func (r *methodRun) row() string {
	method := strings.Join(r.Edits, ", ")
	if r.Parameters != nil {
		method = "by type of layer: " + strings.TrimPrefix(r.name, r.architecture+"/")
	}
	if method == "" {
		method = "none"
	}
	cells := []string{strings.ReplaceAll(r.export, "__", ", "), "`" + short(method) + "`", strings.Fields(r.Oracle)[0]}
	for _, c := range columns {
		switch off, ok := r.worst[c]; {
		case c == "at 131,071":
			cells = append(cells, fmt.Sprintf("× %.2f", r.ratio))
		case ok:
			cells = append(cells, fmt.Sprintf("%.1e", off))
		default:
			cells = append(cells, "—")
		}
	}
	return "| " + strings.Join(cells, " | ") + " |\n"
}

// short leaves lists out.
func short(text string) string {
	text = strings.ReplaceAll(text, "original_max_position_embeddings", "L0")
	for {
		begin, end := strings.Index(text, "=["), strings.Index(text, "]")
		if begin < 0 || end < begin {
			return strings.ReplaceAll(strings.ReplaceAll(text, "=(", "=["), ")", "]")
		}
		text = text[:begin] + "=(…)" + text[end+1:]
	}
}

// Other exports decode as their oracles say by methods that reach every part
// of the op.
func TestMethodsOnOtherExports(t *testing.T) {
	t.Parallel()
	testruntime.Require(t)
	eng := kit.Local(t)
	type on struct{ goldens, name, export string }
	var all []on
	for _, name := range testsample.Of(t, []string{"yarn+dual-chunk", "self-extend", "longrope", "log-n", "first-keys_cache", "anchor+yarn", "yarn+string"}, 2) {
		all = append(all, on{"methods", name, "llama__dynamo23"}, on{"methods", name, "llama__genai-fp32"})
	}
	for _, name := range []string{"plain", "yarn", "string@1"} {
		all = append(all, on{"others", "gemma3_text/" + name, "gemma3_text__transformers/decode"})
	}
	for _, name := range []string{"plain", "yarn"} {
		all = append(all, on{"layers", "gpt_oss/" + name, "gpt_oss__transformers/decode"})
	}
	for _, c := range all {
		t.Run(c.name+"/"+c.export, func(t *testing.T) {
			goldens := kit.ReadMethodGoldens(t, c.goldens)
			architecture, _, _ := strings.Cut(c.export, "__")
			r := methodRun{eng: eng, goldens: goldens, name: c.name, architecture: architecture, export: c.export, MethodCase: goldens.Cases[c.name], worst: map[string]float64{}}
			both := []kit.Golden{r.golden(t, false)}
			if c.export != "llama__genai-fp32" { // its cache has no place for padding on the left
				both = append(both, r.golden(t, true))
			}
			r.cached(t, r.Options(t, goldens), both, "decode")
			t.Logf("off by %.2g", r.worst["decode"])
		})
	}
}
