package graphs_test

import (
	"context"
	"math"
	"os"
	"strings"
	"testing"

	"github.com/rope-rewrite/rope-rewrite/internal/engine"
	"github.com/rope-rewrite/rope-rewrite/internal/testruntime"
	"github.com/rope-rewrite/rope-rewrite/onnx"
	"github.com/rope-rewrite/rope-rewrite/rewrite"
	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/eval"
	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/fused"
	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/graph"
	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/ir"
	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/measure"
	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/prove"
	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/site"
	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/tests/kit"
)

// TestWrongExpansions spoils what an adapter says of its op, a little each time:
// the proof runs the op itself and sees it.
func TestWrongExpansions(t *testing.T) {
	t.Parallel()
	spoil := func(opType string, damage func(e *fused.Expansion)) []fused.Adapter {
		table := graph.Adapters()
		for i, a := range table {
			if a.OpType != opType {
				continue
			}
			table[i].Expand = func(n *onnx.Node, c fused.Context) (*fused.Expansion, error) {
				e, err := a.Expand(n, c)
				if err == nil {
					damage(e)
				}
				return e, err
			}
		}
		return table
	}
	each := func(op string, change func(n *onnx.Node)) func(e *fused.Expansion) {
		return func(e *fused.Expansion) {
			for _, n := range e.Nodes {
				if n.OpType == op {
					change(n)
				}
			}
		}
	}
	scaled := func(by float32) func(e *fused.Expansion) {
		return func(e *fused.Expansion) {
			for i, c := range e.Constants {
				if v, err := c.Floats(); err == nil && len(v) == 1 && v[0] == 0.25 {
					e.Constants[i] = ir.Float32Tensor(c.Name, []int64{}, 0.25*by)
				}
			}
		}
	}
	for _, c := range []struct {
		name   string
		table  []fused.Adapter
		reason string // "" is proven
	}{
		{"nothing", graph.Adapters(), ""},
		{"scale of 1.001", spoil("Attention", scaled(1.001)), "is off by"},
		{"mask negated", spoil("Attention", each("Where", func(n *onnx.Node) {
			if n.Inputs[0] == "expand" {
				n.Inputs[1], n.Inputs[2] = n.Inputs[2], n.Inputs[1]
			}
		})), "is off by"},
		{"rotated the other way", spoil("RotaryEmbedding", func(e *fused.Expansion) {
			each("Sub", func(n *onnx.Node) { n.OpType = "Add" })(e)
		}), "rotation"},
		{"both senses exchanged", spoil("RotaryEmbedding", func(e *fused.Expansion) {
			for _, n := range e.Nodes {
				switch n.OpType {
				case "Sub":
					n.OpType = "Add"
				case "Add":
					n.OpType = "Sub"
					n.Inputs[0], n.Inputs[1] = n.Inputs[1], n.Inputs[0]
				}
			}
		}), "is off by"},
	} {
		t.Run(c.name, func(t *testing.T) {
			err := proveFirst(t, "llama__dynamo23", c.table)
			switch {
			case c.reason == "" && err != nil:
				t.Error(err)
			case c.reason != "" && (err == nil || !strings.Contains(err.Error(), c.reason)):
				t.Errorf("the error is %v; %q was expected", err, c.reason)
			}
			t.Log(err)
		})
	}
}

// proveFirst measures and proves the first site of a model read with a table.
func proveFirst(t *testing.T, name string, table []fused.Adapter) error {
	t.Helper()
	testruntime.Require(t)
	ctx := context.Background()
	m := kit.OpenModel(t, "../../../../testdata/models/"+name+"/model.onnx")
	g, err := graph.NewWith(m, table)
	if err != nil {
		t.Fatal(err)
	}
	s, refusal := site.Delimit(g, *site.Find(g)[0].Core)
	if refusal != nil {
		t.Fatal(refusal)
	}
	eng, err := engine.NewWorker(engine.Config{Threads: 1}, os.Args[0])
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { eng.Close() })
	shapes, err := eval.MeasureShapes(ctx, eng, g, s.SizedValues())
	if err != nil {
		t.Fatal(err)
	}
	sized, shapes := site.Size([]*site.Site{s}, shapes)
	l := &eval.Evaluator{Graph: g, Loader: eval.Loader{Engine: eng, Table: shapes}}
	value, err := measure.Site(ctx, l, sized[0])
	if err != nil {
		return err
	}
	_, err = prove.Site(ctx, l, sized[0], value)
	return err
}

// TestOneRow: cosines that have one row for the whole batch, which ONNX Runtime
// takes at batch 1 only.
func TestOneRow(t *testing.T) {
	t.Parallel()
	testruntime.Require(t)
	for _, c := range []struct {
		name   string
		change func(p *patient)
	}{
		{"positions counted", func(p *patient) {
			past := p.Size("past_key_values.0.key", 2)
			row := p.Op("Unsqueeze", p.Op("Range", past, p.Op("Add", past, p.Size("input_ids", 1)), p.Int(1)), p.Ints(0))
			p.After("position_ids", func(string) string { return row })
		}},
		{"positions of the first row", func(p *patient) {
			p.After("position_ids", func(v string) string { return p.Op("Slice", v, p.Ints(0), p.Ints(1)) })
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			p := newPatient(t, "llama__dynamo23")
			// The export makes its frequencies as wide as the batch.
			for _, n := range p.All("Expand") {
				if n.Outputs[0] == p.Up(p.First("Cos").Inputs[0], "MatMul").Inputs[0] {
					p.After(n.Outputs[0], func(string) string { return n.Inputs[0] })
				}
			}
			c.change(p)
			report, err := kit.Rewrite(context.Background(), kit.OpenModel(t, p.Saved()), rewrite.Options{Evaluation: rewrite.Evaluation{Worker: []string{os.Args[0]}}, AllowUnchanged: true})
			if err != nil {
				t.Fatal(err)
			}
			for _, s := range report.Sites {
				switch {
				case s.Status != rewrite.Rewritten:
					t.Errorf("layer %d is unchanged: %s", s.Layer, s.Reason)
				case s.Proof.Skipped == 0 || !strings.Contains(s.Proof.SkippedWhy, "cos_cache"):
					t.Errorf("layer %d: %d cases are skipped because of %q", s.Layer, s.Proof.Skipped, s.Proof.SkippedWhy)
				default:
					t.Logf("%d of %d cases with one row: %s", s.Proof.Skipped, s.Proof.Cases, s.Proof.SkippedWhy)
				}
			}
		})
	}
}

// TestOwnFunction: a model that defines an op of a standard name itself.
func TestOwnFunction(t *testing.T) {
	p := newPatient(t, "llama__dynamo23")
	p.Functions = append(p.Functions, &onnx.Function{Name: "Attention", Domain: "ai.onnx"})
	g, err := graph.New(p.Model)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range site.Find(g) {
		if c.Refusal == nil || !strings.Contains(c.Refusal.Reason, "has its own function Attention") {
			t.Errorf("%v", c.Refusal)
		}
	}
}

// TestHashOfFusedOps: what a fused op is made of counts, and what its expansion
// does not show as well, since the proof runs the op itself.
func TestHashOfFusedOps(t *testing.T) {
	const name = "llama__dynamo23"
	plain := hashesOf(t, name, nil)
	if plain[0] != plain[1] {
		t.Error("the two layers of an export have different hashes")
	}
	for what, change := range map[string]func(attention, rotary *onnx.Node){
		"scale":             func(a, _ *onnx.Node) { a.SetAttribute(onnx.FloatAttr("scale", nextUp(0.25))) },
		"softcap":           func(a, _ *onnx.Node) { a.SetAttribute(onnx.FloatAttr("softcap", 50)) },
		"softmax precision": func(a, _ *onnx.Node) { a.SetAttribute(onnx.IntAttr("softmax_precision", 11)) },
		"no mask":           func(a, _ *onnx.Node) { a.Inputs = a.Inputs[:3] },
		"interleaved":       func(_, r *onnx.Node) { r.SetAttribute(onnx.IntAttr("interleaved", 1)) },
		"heads":             func(_, r *onnx.Node) { r.SetAttribute(onnx.IntAttr("num_heads", 2)) },
	} {
		t.Run(what, func(t *testing.T) {
			h := hashesOf(t, name, func(p *patient, _ *eval.ShapeTable) { change(p.Fused(0), p.First("RotaryEmbedding")) })
			if h[0] == plain[0] {
				t.Error("the changed site has the hash of the plain one")
			}
			if h[1] != plain[1] {
				t.Error("the other site's hash changed as well")
			}
		})
	}
}

// fusedAttribute sets an attribute of every layer's Attention.
func fusedAttribute(a *onnx.Attribute) func(p *patient) {
	return func(p *patient) { p.FusedEach(func(n *onnx.Node) { n.SetAttribute(a) }) }
}

// rotaries sets an attribute of every RotaryEmbedding.
func rotaries(a *onnx.Attribute) func(p *patient) {
	return func(p *patient) {
		for _, n := range p.All("RotaryEmbedding") {
			n.SetAttribute(a)
		}
	}
}

// TestHostileFusedOps: attributes that end ONNX Runtime's process are refused
// before it sees them.
func TestHostileFusedOps(t *testing.T) {
	testruntime.Require(t)
	for _, c := range []struct {
		name   string
		change func(p *patient)
		reason string
	}{
		{"no query heads", fusedAttribute(onnx.IntAttr("q_num_heads", 0)), "q_num_heads is 0"},
		{"2^40 query heads", fusedAttribute(onnx.IntAttr("q_num_heads", 1<<40)), "outside 1 to 65536"},
		{"-1 key heads", fusedAttribute(onnx.IntAttr("kv_num_heads", -1)), "kv_num_heads is -1"},
		{"2^40 heads to turn", rotaries(onnx.IntAttr("num_heads", 1<<40)), "outside 0 to 65536"},
		{"2^40 channels to turn", rotaries(onnx.IntAttr("rotary_embedding_dim", 1<<40)), "outside 0 to 65536"},
		{"more channels than there are", rotaries(onnx.IntAttr("rotary_embedding_dim", 64)), ""},
		{"heads that do not divide", func(p *patient) {
			p.Flatten(4)
			p.FusedEach(func(n *onnx.Node) {
				n.SetAttribute(onnx.IntAttr("q_num_heads", 7))
				n.SetAttribute(onnx.IntAttr("kv_num_heads", 7))
			})
		}, ""},
		{"NaN as scale", fusedAttribute(onnx.FloatAttr("scale", float32(math.NaN()))), "scale is NaN"},
	} {
		t.Run(c.name, func(t *testing.T) {
			p := newPatient(t, "llama__dynamo23")
			c.change(p)
			report, err := kit.Rewrite(context.Background(), kit.OpenModel(t, p.Saved()), rewrite.Options{Evaluation: rewrite.Evaluation{Worker: []string{os.Args[0]}}, AllowUnchanged: true})
			if err != nil {
				t.Fatal(err)
			}
			for _, s := range report.Sites {
				if s.Status == rewrite.Rewritten || !strings.Contains(s.Reason, c.reason) || strings.Contains(s.Reason, "ended its own process") {
					t.Errorf("layer %d is %s: %s; %q was expected", s.Layer, s.Status, s.Reason, c.reason)
				}
				t.Log(s.Reason)
			}
		})
	}
}
