package validate_test

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/rope-rewrite/rope-rewrite/internal/testruntime"
	"github.com/rope-rewrite/rope-rewrite/internal/testsample"
	"github.com/rope-rewrite/rope-rewrite/onnx"
	"github.com/rope-rewrite/rope-rewrite/rewrite"
	"github.com/rope-rewrite/rope-rewrite/rope"
	"github.com/rope-rewrite/rope-rewrite/validate"
)

// rewriter rewrites models with options.
func rewriter(t *testing.T, options rewrite.Options) func(*onnx.Model) error {
	options.Evaluation.Runtime, options.Evaluation.Library = testruntime.Paths(t)
	options.Evaluation.Worker = []string{os.Args[0]}
	return func(m *onnx.Model) error {
		_, err := rewrite.Rewrite(context.Background(), m, options)
		return err
	}
}

func edits(t *testing.T, axis rope.Axis, spec string) []rope.Spec {
	t.Helper()
	s, err := rope.ParseSpec(axis, spec)
	if err != nil {
		t.Fatal(err)
	}
	return []rope.Spec{s}
}

// A model with a method is measured by what it claims, and not by the original.
func TestAsClaimed(t *testing.T) {
	for name, c := range testsample.OfMap(t, map[string]struct {
		model   string
		options rewrite.Options
	}{
		"yarn":                 {"llama__optimum", rewrite.Options{Edits: edits(t, rope.ScalingAxis, "yarn:factor=4,original_max_position_embeddings=32")}},
		"of the configuration": {"llama__optimum", rewrite.Options{Edits: edits(t, rope.ScalingAxis, "yarn:factor=4"), Context: rope.Context{Original: 32}}},
		"of the context":       {"llama__optimum", rewrite.Options{Edits: edits(t, rope.PositionsAxis, "string:window=4"), Context: rope.Context{Length: 40}}},
		"dynamic":              {"llama__optimum", rewrite.Options{Edits: edits(t, rope.ScalingAxis, "dynamic:factor=2,original_max_position_embeddings=16,length=run")}},
		"string":               {"llama__optimum", rewrite.Options{Edits: edits(t, rope.PositionsAxis, "string:shift=12,window=4")}},
		"rerope":               {"llama__optimum", rewrite.Options{Edits: edits(t, rope.PositionsAxis, "rerope:window=8")}},
		"window":               {"gpt_neox__dynamo18", rewrite.Options{Edits: edits(t, rope.MaskAxis, "sliding-window:window=8")}},
		"anchor":               {"llama__optimum", rewrite.Options{Edits: edits(t, rope.MaskAxis, "anchor"), Documents: rewrite.Documents{Input: rewrite.DocumentsInput}}},
		"raw cache":            {"llama__optimum", rewrite.Options{Edits: edits(t, rope.ScalingAxis, "linear:factor=2"), Cache: rewrite.Cache{Raw: true}}},
		"16 bits":              {"llama__dynamo18-fp16", rewrite.Options{Edits: edits(t, rope.ScalingAxis, "linear:factor=2")}},
	}, 3) {
		original := path(c.model)
		result, err := run(t, original, edited(t, original, rewriter(t, c.options)), validate.Options{Length: 40})
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if result.Verdict != validate.AsClaimed || len(result.Claim.Layers) != 2 || len(result.Claim.Methods) != 1 {
			t.Errorf("%s: %s, %+v", name, result.Verdict, result.Claim)
		}
		if result.Same != (name == "anchor") { // every row is one document
			t.Errorf("%s: the logits are the original's: %v", name, result.Same)
		}
		for _, k := range result.Cases {
			if k.Rounding == 0 && name != "16 bits" || k.Rounding > 1e-3 {
				t.Errorf("%s, %s: rounding alone does %g", name, k.Name, k.Rounding)
			}
		}
	}
}

// A fault in a layer of a model with a method is named; one in a model without shows the layer, too.
func TestNotAsClaimed(t *testing.T) {
	original := path("llama__optimum")
	yarn := edited(t, original, rewriter(t, rewrite.Options{Edits: edits(t, rope.ScalingAxis, "yarn:factor=4,original_max_position_embeddings=32")}))
	same := edited(t, original, rewriter(t, rewrite.Options{}))
	other := frequencies(t, edited(t, original, rewriter(t, rewrite.Options{Edits: edits(t, rope.ScalingAxis, "yarn:factor=2,original_max_position_embeddings=32")})))
	last := func(change func(nodes []*onnx.Node)) func(*onnx.Model) error {
		return func(m *onnx.Model) error {
			var nodes []*onnx.Node
			for _, n := range m.Graph.Nodes {
				if n.OpType == "RotaryAttention" {
					nodes = append(nodes, n)
				}
			}
			change(nodes)
			return nil
		}
	}
	for name, c := range testsample.OfMap(t, map[string]struct {
		patched string
		change  func(nodes []*onnx.Node)
		verdict validate.Verdict
		layer   int
	}{
		"scores scaled by 1.01": {yarn, func(nodes []*onnx.Node) {
			nodes[1].SetAttribute(onnx.FloatAttr("scale", nodes[1].Float("scale", 0)*1.01))
		}, validate.NotAsClaimed, 1},
		"a frequency off by a thousandth": {yarn, func(nodes []*onnx.Node) {
			f := nodes[1].Floats("frequencies")
			f[1] *= 1.001
			nodes[1].SetAttribute(onnx.FloatsAttr("frequencies", f...))
		}, validate.NotAsClaimed, 1},
		"the method is not applied": {yarn, func(nodes []*onnx.Node) {
			nodes[0].SetAttribute(onnx.FloatsAttr("frequencies", frequencies(t, same)...))
		}, validate.NotAsClaimed, 0},
		"it has another factor": {yarn, func(nodes []*onnx.Node) {
			nodes[0].SetAttribute(onnx.FloatsAttr("frequencies", other...))
		}, validate.NotAsClaimed, 0},
		"blind to padding": {yarn, func(nodes []*onnx.Node) { nodes[1].Inputs[6] = "" }, validate.NotAsClaimed, -1},
		"without a method, scaled": {same, func(nodes []*onnx.Node) {
			nodes[1].SetAttribute(onnx.FloatAttr("scale", nodes[1].Float("scale", 0)*1.05))
		}, validate.Different, 1},
	}, 3) {
		result, err := run(t, original, edited(t, c.patched, last(c.change)), validate.Options{Length: 40})
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if result.Verdict != c.verdict || result.Claim == nil {
			t.Errorf("%s: %s, want %s (%v)", name, result.Verdict, c.verdict, result.Notes)
			continue
		}
		if c.layer < 0 && !strings.Contains(strings.Join(result.Notes, " "), "Not compared: layer") {
			t.Errorf("%s: nothing says what is wrong", name)
		}
		for _, l := range result.Claim.Layers {
			if l.Holds != (l.Layer != c.layer) {
				t.Errorf("%s: layer %d holds: %v (off by %g, plain %g)", name, l.Layer, l.Holds, l.Error, l.Plain)
			}
		}
	}
}

// The user's own tokens are fed, rows of unequal length among them.
func TestRows(t *testing.T) {
	for _, name := range []string{"llama__optimum", "llama__genai-fp32"} {
		original := path(name)
		patched := edited(t, original, rewriter(t, rewrite.Options{}))
		rows := [][]int64{{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12}, {5, 4, 3, 2, 1, 9, 8, 7, 6}, {7, 7, 7, 7, 7, 7, 7, 7, 7, 7}}
		result, err := run(t, original, patched, validate.Options{Rows: rows})
		if err != nil || result.Verdict != validate.Same {
			t.Errorf("%s: %+v, %v", name, result, err)
		}
	}
	_, err := run(t, path("llama__optimum"), path("llama__optimum"), validate.Options{Rows: [][]int64{{1, 2, 3, 4, 5, 6, 7, 8, 5000}}})
	if err == nil || err.Error() != "row 0 has the token 5000, but the model's tokens are 0 to 127" {
		t.Errorf("%v", err)
	}
}

// frequencies are those of a patched model's first layer.
func frequencies(t *testing.T, file string) []float32 {
	t.Helper()
	m, err := onnx.Open(filepath.Clean(file))
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close()
	for _, n := range m.Graph.Nodes {
		if n.OpType == "RotaryAttention" {
			return n.Floats("frequencies")
		}
	}
	t.Fatal("no op")
	return nil
}
