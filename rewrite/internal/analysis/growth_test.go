package analysis

import (
	"context"
	"strings"
	"testing"

	"github.com/rope-rewrite/rope-rewrite/internal/engine"
	"github.com/rope-rewrite/rope-rewrite/internal/largemodel"
	"github.com/rope-rewrite/rope-rewrite/internal/testruntime"
	"github.com/rope-rewrite/rope-rewrite/onnx"
	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/eval"
	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/ir"
	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/score"
	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/sharedengine"
	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/site"
)

// grown returns a small decoder of some layers in whose graph something is many.
func grown(t *testing.T, layers int64, crowd largemodel.Crowd) *onnx.Model {
	t.Helper()
	size := largemodel.Llama{Layers: layers, Heads: 4, KVHeads: 2, HeadSize: 8, Intermediate: 16, Vocabulary: 32, Theta: 10000, Crowd: crowd}
	path, _, err := size.Write(t.TempDir(), true)
	if err != nil {
		t.Fatal(err)
	}
	return openPath(t, path)
}

// TestGrowsWithTheGraph: what is allocated to read a graph, and to find, delimit
// and compare its attentions, grows as the graph does and not with its square.
func TestGrowsWithTheGraph(t *testing.T) {
	for name, model := range map[string]func(n int64) *onnx.Model{
		"nodes":     func(n int64) *onnx.Model { return grown(t, 2, largemodel.Crowd{Plain: 10 * n}) },
		"softmaxes": func(n int64) *onnx.Model { return grown(t, 2, largemodel.Crowd{Softmaxes: 10 * n}) },
		"softmaxes of one product": func(n int64) *onnx.Model {
			return grown(t, 2, largemodel.Crowd{Probabilities: 10 * n})
		},
		"layers of many angle nodes": func(n int64) *onnx.Model { return grown(t, n, largemodel.Crowd{Angles: 50 * n}) },
		"layers of many mask nodes":  func(n int64) *onnx.Model { return grown(t, n, largemodel.Crowd{MaskProducts: 50 * n}) },
	} {
		count := func(n int64) float64 {
			m := model(n)
			return testing.AllocsPerRun(1, func() {
				parts, err := site.Scopes(m)
				if err != nil {
					t.Fatal(err)
				}
				shared := map[string][32]byte{}
				for _, c := range parts[0].Found {
					if s, refusal := parts[0].Delimit(c); refusal == nil {
						s.Hash(parts[0].View, &eval.ShapeTable{}, shared)
					}
				}
			})
		}
		if small, large := count(20), count(80); large > 6*small {
			t.Errorf("%s: four times as many take %.0f allocations instead of %.0f", name, large, small)
		}
	}
}

// TestPiecesOfTooManyNodes: what takes minutes to be evaluated is kept at once.
func TestPiecesOfTooManyNodes(t *testing.T) {
	t.Parallel()
	testruntime.Require(t)
	local, err := engine.NewLocal(engine.Config{Threads: 1})
	if err != nil {
		t.Fatal(err)
	}
	for name, crowd := range map[string]largemodel.Crowd{"angles": {Angles: 10_001}, "masks": {MaskProducts: 10_001}} {
		found, err := Find(t.Context(), grown(t, 2, crowd), opened(local), Options{})
		if err != nil {
			t.Fatal(err)
		}
		a, err := found.Measure(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		for _, s := range a.Sites {
			if s.Unchanged != NotMeasured || !strings.Contains(s.Reason, "nodes, above the limit of 10000") {
				t.Errorf("%s: layer %d is %q: %s", name, s.Layer, s.Unchanged, s.Reason)
			}
		}
		if len(a.Sites) != 2 {
			t.Errorf("%s: %d sites", name, len(a.Sites))
		}
	}
}

// weighing is an engine that notes the bytes of the largest call.
type weighing struct {
	engine.Engine
	largest int64
}

func (w *weighing) Load(ctx context.Context, m engine.Model) (engine.Session, error) {
	s, err := w.Engine.Load(ctx, m)
	return &weighed{s, w}, err
}

type weighed struct {
	engine.Session
	by *weighing
}

func (s *weighed) Run(ctx context.Context, feeds map[string]engine.Tensor) (map[string]engine.Tensor, error) {
	results, err := s.Session.Run(ctx, feeds)
	sum := int64(0)
	for _, tensors := range []map[string]engine.Tensor{feeds, results} {
		for _, t := range tensors {
			sum += int64(len(t.Data))
		}
	}
	s.by.largest = max(s.by.largest, sum)
	return results, err
}

// TestManyHeads: what is fed and returned in one call grows with the heads, not
// with their square, and stays small although a mask is looked at with 131,072 keys.
func TestManyHeads(t *testing.T) {
	t.Parallel()
	testruntime.Require(t)
	local, err := engine.NewLocal(engine.Config{Threads: 1})
	if err != nil {
		t.Fatal(err)
	}
	largest := func(heads int64) int64 {
		size := largemodel.Llama{Layers: 1, Heads: heads, KVHeads: heads, HeadSize: 4, Intermediate: 16, Vocabulary: 32, Theta: 10000}
		path, _, err := size.Write(t.TempDir(), true)
		if err != nil {
			t.Fatal(err)
		}
		by := &weighing{Engine: local}
		found, err := Find(t.Context(), openPath(t, path), opened(by), Options{})
		if err != nil {
			t.Fatal(err)
		}
		a, err := found.Measure(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if s := a.Editable(); len(s) != 1 || s[0].Attention.Measured.Attention.Heads != int(heads) {
			t.Fatalf("%d heads: %+v", heads, a.Sites[0])
		}
		return by.largest
	}
	few, many := largest(128), largest(512)
	if many > 5*few {
		t.Errorf("four times as many heads take a call of %d MB instead of %d", many>>20, few>>20)
	}
	if many > 64<<20 {
		t.Errorf("512 heads take a call of %d MB", many>>20)
	}
}

// TestManyHeadsApart: of very many heads two are probed only where every head is
// treated alike.
func TestManyHeadsApart(t *testing.T) {
	t.Parallel()
	testruntime.Require(t)
	local, err := engine.NewLocal(engine.Config{Threads: 1})
	if err != nil {
		t.Fatal(err)
	}
	const heads = 2 * score.FewHeads
	for name, c := range map[string]struct {
		change func(m *onnx.Model, add *onnx.Node) // add is where the mask is added to scores
		reason string
	}{
		"alike": {func(m *onnx.Model, add *onnx.Node) {}, ""},
		"one head's bias": {func(m *onnx.Model, add *onnx.Node) {
			bias := make([]float32, heads)
			bias[heads-1] = 1
			m.Graph.AddInitializer(ir.Float32Tensor("bias", []int64{1, heads, 1, 1}, bias...))
			m.Graph.InsertNode(add, onnx.NewNode("Mul", []string{add.Inputs[0], "bias"}, []string{"biased"}))
			m.Graph.InsertNode(add, onnx.NewNode("Add", []string{"biased", add.Inputs[0]}, []string{"both"}))
			add.Inputs[0] = "both"
		}, "its mask is not understood"},
		"a norm over heads": {func(m *onnx.Model, add *onnx.Node) {
			m.Graph.AddInitializer(ir.Int64Tensor("axis", []int64{1}, 1))
			m.Graph.InsertNode(add, onnx.NewNode("ReduceMean", []string{add.Inputs[0], "axis"}, []string{"mean"}))
			m.Graph.InsertNode(add, onnx.NewNode("Sub", []string{add.Inputs[0], "mean"}, []string{"centred"}))
			add.Inputs[0] = "centred"
		}, "its mask is not understood"},
	} {
		size := largemodel.Llama{Layers: 1, Heads: heads, KVHeads: heads, HeadSize: 4, Intermediate: 16, Vocabulary: 32, Theta: 10000}
		path, _, err := size.Write(t.TempDir(), true)
		if err != nil {
			t.Fatal(err)
		}
		m := openPath(t, path)
		var add *onnx.Node
		for _, n := range m.Graph.Nodes {
			if n.OpType == "Softmax" {
				for _, a := range m.Graph.Nodes {
					if a.Outputs[0] == n.Inputs[0] {
						add = a
					}
				}
			}
		}
		c.change(m, add)
		found, err := Find(t.Context(), m, opened(local), Options{})
		if err != nil {
			t.Fatal(err)
		}
		unproven := &measurer{Found: found, outcomes: map[[32]byte]outcome{}}
		if err := unproven.measure(t.Context()); err != nil {
			t.Fatal(err)
		}
		if got := found.Sites[0].Reason; c.reason == "" != (got == "") || !strings.Contains(got, c.reason) {
			t.Errorf("%s: kept because %q; %q was expected", name, got, c.reason)
		}
	}
}

// opened is an engine that is open already.
func opened(eng engine.Engine) *sharedengine.Engine {
	return &sharedengine.Engine{Open: func(engine.Config) (engine.Engine, error) { return eng, nil }}
}

func openPath(t *testing.T, path string) *onnx.Model {
	t.Helper()
	m, err := onnx.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { m.Close() })
	return m
}
