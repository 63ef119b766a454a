package graphs_test

import (
	"testing"

	"github.com/rope-rewrite/rope-rewrite/onnx"
	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/dim"
	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/eval"
	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/graph"
	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/ir"
)

// hashes returns the structural hashes of a changed export's sites, with the
// sizes of the unchanged one.
func hashes(t *testing.T, change func(p *patient, table *eval.ShapeTable)) [][32]byte {
	t.Helper()
	return hashesOf(t, "llama__dynamo18-eager", change)
}

func hashesOf(t *testing.T, name string, change func(p *patient, table *eval.ShapeTable)) [][32]byte {
	t.Helper()
	p := newPatient(t, name)
	table := &eval.ShapeTable{
		Inputs: map[string][]dim.Extent{
			"input_ids":      {dim.BatchExtent, dim.LengthExtent},
			"attention_mask": {dim.BatchExtent, dim.TotalExtent},
			"position_ids":   {dim.BatchExtent, dim.LengthExtent},
		},
		Sizes: map[string][]dim.Extent{},
		Dims:  map[string][]dim.Extent{},
		Past:  true,
	}
	for _, s := range p.Sites {
		for _, v := range s.SizedValues() {
			table.Dims[v] = []dim.Extent{dim.BatchExtent, dim.ConstantExtent(4), dim.TotalExtent, dim.ConstantExtent(16)}
		}
	}
	if change != nil {
		change(p, table)
	}
	g, err := graph.New(p.Model)
	if err != nil {
		t.Fatal(err)
	}
	for _, n := range g.Nodes {
		if ir.Standard(n, "Shape") {
			if _, ok := table.Sizes[n.Outputs[0]]; !ok {
				table.Sizes[n.Outputs[0]] = []dim.Extent{dim.BatchExtent, dim.TotalExtent}
			}
		}
	}
	consts := map[string][32]byte{}
	var out [][32]byte
	for _, s := range p.Sites {
		out = append(out, s.Hash(g, table, consts))
	}
	return out
}

// replaceFloats puts another constant in the place of the one that a node reads.
func (p *patient) replaceFloats(n *onnx.Node, i int, change func(v []float32)) {
	old := p.Graph.Initializer(n.Inputs[i])
	v, err := old.Floats()
	if err != nil {
		p.TB.Fatal(err)
	}
	v = append([]float32{}, v...)
	change(v)
	n.Inputs[i] = p.Floats(old.Dims, v...)
}

func TestHashOfEqualSites(t *testing.T) {
	h := hashes(t, nil)
	if h[0] != h[1] {
		t.Error("the two layers of an export have different hashes")
	}
	if again := hashes(t, nil); again[0] != h[0] {
		t.Error("one site has two hashes")
	}
	// Names mean nothing.
	renamed := hashes(t, func(p *patient, _ *eval.ShapeTable) {
		for _, n := range p.Graph.Nodes {
			n.Name = "other " + n.Name
		}
		p.After(p.Sites[0].Scores(), func(v string) string {
			return v // read by the same nodes
		})
		scale := p.Up(p.Sites[0].SoftmaxInput(), "Mul")
		p.replaceFloats(scale, 1, func([]float32) {}) // the same constant under another name
	})
	if renamed[0] != h[0] {
		t.Error("names are part of the hash")
	}
	// What lies outside the site does not count.
	outside := hashes(t, func(p *patient, _ *eval.ShapeTable) {
		p.After(p.Sites[0].Query.Boundary, func(v string) string { return v })
		p.First("Softmax").Attributes = append([]*onnx.Attribute{}, p.First("Softmax").Attributes...)
		p.Output(p.Op("Mul", p.Sites[0].Output(), p.Float(2)))
	})
	if outside[0] != h[0] {
		t.Error("a reader of the output is part of the hash")
	}
}

func TestHashOfDifferentSites(t *testing.T) {
	plain := hashes(t, nil)
	for _, c := range []struct {
		name   string
		change func(p *patient, table *eval.ShapeTable)
	}{
		{"one bit of a constant", func(p *patient, _ *eval.ShapeTable) {
			p.replaceFloats(p.Up(p.Sites[0].SoftmaxInput(), "Mul"), 1, func(v []float32) { v[0] = nextUp(v[0]) })
		}},
		{"the shape of a constant", func(p *patient, _ *eval.ShapeTable) {
			n := p.Up(p.Sites[0].SoftmaxInput(), "Mul")
			v, err := p.Graph.Initializer(n.Inputs[1]).Floats()
			if err != nil {
				p.TB.Fatal(err)
			}
			n.Inputs[1] = p.Floats([]int64{1, 1, 1}, v[0])
		}},
		{"an attribute", func(p *patient, _ *eval.ShapeTable) { p.Sites[0].Softmax.SetAttribute(onnx.IntAttr("axis", 3)) }},
		{"an attribute of the cache", func(p *patient, _ *eval.ShapeTable) {
			p.Sites[0].Key.Cache.Concat.SetAttribute(onnx.IntAttr("axis", 2))
		}},
		{"an op", func(p *patient, _ *eval.ShapeTable) { p.Rotation(p.Sites[0].Query.Operand).Neg.OpType = "Identity" }},
		{"a domain", func(p *patient, _ *eval.ShapeTable) { p.Rotation(p.Sites[0].Query.Operand).Neg.Domain = "other" }},
		{"the order of inputs", func(p *patient, _ *eval.ShapeTable) {
			n := p.Rotation(p.Sites[0].Query.Operand)
			n.Cos.Inputs[1], n.Sin.Inputs[1] = n.Sin.Inputs[1], n.Cos.Inputs[1]
		}},
		{"the shape at a cut", func(p *patient, table *eval.ShapeTable) {
			table.Dims[p.Sites[0].Key.Boundary] = []dim.Extent{dim.BatchExtent, dim.ConstantExtent(2), dim.TotalExtent, dim.ConstantExtent(16)}
		}},
		{"a size that is read", func(p *patient, table *eval.ShapeTable) {
			v := p.Size(p.Sites[0].Key.Boundary, 0)
			p.After(p.Sites[0].Scores(), func(old string) string { return p.Op("Mul", old, p.Cast(v, onnx.Float)) })
		}},
		{"another integer input", func(p *patient, _ *eval.ShapeTable) {
			p.Graph.AddInput(&onnx.ValueInfo{Name: "other_ids", Type: onnx.Int64})
			for _, v := range []string{p.Sites[0].Query.Operand, p.Sites[0].Key.Cached()} {
				p.OtherTables(v, func(old string) string {
					return p.Op("Add", old, p.Op("Unsqueeze", p.Cast("other_ids", onnx.Float), p.Ints(2)))
				})
			}
		}},
		{"a node more", func(p *patient, _ *eval.ShapeTable) {
			n := p.Rotation(p.Sites[0].Query.Operand).Neg
			p.After(n.Outputs[0], func(old string) string { return p.Cast(old, onnx.Double) })
		}},
		{"the query in the place of the key", func(p *patient, _ *eval.ShapeTable) {
			p.Sites[0].Query.Boundary, p.Sites[0].Key.Boundary = p.Sites[0].Key.Boundary, p.Sites[0].Query.Boundary
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			h := hashes(t, c.change)
			if h[0] == plain[0] {
				t.Error("the changed site has the hash of the plain one")
			}
			if h[1] != plain[1] {
				t.Error("the other site's hash changed as well")
			}
		})
	}
}

// TestHashOfInputs: two layers that are alike but read different inputs.
func TestHashOfInputs(t *testing.T) {
	h := hashes(t, func(p *patient, table *eval.ShapeTable) {
		for i, s := range p.Sites {
			name := []string{"these", "those"}[i]
			p.Graph.AddInput(onnx.NewValueInfo(name, onnx.Int64, onnx.Dim{Param: "batch"}, onnx.Dim{Param: "sequence"}))
			table.Inputs[name] = []dim.Extent{dim.BatchExtent, dim.LengthExtent}
			p.Into(s.Softmax, 0, func(old string) string {
				return p.Op("Add", old, p.Op("Unsqueeze", p.Cast(name, onnx.Float), p.Ints(1, 3)))
			})
		}
	})
	if h[0] == h[1] {
		t.Error("two sites that read different inputs share a hash")
	}
}

// TestHashOfSubgraphs: a sub-graph that a node holds is not compared, so
// sites with one are never equal.
func TestHashOfSubgraphs(t *testing.T) {
	h := hashes(t, func(p *patient, _ *eval.ShapeTable) {
		for _, s := range p.Sites {
			p.After(s.Scores(), func(old string) string {
				branch := func(name string) *onnx.Graph {
					out := p.Fresh("branch")
					return &onnx.Graph{
						Name:    name,
						Nodes:   []*onnx.Node{onnx.NewNode("Identity", []string{old}, []string{out})},
						Outputs: []*onnx.ValueInfo{{Name: out, Type: onnx.Float}},
					}
				}
				return p.Node("If", []string{p.Op("Equal", p.Int(1), p.Int(1))},
					onnx.GraphAttr("then_branch", branch("then")), onnx.GraphAttr("else_branch", branch("else")))
			})
		}
	})
	if h[0] == h[1] {
		t.Error("two sites with sub-graphs share a hash")
	}
}
