package target_test

import (
	"context"
	"errors"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/rope-rewrite/rope-rewrite/internal/engine"
	"github.com/rope-rewrite/rope-rewrite/internal/testruntime"
	"github.com/rope-rewrite/rope-rewrite/internal/testsample"
	"github.com/rope-rewrite/rope-rewrite/onnx"
	"github.com/rope-rewrite/rope-rewrite/onnx/opset"
	"github.com/rope-rewrite/rope-rewrite/rewrite"
	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/tests/kit"
	"github.com/rope-rewrite/rope-rewrite/rope"
)

// older saves an export as one against an older version would have been.
func older(t *testing.T, from string, version int64) string {
	t.Helper()
	m := kit.OpenModel(t, from)
	g := m.Graph
	constants := map[string]*onnx.Tensor{}
	for _, x := range g.Initializers {
		constants[x.Name] = x
	}
	var nodes []*onnx.Node
	for _, n := range g.Nodes {
		if x := n.Tensor("value"); x != nil {
			constants[n.Outputs[0]] = x
		}
		axes := version < 13 && slices.Contains([]string{"Unsqueeze", "Squeeze"}, n.OpType) || version < 18 && n.OpType == "ReduceMean"
		if axes && len(n.Inputs) > 1 {
			list, err := constants[n.Inputs[1]].Int64s()
			if err != nil {
				t.Fatal(err)
			}
			n.Inputs = n.Inputs[:1]
			n.SetAttribute(onnx.IntsAttr("axes", list...))
		}
		dropped := []string{"noop_with_empty_axes"}
		if version < 14 {
			dropped = append(dropped, "allowzero")
		}
		n.Attributes = slices.DeleteFunc(n.Attributes, func(a *onnx.Attribute) bool { return slices.Contains(dropped, a.Name) })
		switch {
		case n.OpType == "Softmax" && version < 13:
			n.SetAttribute(onnx.IntAttr("axis", 3))
		case n.OpType == "Shape" && version < 15 && len(n.Attributes) > 0:
			whole, part := n.Outputs[0]+"/whole", n.Outputs[0]
			for name, value := range map[string]int64{"/start": n.Int("start", 0), "/end": n.Int("end", 64)} {
				g.AddInitializer(onnx.NewTensor(part+name, onnx.Int64, []int64{1}, engine.Int64s([]int64{value}).Data))
			}
			nodes = append(nodes, onnx.NewNode("Shape", n.Inputs, []string{whole}))
			n = onnx.NewNode("Slice", []string{whole, part + "/start", part + "/end"}, []string{part})
		}
		nodes = append(nodes, n)
	}
	g.Nodes = nodes
	old := onnx.New()
	old.RequireIR(7)
	old.RequireOpset("", version)
	old.Graph = g
	out := filepath.Join(t.TempDir(), "older.onnx")
	if err := old.Save(out, onnx.SaveOptions{}); err != nil {
		t.Fatal(err)
	}
	return out
}

// Models against versions for which no definition can be written get one when they are
// raised, and compute what they computed.
func TestOperatorSetForDefinition(t *testing.T) {
	t.Parallel()
	testruntime.Require(t)
	for name, c := range testsample.OfMap(t, map[string]struct {
		export    string
		from, to  int64
		converted bool
		reason    string
	}{
		"16 bits":  {"llama__dynamo18-fp16", 14, 15, false, "uses opset 14, and a fallback for other types than float32 needs opset 15; --opset 15"},
		"two axes": {"llama__ts17", 12, 13, true, "the fallback needs opset 13, but the model uses opset 12; --opset 13"},
		"far":      {"llama__ts17", 12, 23, true, "needs opset 13"},
	}, 1) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			path := older(t, kit.Model(c.export), c.from)
			_, report := kit.Patch(t, path, rewrite.Options{})
			if report.OperatorSet != nil || report.Fallback == nil || !strings.Contains(report.Fallback.Reason, c.reason) {
				t.Errorf("without raising: %+v, %+v", report.OperatorSet, report.Fallback)
			}
			patched, report := kit.Patch(t, path, rewrite.Options{Output: rewrite.Output{OperatorSet: c.to}})
			if o := report.OperatorSet; o == nil || o.From != c.from || o.To != c.to || (o.Converted > 0) != c.converted {
				t.Errorf("the report says %+v", o)
			}
			if report.Fallback == nil || len(report.Fallback.Ops) != 1 {
				t.Errorf("the definition: %+v", report.Fallback)
			}
			m := kit.OpenModel(t, patched)
			if m.Opset("") != c.to {
				t.Errorf("it is written against version %d", m.Opset(""))
			}
			kit.SamePatched(t, kit.Model(c.export), m, 24)
		})
	}
}

// Exports of several routes are proven as before when they are raised, and their definitions
// with them. (All of testdata/models was raised by hand.)
func TestOperatorSetOfExports(t *testing.T) {
	t.Parallel()
	testruntime.Require(t)
	for _, export := range testsample.Of(t, []string{"llama__optimum", "qwen3__dynamo18", "llama__dynamo23", "llama__genai-fp32", "llama__optimum-ort"}, 2) {
		t.Run(export, func(t *testing.T) {
			t.Parallel()
			_, plain := kit.Patch(t, kit.Model(export), rewrite.Options{})
			patched, report := kit.Patch(t, kit.Model(export), rewrite.Options{Output: rewrite.Output{OperatorSet: 26}})
			if report.Fallback == nil || len(report.Fallback.Ops) == 0 {
				t.Errorf("the definition: %+v", report.Fallback)
			}
			for i, s := range report.Sites {
				if s.Proof.Cases != plain.Sites[i].Proof.Cases || s.Theta != plain.Sites[i].Theta || s.Mask != plain.Sites[i].Mask {
					t.Errorf("layer %d is proven as %+v, not as %+v", i, s, plain.Sites[i])
				}
			}
			if report.Record.Graph != plain.Record.Graph {
				t.Error("the record names another original")
			}
			kit.SamePatched(t, kit.Model(export), kit.OpenModel(t, patched), 24)
		})
	}
}

// Of functions, a model that is rewritten already, one at that version, and one above it.
func TestOperatorSetElsewhere(t *testing.T) {
	t.Parallel()
	testruntime.Require(t)
	yarn := []rope.Spec{kit.Spec(t, rope.ScalingAxis, "yarn:factor=4,original_max_position_embeddings=32")}
	first, _ := kit.Patch(t, kit.Model("llama__optimum"), rewrite.Options{Edits: yarn})
	again, report := kit.Patch(t, first, rewrite.Options{Earlier: rewrite.Earlier{Restore: true}, Output: rewrite.Output{OperatorSet: 21}})
	if report.OperatorSet == nil || report.OperatorSet.From != 18 || !report.Again {
		t.Errorf("a model that was rewritten before: %+v", report)
	}
	kit.SamePatched(t, kit.Model("llama__optimum"), kit.OpenModel(t, again), 24)

	_, report = kit.Patch(t, kit.Model("llama__optimum"), rewrite.Options{Output: rewrite.Output{OperatorSet: 18}})
	if report.OperatorSet != nil || !slices.ContainsFunc(report.Warnings, func(w string) bool { return strings.Contains(w, "the model already uses opset 18") }) {
		t.Errorf("at that version: %+v, %q", report.OperatorSet, report.Warnings)
	}
	m := kit.OpenModel(t, kit.Model("llama__optimum"))
	if report, err := rewrite.Inspect(context.Background(), m, rewrite.Options{Output: rewrite.Output{OperatorSet: 21}}); err != nil || report.OperatorSet != nil || m.Opset("") != 18 {
		t.Errorf("an inspection raised it to %d (%v)", m.Opset(""), err)
	}
	m = kit.OpenModel(t, kit.Model("llama__optimum"))
	_, err := kit.Rewrite(context.Background(), m, rewrite.Options{Output: rewrite.Output{OperatorSet: 17}})
	if unfit := (*rewrite.EditError)(nil); !errors.Is(err, opset.ErrLower) || !errors.As(err, &unfit) {
		t.Errorf("above it: %v", err)
	}
}
