package damage_test

import (
	"context"
	"slices"
	"strings"
	"testing"

	"github.com/rope-rewrite/rope-rewrite/internal/testruntime"
	"github.com/rope-rewrite/rope-rewrite/internal/testsample"
	"github.com/rope-rewrite/rope-rewrite/onnx"
	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/eval"
	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/graph"
	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/ir"
	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/lower"
	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/measure"
	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/prove"
	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/site"
	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/tests/kit"
	"github.com/rope-rewrite/rope-rewrite/rope"
)

// measured is one site of a real export, ready to be proven.
type measured struct {
	evaluator *eval.Evaluator
	site      *site.Sized
	measured  *measure.Measured
}

// measureSite measures a site of a model after edit, if any, changed the model.
func measureSite(t *testing.T, name string, layer int, edit func(*onnx.Model)) measured {
	t.Helper()
	m, err := onnx.Open("../../../../testdata/models/" + name + "/model.onnx")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { m.Close() })
	if edit != nil {
		edit(m)
	}
	return measureModel(t, m, layer)
}

// measureModel measures a site of a model.
func measureModel(t *testing.T, m *onnx.Model, layer int) measured {
	t.Helper()
	testruntime.Require(t)
	ctx := context.Background()
	eng := kit.Local(t)
	g, err := graph.New(m)
	if err != nil {
		t.Fatal(err)
	}
	found := site.Find(g)
	s, refusal := site.Delimit(g, *found[layer].Core)
	if refusal != nil {
		t.Fatal(refusal)
	}
	table, err := eval.MeasureShapes(ctx, eng, g, s.SizedValues())
	if err != nil {
		t.Fatal(err)
	}
	sized, table := site.Size([]*site.Site{s}, table)
	l := &eval.Evaluator{Graph: g, Loader: eval.Loader{Engine: eng, Table: table}}
	value, err := measure.Site(ctx, l, sized[0])
	if err != nil {
		t.Fatal(err)
	}
	return measured{l, sized[0], value}
}

// prove lowers a value, lets damage spoil the wiring, and proves it.
func (m measured) prove(a rope.Attention, damage func(*lower.Binding)) error {
	w, err := lower.Bind(m.site, m.measured)
	if err != nil {
		return err
	}
	if damage != nil {
		damage(&w)
	}
	nodes, constants, err := lower.Nodes(w, a, lower.ExtraInputs{})
	if err != nil {
		return err
	}
	_, err = prove.Compare(context.Background(), m.evaluator, m.site, m.measured, nodes, constants)
	return err
}

// TestProofRefusesDamage spoils what was measured, a little each time, and
// expects the proof to see it.
func TestProofRefusesDamage(t *testing.T) {
	t.Parallel()
	for _, name := range testsample.Of(t, []string{"llama__optimum", "llama__dynamo18", "gpt_neox__dynamo18", "llama__dynamo23", "gpt_neox__dynamo18-fusions"}, 2) {
		m := measureSite(t, name, 0, nil)
		if err := m.prove(m.measured.Attention, nil); err != nil {
			t.Fatalf("%s: the undamaged site is refused: %v", name, err)
		}
		pairs := len(m.measured.Attention.Encoding.Frequencies)
		damages := map[string]func(*rope.Attention){
			"first frequency by 1e-3": func(a *rope.Attention) { a.Encoding.Frequencies[0] *= 1.001 },
			"last frequency by 1e-3":  func(a *rope.Attention) { a.Encoding.Frequencies[pairs-1] *= 1.001 },
			"scale by 1 %":            func(a *rope.Attention) { a.Scale *= 1.01 },
			"gain by 0.1 %":           func(a *rope.Attention) { a.Encoding.Gain = 1.001 },
			"layout":                  func(a *rope.Attention) { a.Encoding.Layout = rope.Interleaved },
			"one pair fewer":          func(a *rope.Attention) { a.Encoding.Frequencies = a.Encoding.Frequencies[:pairs-1] },
			"other sense":             func(a *rope.Attention) { negate(a.Encoding.Frequencies) },
			"a window of 200":         func(a *rope.Attention) { a.Mask.Window = 200 },
			"a window of 2":           func(a *rope.Attention) { a.Mask.Window = 2 },
			"not causal":              func(a *rope.Attention) { a.Mask.Causal = false },
			"padding ignored":         func(a *rope.Attention) { a.Mask.Padding = false },
		}
		for what, damage := range damages {
			t.Run(name+"/"+what, func(t *testing.T) {
				a := m.measured.Attention.Clone()
				damage(&a)
				refused(t, m.prove(a, nil))
			})
		}
		t.Run(name+"/one head", func(t *testing.T) {
			// The query's first two heads change places before they reach the op.
			w, err := lower.Bind(m.site, m.measured)
			if err != nil {
				t.Fatal(err)
			}
			order := make([]int64, m.measured.Attention.Heads)
			for h := range order {
				order[h] = int64(h)
			}
			order[0], order[1] = 1, 0
			swapped := onnx.NewNode("Gather", []string{w.Query, "order"}, []string{"swapped"}, onnx.IntAttr("axis", 1))
			w.Query = "swapped"
			nodes, constants, err := lower.Nodes(w, m.measured.Attention, lower.ExtraInputs{})
			if err != nil {
				t.Fatal(err)
			}
			nodes = append([]*onnx.Node{swapped}, nodes...)
			constants = append(constants, ir.Int64Tensor("order", []int64{int64(len(order))}, order...))
			_, err = prove.Compare(context.Background(), m.evaluator, m.site, m.measured, nodes, constants)
			refused(t, err)
		})
		t.Run(name+"/positions ignored", func(t *testing.T) {
			refused(t, m.prove(m.measured.Attention, func(w *lower.Binding) { w.Position = nil }))
		})
		if a := m.measured.Attention; a.Heads == a.KVHeads {
			t.Run(name+"/query and key exchanged", func(t *testing.T) {
				refused(t, m.prove(a, func(w *lower.Binding) { w.Query, w.Key = w.Key, w.Query }))
			})
			t.Run(name+"/key and value exchanged", func(t *testing.T) {
				refused(t, m.prove(a, func(w *lower.Binding) { w.Key, w.Value = w.Value, w.Key }))
			})
		}
	}
}

// windowed adds a sliding window to the causal comparison of a dynamo export:
// key ≤ query becomes key ≤ query and key > query − width.
func windowed(width int64) func(*onnx.Model) {
	return func(m *onnx.Model) {
		for _, n := range m.Graph.Nodes {
			if n.OpType != "LessOrEqual" {
				continue
			}
			key, query, mask := n.Inputs[0], n.Inputs[1], n.Outputs[0]
			n.Outputs[0] = mask + "_causal"
			m.Graph.AddInitializer(ir.Int64Tensor("width", []int64{}, width))
			next := m.Graph.Nodes[slices.Index(m.Graph.Nodes, n)+1]
			m.Graph.InsertNode(next, onnx.NewNode("Sub", []string{query, "width"}, []string{mask + "_first"}))
			m.Graph.InsertNode(next, onnx.NewNode("Greater", []string{key, mask + "_first"}, []string{mask + "_near"}))
			m.Graph.InsertNode(next, onnx.NewNode("And", []string{n.Outputs[0], mask + "_near"}, []string{mask}))
			return
		}
	}
}

// TestProofRefusesWindow spoils a window by one key either way.
func TestProofRefusesWindow(t *testing.T) {
	t.Parallel()
	for _, width := range testsample.Of(t, []int64{2, 20, 7000}, 2) {
		m := measureSite(t, "llama__dynamo18", 1, windowed(width))
		if got := m.measured.Attention.Mask; got != (rope.Mask{Causal: true, Padding: true, Window: width}) {
			t.Fatalf("width %d is measured as %+v", width, got)
		}
		if err := m.prove(m.measured.Attention, nil); err != nil {
			t.Fatalf("width %d: the undamaged site is refused: %v", width, err)
		}
		for _, by := range []int64{-1, 1} {
			a := m.measured.Attention.Clone()
			a.Mask.Window += by
			refused(t, m.prove(a, nil))
		}
	}
}

// TestProofRefusesModifiers spoils what becomes of scores between the product and
// the softmax: softcap, sinks and the model's own bias.
func TestProofRefusesModifiers(t *testing.T) {
	t.Parallel()
	testruntime.Require(t)
	for _, c := range []struct {
		name   string
		change func(p *kit.Patient)
		damage map[string]func(a *rope.Attention, w *lower.Binding)
	}{
		{
			"softcap", func(p *kit.Patient) { p.Product(func(old string) string { return p.Tanh(old, 3) }) },
			map[string]func(a *rope.Attention, w *lower.Binding){
				"no softcap":     func(a *rope.Attention, _ *lower.Binding) { a.Softcap = 0 },
				"softcap by 1 %": func(a *rope.Attention, _ *lower.Binding) { a.Softcap *= 1.01 },
			},
		},
		{
			"sinks", func(p *kit.Patient) { p.Sink(func(first string) string { return p.Op("Mul", first, p.Float(0)) }) },
			map[string]func(a *rope.Attention, w *lower.Binding){
				"no sinks":        func(a *rope.Attention, _ *lower.Binding) { a.Sinks = nil },
				"one sink by 1 %": func(a *rope.Attention, _ *lower.Binding) { a.Sinks[1] *= 1.01 },
				"sinks exchanged": func(a *rope.Attention, _ *lower.Binding) { a.Sinks[0], a.Sinks[1] = a.Sinks[1], a.Sinks[0] },
			},
		},
		{
			"bias", func(p *kit.Patient) { p.Chunked(5) },
			map[string]func(a *rope.Attention, w *lower.Binding){
				"no bias":            func(_ *rope.Attention, w *lower.Binding) { w.Bias = nil },
				"a window beside it": func(a *rope.Attention, _ *lower.Binding) { a.Mask.Window = 3 },
			},
		},
	} {
		p := kit.NewPatient(t, "llama__dynamo18")
		c.change(p)
		p.Saved()
		m := measureModel(t, p.Model, 0)
		if err := m.prove(m.measured.Attention, nil); err != nil {
			t.Fatalf("%s: the undamaged site is refused: %v", c.name, err)
		}
		for what, damage := range c.damage {
			t.Run(c.name+"/"+what, func(t *testing.T) {
				a := m.measured.Attention.Clone()
				damage(&a, &lower.Binding{Bias: &lower.Bias{}})
				refused(t, m.prove(a, func(w *lower.Binding) { damage(&rope.Attention{Sinks: make([]float64, 2)}, w) }))
			})
		}
	}
}

// refused expects an error that speaks of a measured difference, not of a
// broken test.
func refused(t *testing.T, err error) {
	t.Helper()
	if err == nil {
		t.Fatal("the proof accepts it")
	}
	if !strings.Contains(err.Error(), "is off by") {
		t.Fatalf("refused for another reason: %v", err)
	}
	t.Log(err)
}

func negate(list []float64) {
	for i := range list {
		list[i] = -list[i]
	}
}

// TestNearlyExactOriginal has a fused op that is off by half a unit in the last
// place: the op may be off by a whole one, and by no more.
func TestNearlyExactOriginal(t *testing.T) {
	epsilon := rope.Float32.Epsilon()
	e := prove.ResultErrors{Original: 5.96e-8, Op: 1.97e-7, Largest: 1.9}
	if err := e.JudgeLargest(epsilon); err != nil {
		t.Error(err)
	}
	if e.Op = 2.4e-7; e.JudgeLargest(epsilon) == nil {
		t.Error("an error of more than a unit in the last place is let through")
	}
}
