package again_test

import (
	"context"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/rope-rewrite/rope-rewrite/internal/decoder"
	"github.com/rope-rewrite/rope-rewrite/internal/testruntime"
	"github.com/rope-rewrite/rope-rewrite/internal/testsample"
	"github.com/rope-rewrite/rope-rewrite/onnx"
	"github.com/rope-rewrite/rope-rewrite/rewrite"
	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/tests/kit"
	"github.com/rope-rewrite/rope-rewrite/rope"
)

// A model that computes the logits of one token per row gives, token by token, those that
// it gives of all of them: by every target, in prefill, chunks and single tokens, with
// padding, and with a cache of fixed capacity.
func TestLastLogits(t *testing.T) {
	t.Parallel()
	testruntime.Require(t)
	for _, c := range testsample.Of(t, []struct {
		model  string
		target rewrite.Target
		opts   rewrite.Options
	}{
		{model: "llama__optimum"},
		{model: "llama__optimum", target: rewrite.PlainONNX},
		{model: "llama__optimum", target: rewrite.Contrib},
		{model: "llama__optimum", opts: rewrite.Options{Cache: rewrite.Cache{Capacity: 64}}},
		{model: "llama__optimum", opts: rewrite.Options{Cache: rewrite.Cache{Capacity: 64}}, target: rewrite.PlainONNX},
		{model: "llama__optimum-int8"},
		{model: "llama__dynamo18-fp16"},
		{model: "llama__dynamo18-nocache"},
		{model: "llama__dynamo23"},
		{model: "llama__genai-int4"},
		{model: "llama__genai-fp16", target: rewrite.Contrib},
		{model: "cohere__dynamo18"},
		{model: "gptj__ts17"},
		{model: "gemma3_text__dynamo18", target: rewrite.PlainONNX},
	}, 4) {
		name := strings.Join([]string{c.model, string(c.target)}, " ")
		if c.opts.Cache.Capacity > 0 {
			name += " fixed"
		}
		t.Run(name, func(t *testing.T) {
			opts := c.opts
			opts.Target, opts.AllowUnchanged = c.target, true
			if c.target == rewrite.Contrib {
				opts.Context.Length = 64
			}
			path, _ := kit.Patch(t, kit.Model(c.model), opts)
			all := kit.Open(t, path)
			opts.LogitsPlaces = rewrite.LogitsPlacesInput
			path, report := kit.Patch(t, kit.Model(c.model), opts)
			if !slices.Contains(report.Edits, "logits last:input=logits_places") {
				t.Errorf("the report has %q", report.Edits)
			}
			one := kit.Open(t, path)
			chunks := [][]int64{{24}, {17, 1, 6}}
			if !all.Cached() {
				chunks = chunks[:1]
			}
			for _, lengths := range chunks {
				s := all.Random(lengths[0], 24, 5)
				if c.target == rewrite.Contrib {
					s = unpadded(s)
				}
				want, err := all.Chunks(context.Background(), s, lengths...)
				if err != nil {
					t.Fatal(err)
				}
				got, err := one.Chunks(context.Background(), s, lengths...)
				if err != nil {
					t.Fatal(err)
				}
				// The product takes other blocks for one token than for many: float32 rounds
				// otherwise, nothing else differs.
				if off := kit.Largest(got, want); !(off <= 2e-6*rangeOf(want)) {
					t.Errorf("in %v: off by %.2g of a range of %.2g", lengths, off, rangeOf(want))
				}
			}
		})
	}
}

// unpadded is a sequence without padding.
func unpadded(s decoder.Sequence) decoder.Sequence {
	for i := range s.Mask {
		s.Mask[i], s.Positions[i] = 1, int64(i)%s.Length
	}
	return s
}

func rangeOf(x []float64) float64 { return slices.Max(x) - slices.Min(x) }

// A model whose head cannot be found or proven is refused with the reason, and nothing is
// written.
func TestLastLogitsRefuses(t *testing.T) {
	testruntime.Require(t)
	after := func(op string, more []string, attrs ...*onnx.Attribute) func(*onnx.Model) {
		return func(m *onnx.Model) {
			g := m.Graph
			for _, n := range g.Nodes {
				if n.Outputs[0] == "logits" {
					n.Outputs[0] = "scores"
				}
			}
			g.Nodes = append(g.Nodes, onnx.NewNode(op, append([]string{"scores"}, more...), []string{"logits"}, attrs...))
		}
	}
	for _, c := range []struct {
		want   string
		change func(*onnx.Model)
	}{
		// Look-alikes: each token's logits depend on other tokens.
		{"different logits alone than among others", after("Softmax", nil, onnx.IntAttr("axis", 1))},
		{"different logits alone than among others", after("CumSum", []string{"axis"})},
		{"not one row for each token", after("Transpose", nil, onnx.IntsAttr("perm", 1, 0, 2))},
		{`both "logits" and "more" may be the logits`, func(m *onnx.Model) {
			m.Graph.Nodes = append(m.Graph.Nodes, onnx.NewNode("Tanh", []string{"logits"}, []string{"more"}))
			m.Graph.AddOutput(onnx.NewValueInfo("more", onnx.Float, onnx.Dim{Param: "batch"}, onnx.Dim{Param: "length"}, onnx.Dim{Value: 128}))
		}},
		{`already has a value named "logits_places"`, func(m *onnx.Model) {
			m.Graph.Nodes = append(m.Graph.Nodes, onnx.NewNode("Identity", []string{"input_ids"}, []string{"logits_places"}))
		}},
		{"after the last product with weights", func(m *onnx.Model) {
			m.Graph.AddInput(onnx.NewValueInfo("bias", onnx.Float, onnx.Dim{Value: 128}))
			after("Add", []string{"bias"})(m)
		}},
		{"no output has the form", func(m *onnx.Model) { m.Graph.RemoveOutput("logits") }},
	} {
		m, err := onnx.Open(kit.Model("llama__optimum"))
		if err != nil {
			t.Fatal(err)
		}
		m.Graph.AddInitializer(onnx.NewTensor("axis", onnx.Int64, nil, []byte{1, 0, 0, 0, 0, 0, 0, 0}))
		c.change(m)
		_, err = kit.Rewrite(context.Background(), m, rewrite.Options{LogitsPlaces: rewrite.LogitsPlacesInput})
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%v; want %q", err, c.want)
		}
		m.Close()
	}
	m, err := onnx.Open(kit.Model("gpt_neox__dynamo18-merged"))
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close()
	if _, err = kit.Rewrite(context.Background(), m, rewrite.Options{LogitsPlaces: "at"}); err == nil || !strings.Contains(err.Error(), "in branches") {
		t.Errorf("a merged decoder: %v", err)
	}
}

// A patched model gets the logits of all tokens back when it is rewritten again or
// restored, and keeps those of one when what it carries is asked for.
func TestLastLogitsAgain(t *testing.T) {
	testruntime.Require(t)
	yarn := kit.Spec(t, rope.ScalingAxis, "yarn:factor=4")
	for _, target := range []rewrite.Target{rewrite.Ops, rewrite.PlainONNX} {
		with := rewrite.Options{Target: target, LogitsPlaces: "at", Edits: []rope.Spec{yarn}}
		path, _ := kit.Patch(t, kit.Model("llama__optimum"), with)
		without := rewrite.Options{Target: target, Edits: []rope.Spec{kit.Spec(t, rope.ScalingAxis, "linear:factor=2")}}
		direct, _ := kit.Patch(t, kit.Model("llama__optimum"), without)
		again, report := kit.Patch(t, path, without)
		if !slices.ContainsFunc(report.Warnings, func(w string) bool { return strings.Contains(w, "logits last:input=at") }) {
			t.Errorf("%s: the warnings %q do not name what is left out", target, report.Warnings)
		}
		if target != rewrite.Ops { // the constants of the model's own nodes have other names
			sameLogits(t, again, direct)
			continue
		}
		equalGraphs(t, again, direct)
		plain, _ := kit.Patch(t, kit.Model("llama__optimum"), rewrite.Options{})
		restored, _ := kit.Patch(t, path, rewrite.Options{Earlier: rewrite.Earlier{Restore: true}})
		equalGraphs(t, restored, plain)
		carried, report := kit.Patch(t, path, rewrite.Options{Earlier: rewrite.Earlier{Carried: true}, Edits: []rope.Spec{kit.Spec(t, rope.MaskAxis, "sliding-window:window=8")}})
		if !slices.Contains(report.Edits, "logits last:input=at") {
			t.Errorf("carried: %q", report.Edits)
		}
		direct, _ = kit.Patch(t, kit.Model("llama__optimum"), rewrite.Options{LogitsPlaces: "at", Edits: []rope.Spec{yarn, kit.Spec(t, rope.MaskAxis, "sliding-window:window=8")}})
		equalGraphs(t, carried, direct)
	}
}

// sameLogits fails unless two models give the same logits of every token, up to rounding.
func sameLogits(t *testing.T, a, b string) {
	t.Helper()
	one, other := kit.Open(t, a), kit.Open(t, b)
	s := one.Random(16, 16, 3)
	got, err := one.Chunks(context.Background(), s, 16)
	if err != nil {
		t.Fatal(err)
	}
	want, err := other.Chunks(context.Background(), s, 16)
	if err != nil {
		t.Fatal(err)
	}
	if off := kit.Largest(got, want); !(off <= 2e-6*rangeOf(want)) {
		t.Errorf("off by %.2g of a range of %.2g", off, rangeOf(want))
	}
}

// equalGraphs fails unless two files have the same graph.
func equalGraphs(t *testing.T, got, want string) {
	t.Helper()
	var digests [2]string
	for i, path := range []string{got, want} {
		m, err := onnx.Open(path)
		if err != nil {
			t.Fatal(err)
		}
		d := m.Digest()
		digests[i] = string(d[:])
		m.Close()
	}
	if digests[0] != digests[1] {
		t.Errorf("%s is another graph than %s", filepath.Base(got), filepath.Base(want))
	}
}
