package golden_test

import (
	"context"
	"math"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/rope-rewrite/rope-rewrite/internal/engine"
	"github.com/rope-rewrite/rope-rewrite/internal/npz"
	"github.com/rope-rewrite/rope-rewrite/internal/testruntime"
	"github.com/rope-rewrite/rope-rewrite/onnx"
	"github.com/rope-rewrite/rope-rewrite/rewrite"
	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/tests/kit"
	"github.com/rope-rewrite/rope-rewrite/rope"
)

// TestSections: a model whose tokens have three positions computes with each scaling what
// transformers does, with a picture in the text as without, for each target.
func TestSections(t *testing.T) {
	t.Parallel()
	testruntime.Require(t)
	f, err := npz.Open(filepath.Join(kit.Testdata, "coverage", "qwen2_vl.methods.npz"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	original := filepath.Join(kit.Testdata, "coverage", "qwen2_vl__ts17-cache", "model.onnx")
	for _, method := range []string{"linear:factor=4", "yarn:factor=4,original_max_position_embeddings=16"} {
		for _, target := range []rewrite.Target{rewrite.Ops, rewrite.PlainONNX} {
			m, err := onnx.Open(original)
			if err != nil {
				t.Fatal(err)
			}
			defer m.Close()
			report, err := kit.Rewrite(context.Background(), m, rewrite.Options{Edits: []rope.Spec{kit.Spec(t, rope.ScalingAxis, method)}, Target: target})
			if err != nil {
				t.Fatal(err)
			}
			for _, s := range report.Sites {
				if s.RotationOnly || !slices.Equal(s.Attention.Encoding.Axes, []int{0, 1, 2, 2}) {
					t.Errorf("layer %d turns by the axes %v: %s", s.Layer, s.Attention.Encoding.Axes, s.Reason)
				}
			}
			path := filepath.Join(t.TempDir(), "patched.onnx")
			if err := m.Save(path, onnx.SaveOptions{}); err != nil {
				t.Fatal(err)
			}
			if target == rewrite.PlainONNX {
				kit.NoCustomNodes(t, path)
			}
			for _, pad := range []string{"", "_pad"} {
				if off := sectionedDistance(t, f, path, pad, method); !(off <= 1e-4) {
					t.Errorf("%s%s as %s: off by %.2g from transformers", method, pad, target, off)
				} else {
					t.Logf("%s%s as %s: off by %.2g", method, pad, target, off)
				}
			}
		}
	}
}

// TestSectionsRefuse: what asks for one position of a token is refused, and so is what has
// no input for several.
func TestSectionsRefuse(t *testing.T) {
	t.Parallel()
	testruntime.Require(t)
	for method, axis := range map[string]rope.Axis{
		"string:shift=16,window=4": rope.PositionsAxis, "self-extend:group=4,window=8": rope.PositionsAxis, "log-n:original_max_position_embeddings=16": rope.ScalingAxis,
	} {
		m, err := onnx.Open(filepath.Join(kit.Testdata, "coverage", "qwen2_vl__ts17-cache", "model.onnx"))
		if err != nil {
			t.Fatal(err)
		}
		defer m.Close()
		_, err = kit.Rewrite(context.Background(), m, rewrite.Options{Edits: []rope.Spec{kit.Spec(t, axis, method)}})
		if err == nil || !strings.Contains(err.Error(), "gives each token several positions") {
			t.Errorf("%s: the error is %v", method, err)
		}
	}
	m, err := onnx.Open(filepath.Join(kit.Testdata, "coverage", "qwen2_vl__ts17-cache", "model.onnx"))
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close()
	if _, err = kit.Rewrite(context.Background(), m, rewrite.Options{Target: rewrite.Contrib}); err == nil || !strings.Contains(err.Error(), "several positions") {
		t.Errorf("the target contrib: the error is %v", err)
	}
}

// sectionedDistance runs a model on tokens with three positions each.
func sectionedDistance(t *testing.T, f *npz.File, path, pad, method string) float64 {
	t.Helper()
	want, _, err := f.Float32("logits" + pad + " " + method)
	if err != nil {
		t.Fatal(err)
	}
	m, err := onnx.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close()
	em := engine.Model{Path: path, Outputs: []string{m.Graph.Outputs[0].Name}}
	feeds := map[string]engine.Tensor{}
	var mask []int64
	for _, v := range m.Graph.Inputs {
		em.Inputs = append(em.Inputs, v.Name)
		name := map[string]string{"input_ids": "ids", "attention_mask": "mask", "position_ids": "pos"}[v.Name]
		if name == "" {
			feeds[v.Name] = engine.Tensor{Type: v.Type, Dims: []int64{2, v.Shape[1].Value, 0, v.Shape[3].Value}, Data: []byte{}}
			continue
		}
		values, shape, err := f.Int64(name + pad)
		if err != nil {
			t.Fatal(err)
		}
		var dims []int64
		for _, d := range shape {
			dims = append(dims, int64(d))
		}
		if name == "mask" {
			mask = values
		}
		feeds[v.Name] = engine.Int64s(values, dims...)
	}
	session, err := kit.Local(t).Load(context.Background(), em)
	if err != nil {
		t.Fatal(err)
	}
	defer session.Close()
	out, err := session.Run(context.Background(), feeds)
	if err != nil {
		t.Fatal(err)
	}
	got, worst := out[em.Outputs[0]].Values(), 0.0
	for i, x := range got {
		if mask[i/(len(got)/len(mask))] == 1 {
			worst = math.Max(worst, math.Abs(x-float64(want[i])))
		}
	}
	return worst
}

// TestLookalikeSections: positions of a token that are put together otherwise are no
// sections, and the rotation stays as well.
func TestLookalikeSections(t *testing.T) {
	t.Parallel()
	testruntime.Require(t)
	for name, c := range map[string]struct {
		made []*onnx.Node // of the first of a token's positions, "first", and all, "position_ids"
		want string       // what the reason says; "" is changed
	}{
		"the first of them": {[]*onnx.Node{onnx.NewNode("Identity", []string{"first"}, []string{"made"})}, ""},
		"their sum":         {[]*onnx.Node{onnx.NewNode("ReduceSum", []string{"position_ids", "axis"}, []string{"made"})}, "does not rotate as expected"},
		"the largest":       {[]*onnx.Node{onnx.NewNode("ReduceMax", []string{"position_ids"}, []string{"made"}, onnx.IntsAttr("axes", 0))}, "3 of a token's 3 positions"},
	} {
		t.Run(name, func(t *testing.T) {
			m, err := onnx.Open(filepath.Join(kit.Testdata, "coverage", "qwen2_vl__ts17-cache", "model.onnx"))
			if err != nil {
				t.Fatal(err)
			}
			defer m.Close()
			for _, n := range m.Graph.Nodes {
				for i, v := range n.Inputs {
					if v == "position_ids" && n.OpType != "Shape" {
						n.Inputs[i] = "together"
					}
				}
			}
			m.Graph.AddInitializer(onnx.NewTensor("axis", onnx.Int64, []int64{1}, make([]byte, 8)))
			m.Graph.AddInitializer(onnx.NewTensor("one", onnx.Int64, []int64{1}, []byte{1, 0, 0, 0, 0, 0, 0, 0}))
			nodes := append([]*onnx.Node{onnx.NewNode("Slice", []string{"position_ids", "axis", "one", "axis"}, []string{"first"})}, c.made...)
			nodes = append(nodes, onnx.NewNode("Concat", []string{"made", "made", "made"}, []string{"together"}, onnx.IntAttr("axis", 0)))
			m.Graph.Nodes = append(nodes, m.Graph.Nodes...)
			report, err := kit.Rewrite(context.Background(), m, rewrite.Options{Edits: []rope.Spec{kit.Spec(t, rope.ScalingAxis, "linear:factor=4")}, Target: rewrite.PlainONNX, AllowUnchanged: c.want != ""})
			if err != nil {
				t.Fatal(err)
			}
			for _, s := range report.Sites {
				if s.RotationOnly || (s.Status == rewrite.Rewritten) != (c.want == "") || !strings.Contains(s.Reason, c.want) {
					t.Errorf("layer %d is %s: %s; %q was expected", s.Layer, s.Status, s.Reason, c.want)
				}
			}
		})
	}
}
