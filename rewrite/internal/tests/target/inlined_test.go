package target_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/rope-rewrite/rope-rewrite/customop"
	"github.com/rope-rewrite/rope-rewrite/internal/testruntime"
	"github.com/rope-rewrite/rope-rewrite/internal/testsample"
	"github.com/rope-rewrite/rope-rewrite/onnx"
	"github.com/rope-rewrite/rope-rewrite/rewrite"
	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/tests/kit"
)

// What a model's own nodes cannot hold is written as the op's body: the result has neither
// ops nor functions, runs without the library, and gives what the op gives. The report
// says of each layer which of both was done, and why.
func TestTargetONNXInlined(t *testing.T) {
	t.Parallel()
	testruntime.Require(t)
	run := "scaling dynamic-linear:length=run,original_max_position_embeddings=16"
	for _, c := range testsample.Of(t, []struct {
		export string
		opts   rewrite.Options
		reason string
	}{
		{"llama__optimum", rewrite.Options{Edits: kit.Edits(t, []string{"positions string:shift=16,window=4"})}, "more than frequencies, gain and visible keys"},
		{"llama__optimum", rewrite.Options{Edits: kit.Edits(t, []string{"mask first-keys:window=8,positions=cache"})}, "more than frequencies, gain and visible keys"},
		{"llama__optimum", rewrite.Options{Edits: kit.Edits(t, []string{"scaling log-n:original_max_position_embeddings=16"})}, "more than frequencies, gain and visible keys"},
		{"llama__optimum", rewrite.Options{Cache: rewrite.Cache{Capacity: 48}}, "a cache of fixed capacity"},
		{"llama__optimum", rewrite.Options{Cache: rewrite.Cache{Raw: true}}, "more than frequencies, gain and visible keys"},
		{"llama__optimum", rewrite.Options{Numerics: rewrite.Numerics{Angles: "exact"}}, "its own nodes round angles to float32"},
		{"llama__genai-fp32", rewrite.Options{Edits: kit.Edits(t, []string{run})}, "tables of cosines"},
		{"llama__dynamo18-fp16", rewrite.Options{Edits: kit.Edits(t, []string{run})}, "its cache is not float32"},
		{"llama__genai-fp32", rewrite.Options{Edits: kit.Edits(t, []string{"mask sliding-window:window=8"})}, "(GroupQueryAttention)"},
		{"llama__dynamo23", rewrite.Options{Edits: kit.Edits(t, []string{"mask sliding-window:window=8"})}, "(Attention)"},
		{"qwen3__optimum", rewrite.Options{Edits: kit.Edits(t, []string{"positions string:shift=16,window=4"})}, "more than frequencies, gain and visible keys"},
	}, 3) {
		byOp, _ := kit.Patch(t, kit.Model(c.export), c.opts)
		c.opts.Target = rewrite.PlainONNX
		path, report := kit.Patch(t, kit.Model(c.export), c.opts)
		standardAlone(t, path)
		for _, s := range report.Sites {
			if s.Form != rewrite.Inlined || !strings.Contains(s.FormReason, c.reason) {
				t.Errorf("%s: layer %d is written as %q for %q, which lacks %q", c.export, s.Layer, s.Form, s.FormReason, c.reason)
			}
		}
		sameAsOp(t, c.export, path, byOp)
	}
}

// standardAlone fails where a model has the op, a function or a domain of the project's.
func standardAlone(t *testing.T, path string) {
	t.Helper()
	kit.NoCustomNodes(t, path)
	m := kit.OpenModel(t, path)
	if len(m.Functions) > 0 || m.Opset(customop.Domain) != 0 {
		t.Errorf("%s: %d functions, version %d of %s", path, len(m.Functions), m.Opset(customop.Domain), customop.Domain)
	}
}

// sameAsOp compares a model, run without the library, with one that holds the op.
func sameAsOp(t *testing.T, export, path, byOp string) {
	t.Helper()
	plain := kit.OpenPlainly(t, path)
	ops := kit.Open(t, byOp)
	architecture, _, _ := strings.Cut(export, "__")
	for _, padded := range []bool{false, true} {
		if padded && strings.Contains(export, "genai") {
			continue // its convention knows no padding on the left
		}
		g := kit.ReadGolden(t, architecture, "plain", padded)
		for _, way := range [][]int64{{48}, kit.ThenDecode} {
			bound := 1e-4
			if strings.HasSuffix(export, "-fp16") { // two computations of the rounding that the model has itself
				bound = 2 * g.Distance(t, kit.Chunked(t, kit.Open(t, kit.Model(export)), g.Sequence, way))
			}
			if off := kit.Largest(kit.Real(g, kit.Chunked(t, plain, g.Sequence, way)), kit.Real(g, kit.Chunked(t, ops, g.Sequence, way))); !(off <= bound) {
				t.Errorf("%s, padding %v, %v: off by %.2g from the op, at most %.2g was expected", export, padded, way, off, bound)
			}
		}
	}
}

// Layers that share constants and are to differ, or of which some are left alone, get the
// op's body. A layer whose own nodes can hold its method keeps them beside others.
func TestTargetONNXPerLayer(t *testing.T) {
	t.Parallel()
	testruntime.Require(t)
	const export = "llama__optimum"
	at := func(layer int, text string) rewrite.LayerEdit {
		return rewrite.LayerEdit{Spec: kit.Edits(t, []string{text})[0], Layers: func(i int) bool { return i == layer }}
	}
	for _, c := range []struct {
		name string
		opts rewrite.Options
		want []rewrite.Form
	}{
		{"one of two with the same constants", rewrite.Options{LayerEdits: []rewrite.LayerEdit{at(1, "scaling linear:factor=2")}}, []rewrite.Form{rewrite.OwnNodes, rewrite.Inlined}},
		{"a map in one, a mask in the other", rewrite.Options{LayerEdits: []rewrite.LayerEdit{at(0, "positions string:shift=16,window=4"), at(1, "mask sliding-window:window=8")}},
			[]rewrite.Form{rewrite.Inlined, rewrite.OwnNodes}},
	} {
		byOp, _ := kit.Patch(t, kit.Model(export), c.opts)
		c.opts.Target = rewrite.PlainONNX
		path, report := kit.Patch(t, kit.Model(export), c.opts)
		standardAlone(t, path)
		for i, s := range report.Sites {
			if s.Form != c.want[i] {
				t.Errorf("%s: layer %d is written as %q for %q, want %q", c.name, i, s.Form, s.FormReason, c.want[i])
			}
		}
		sameAsOp(t, export, path, byOp)
	}
	report, err := kit.Rewrite(context.Background(), kit.OpenModel(t, kit.Model(export)), rewrite.Options{Target: rewrite.PlainONNX, AllowUnchanged: true, Edits: kit.Edits(t, []string{"scaling linear:factor=2"}), Layers: func(i int) bool { return i == 1 }})
	if err != nil || report.Sites[0].Form != "" || report.Sites[1].Form != rewrite.Inlined {
		t.Errorf("one layer alone: %+v, %v", report.Sites, err)
	}
}

// A model that holds the op is written in standard operators as well. What was written so
// is shown by its record, and not rewritten again.
func TestTargetONNXAgain(t *testing.T) {
	t.Parallel()
	testruntime.Require(t)
	const export = "llama__optimum"
	opts := rewrite.Options{Edits: kit.Edits(t, []string{"positions string:shift=16,window=4"})}
	byOp, _ := kit.Patch(t, kit.Model(export), opts)
	path, report := kit.Patch(t, byOp, rewrite.Options{Target: rewrite.PlainONNX, Earlier: rewrite.Earlier{Carried: true}, Cache: rewrite.Cache{Raw: true}})
	standardAlone(t, path)
	for _, s := range report.Sites {
		if s.Form != rewrite.Inlined {
			t.Errorf("layer %d is written as %q", s.Layer, s.Form)
		}
	}
	sameAsOp(t, export, path, byOp)

	restored, _ := kit.Patch(t, byOp, rewrite.Options{Target: rewrite.PlainONNX, Earlier: rewrite.Earlier{Restore: true}})
	standardAlone(t, restored)
	original, _ := kit.Patch(t, kit.Model(export), rewrite.Options{})
	sameAsOp(t, export, restored, original)

	m := kit.OpenModel(t, path)
	seen, err := rewrite.Inspect(context.Background(), m, rewrite.Options{})
	if err != nil || len(seen.Sites) != 2 || seen.Sites[1].Form != rewrite.Inlined || seen.Sites[1].Theta != 10000 || !strings.Contains(strings.Join(seen.Edits, " "), "string") {
		t.Errorf("inspect says %+v, %v", seen, err)
	}
	for _, again := range []rewrite.Options{{Edits: kit.Edits(t, []string{"scaling linear:factor=2"})}, {Earlier: rewrite.Earlier{Restore: true}}} {
		_, err := kit.Rewrite(context.Background(), kit.OpenModel(t, path), again)
		if err == nil || !strings.Contains(err.Error(), "start from the original file") {
			t.Errorf("rewritten again: %v", err)
		}
	}
}

// What needs the op's body, and cannot have it, is refused with both reasons.
func TestTargetONNXRefuses(t *testing.T) {
	t.Parallel()
	testruntime.Require(t)
	for _, c := range []struct {
		opts rewrite.Options
		want string
	}{
		{rewrite.Options{Edits: kit.Edits(t, []string{"mask anchor"})}, "give --documents input"},
		{rewrite.Options{Documents: rewrite.Documents{Input: "ids"}}, "no mask uses the document ids"},
	} {
		m := kit.OpenModel(t, kit.Model("llama__optimum"))
		c.opts.Target = rewrite.PlainONNX
		_, err := kit.Rewrite(context.Background(), m, c.opts)
		if unfit := (*rewrite.EditError)(nil); !errors.As(err, &unfit) || !strings.Contains(err.Error(), c.want) {
			t.Errorf("error %v lacks %q", err, c.want)
		}
	}
}

// Where a model reads what attention gives to padded tokens that see no key, its own nodes
// may be changed, and the op's body may not take their place: it gives zeros there.
func TestTargetONNXKeepsReadersOfPadding(t *testing.T) {
	t.Parallel()
	testruntime.Require(t)
	p := kit.NewPatient(t, "llama__dynamo18")
	pooled := p.Node("ReduceMean", []string{p.Sites[1].Output(), p.Ints(2)}, onnx.IntAttr("keepdims", 1))
	p.Output(pooled)
	path := p.Saved()
	for method, want := range map[string]string{
		"scaling linear:factor=2":            "",
		"positions string:shift=16,window=4": kit.DependsOnPadding,
	} {
		opts := rewrite.Options{Target: rewrite.PlainONNX, Edits: kit.Edits(t, []string{method})}
		_, err := kit.Rewrite(context.Background(), kit.OpenModel(t, path), opts)
		if want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("%s: error %v, want %q", method, err, want)
		}
	}
}
