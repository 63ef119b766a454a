package rewrite

import (
	"testing"

	"github.com/rope-rewrite/rope-rewrite/onnx"
)

// hashes returns the structural hashes of a changed export's sites, with the
// sizes of the unchanged one.
func hashes(t *testing.T, change func(p *patient, table *shapeTable)) [][32]byte {
	t.Helper()
	return hashesOf(t, "llama__dynamo18-eager", change)
}

func hashesOf(t *testing.T, name string, change func(p *patient, table *shapeTable)) [][32]byte {
	t.Helper()
	p := newPatient(t, name)
	table := &shapeTable{
		inputs: map[string][]extent{
			"input_ids":      {batchExtent, lengthExtent},
			"attention_mask": {batchExtent, totalExtent},
			"position_ids":   {batchExtent, lengthExtent},
		},
		sizes: map[string][]extent{},
		dims:  map[string][]extent{},
		past:  true,
	}
	for _, s := range p.sites {
		for _, v := range s.measured() {
			table.dims[v] = []extent{batchExtent, constantExtent(4), totalExtent, constantExtent(16)}
		}
	}
	if change != nil {
		change(p, table)
	}
	g, err := newGraph(p.Model)
	if err != nil {
		t.Fatal(err)
	}
	for _, n := range g.nodes {
		if standard(n, "Shape") {
			if _, ok := table.sizes[n.Outputs[0]]; !ok {
				table.sizes[n.Outputs[0]] = []extent{batchExtent, totalExtent}
			}
		}
	}
	consts := map[string][32]byte{}
	var out [][32]byte
	for _, s := range p.sites {
		out = append(out, s.hash(g, table, consts))
	}
	return out
}

// replaceFloats puts another constant in the place of the one that a node reads.
func (p *patient) replaceFloats(n *onnx.Node, i int, change func(v []float32)) {
	old := p.Graph.Initializer(n.Inputs[i])
	v, err := old.Floats()
	if err != nil {
		p.t.Fatal(err)
	}
	v = append([]float32{}, v...)
	change(v)
	n.Inputs[i] = p.floats(old.Dims, v...)
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
	renamed := hashes(t, func(p *patient, _ *shapeTable) {
		for _, n := range p.Graph.Nodes {
			n.Name = "other " + n.Name
		}
		p.after(p.sites[0].scores(), func(v string) string {
			return v // read by the same nodes
		})
		scale := p.up(p.sites[0].softmaxInput(), "Mul")
		p.replaceFloats(scale, 1, func([]float32) {}) // the same constant under another name
	})
	if renamed[0] != h[0] {
		t.Error("names are part of the hash")
	}
	// What lies outside the site does not count.
	outside := hashes(t, func(p *patient, _ *shapeTable) {
		p.after(p.sites[0].query.cut, func(v string) string { return v })
		p.first("Softmax").Attributes = append([]*onnx.Attribute{}, p.first("Softmax").Attributes...)
		p.output(p.op("Mul", p.sites[0].output(), p.float(2)))
	})
	if outside[0] != h[0] {
		t.Error("a reader of the output is part of the hash")
	}
}

func TestHashOfDifferentSites(t *testing.T) {
	plain := hashes(t, nil)
	for _, c := range []struct {
		name   string
		change func(p *patient, table *shapeTable)
	}{
		{"one bit of a constant", func(p *patient, _ *shapeTable) {
			p.replaceFloats(p.up(p.sites[0].softmaxInput(), "Mul"), 1, func(v []float32) { v[0] = nextUp(v[0]) })
		}},
		{"the shape of a constant", func(p *patient, _ *shapeTable) {
			n := p.up(p.sites[0].softmaxInput(), "Mul")
			v, err := p.Graph.Initializer(n.Inputs[1]).Floats()
			if err != nil {
				p.t.Fatal(err)
			}
			n.Inputs[1] = p.floats([]int64{1, 1, 1}, v[0])
		}},
		{"an attribute", func(p *patient, _ *shapeTable) { p.sites[0].softmax.SetAttribute(onnx.IntAttr("axis", 3)) }},
		{"an attribute of the cache", func(p *patient, _ *shapeTable) {
			p.sites[0].key.cache.concat.SetAttribute(onnx.IntAttr("axis", 2))
		}},
		{"an op", func(p *patient, _ *shapeTable) { p.rotation(p.sites[0].query.operand).neg.OpType = "Identity" }},
		{"a domain", func(p *patient, _ *shapeTable) { p.rotation(p.sites[0].query.operand).neg.Domain = "other" }},
		{"the order of inputs", func(p *patient, _ *shapeTable) {
			n := p.rotation(p.sites[0].query.operand)
			n.cos.Inputs[1], n.sin.Inputs[1] = n.sin.Inputs[1], n.cos.Inputs[1]
		}},
		{"the shape at a cut", func(p *patient, table *shapeTable) {
			table.dims[p.sites[0].key.cut] = []extent{batchExtent, constantExtent(2), totalExtent, constantExtent(16)}
		}},
		{"a size that is read", func(p *patient, table *shapeTable) {
			v := p.size(p.sites[0].key.cut, 0)
			p.after(p.sites[0].scores(), func(old string) string { return p.op("Mul", old, p.cast(v, onnx.Float)) })
		}},
		{"another integer input", func(p *patient, _ *shapeTable) {
			p.Graph.AddInput(&onnx.ValueInfo{Name: "other_ids", Type: onnx.Int64})
			for _, v := range []string{p.sites[0].query.operand, p.sites[0].key.stored()} {
				p.otherTables(v, func(old string) string {
					return p.op("Add", old, p.op("Unsqueeze", p.cast("other_ids", onnx.Float), p.ints(2)))
				})
			}
		}},
		{"a node more", func(p *patient, _ *shapeTable) {
			n := p.rotation(p.sites[0].query.operand).neg
			p.after(n.Outputs[0], func(old string) string { return p.cast(old, onnx.Double) })
		}},
		{"the query in the place of the key", func(p *patient, _ *shapeTable) {
			p.sites[0].query.cut, p.sites[0].key.cut = p.sites[0].key.cut, p.sites[0].query.cut
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
	h := hashes(t, func(p *patient, table *shapeTable) {
		for i, s := range p.sites {
			name := []string{"these", "those"}[i]
			p.Graph.AddInput(onnx.NewValueInfo(name, onnx.Int64, onnx.Dim{Param: "batch"}, onnx.Dim{Param: "sequence"}))
			table.inputs[name] = []extent{batchExtent, lengthExtent}
			p.into(s.softmax, 0, func(old string) string {
				return p.op("Add", old, p.op("Unsqueeze", p.cast(name, onnx.Float), p.ints(1, 3)))
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
	h := hashes(t, func(p *patient, _ *shapeTable) {
		for _, s := range p.sites {
			p.after(s.scores(), func(old string) string {
				branch := func(name string) *onnx.Graph {
					out := p.fresh("branch")
					return &onnx.Graph{
						Name:    name,
						Nodes:   []*onnx.Node{onnx.NewNode("Identity", []string{old}, []string{out})},
						Outputs: []*onnx.ValueInfo{{Name: out, Type: onnx.Float}},
					}
				}
				return p.node("If", []string{p.op("Equal", p.int(1), p.int(1))},
					onnx.GraphAttr("then_branch", branch("then")), onnx.GraphAttr("else_branch", branch("else")))
			})
		}
	})
	if h[0] == h[1] {
		t.Error("two sites with sub-graphs share a hash")
	}
}
