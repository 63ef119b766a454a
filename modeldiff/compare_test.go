package modeldiff_test

import (
	"slices"
	"testing"

	"github.com/rope-rewrite/rope-rewrite/modeldiff"
	"github.com/rope-rewrite/rope-rewrite/onnx"
)

// first is the first difference of two models, by all three comparisons.
func first(t *testing.T, want, have *onnx.Model) *modeldiff.FileDifference {
	t.Helper()
	if d := modeldiff.CompareInterfaces(want, have); d != nil {
		return d
	}
	d, err := modeldiff.CompareGraphs(want, have, func(int64) error { return nil })
	if err == nil && d == nil {
		d, _, err = modeldiff.CompareRest(want, have)
	}
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// inner is the first graph inside a node.
func inner(m *onnx.Model) *onnx.Graph {
	for g := range m.Graph.AllGraphs() {
		if g != m.Graph {
			return g
		}
	}
	return nil
}

// rename gives a value of a model's own graph another name.
func rename(m *onnx.Model, from, to string) {
	for g := range m.Graph.AllGraphs() {
		for _, n := range g.Nodes {
			for _, list := range [][]string{n.Inputs, n.Outputs} {
				for i := range list {
					if list[i] == from {
						list[i] = to
					}
				}
			}
		}
		for _, v := range slices.Concat(g.ValueInfo, g.Outputs) {
			if v.Name == from {
				v.Name = to
			}
		}
		for _, w := range g.Initializers {
			if w.Name == from {
				w.Name = to
			}
		}
	}
}

// hidden is a value that a node makes, others read and the graph does not give out.
func hidden(m *onnx.Model) string {
	for _, n := range slices.Backward(m.Graph.Nodes) {
		name := n.Outputs[0]
		if n.OpType != "Constant" && !slices.ContainsFunc(m.Graph.Outputs, func(v *onnx.ValueInfo) bool { return v.Name == name }) {
			return name
		}
	}
	panic("no hidden value")
}

func open(t *testing.T, path string) *onnx.Model {
	t.Helper()
	m, err := onnx.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { m.Close() })
	return m
}

const (
	flat   = "../testdata/honest/none_resaved.onnx"
	nested = models + "/gpt_neox__dynamo18-merged/model.onnx"
)

// What may differ between two files that compute the same; docs/checking.md lists it.
func TestNoDifference(t *testing.T) {
	for name, change := range map[string]func(m *onnx.Model){
		"nothing":              func(*onnx.Model) {},
		"a value's name":       func(m *onnx.Model) { rename(m, hidden(m), "another") },
		"a weight's name":      func(m *onnx.Model) { rename(m, m.Graph.Initializers[0].Name, "another") },
		"names of nodes":       func(m *onnx.Model) { m.Graph.Nodes[3].Name = "another" },
		"the order of weights": func(m *onnx.Model) { slices.Reverse(m.Graph.Initializers) },
		"the order of attributes": func(m *onnx.Model) {
			for n := range m.Graph.AllNodes() {
				slices.Reverse(n.Attributes)
			}
		},
		"the order of nodes": func(m *onnx.Model) { // the first two read inputs alone
			m.Graph.Nodes[0], m.Graph.Nodes[1] = m.Graph.Nodes[1], m.Graph.Nodes[0]
		},
		"a weight as a node": func(m *onnx.Model) {
			w := m.Graph.Initializers[0]
			m.Graph.RemoveInitializers(func(t *onnx.Tensor) bool { return t == w })
			m.Graph.InsertNode(m.Graph.Nodes[0], onnx.NewNode("Constant", nil, []string{w.Name}, onnx.TensorAttr("value", w)))
		},
		"a weight that nothing reads": func(m *onnx.Model) {
			m.Graph.AddInitializer(onnx.NewTensor("spare", onnx.Float, []int64{1}, make([]byte, 4)))
		},
		"an import without nodes":  func(m *onnx.Model) { m.RequireOpset("com.example", 3) },
		"shapes that are left out": func(m *onnx.Model) { m.Graph.ValueInfo = nil },
		"a name that is said once": func(m *onnx.Model) {
			for _, v := range m.Graph.ValueInfo {
				if len(v.Shape) > 0 {
					v.Shape[0] = onnx.Dim{Param: "once"}
					return
				}
			}
		},
		"a function that nothing calls": func(m *onnx.Model) {
			m.Functions = append(m.Functions, &onnx.Function{Domain: "com.example", Name: "Spare"})
		},
	} {
		have := open(t, flat)
		change(have)
		if d := first(t, open(t, flat), have); d != nil {
			t.Errorf("%s: %s", name, d)
		}
	}
}

// Whatever else differs is named: nodes added anywhere, attributes, defaults, versions, names of outputs, types and shapes.
func TestDifference(t *testing.T) {
	number := func(name string, values ...byte) *onnx.Tensor {
		return onnx.NewTensor(name, onnx.Float, []int64{int64(len(values) / 4)}, values)
	}
	for name, c := range map[string]struct {
		path   string
		change func(m *onnx.Model)
	}{
		"a node that nothing reads": {flat, func(m *onnx.Model) {
			m.Graph.InsertNode(nil, onnx.NewNode("Identity", []string{"input_ids"}, []string{"spare"}))
		}},
		"a node between": {flat, func(m *onnx.Model) {
			name := hidden(m)
			for i, n := range m.Graph.Nodes {
				if at := slices.Index(n.Inputs, name); at >= 0 {
					n.Inputs[at] = "between"
					m.Graph.Nodes = slices.Insert(m.Graph.Nodes, i, onnx.NewNode("Identity", []string{name}, []string{"between"}))
					return
				}
			}
		}},
		"a node in a graph inside": {nested, func(m *onnx.Model) {
			g := inner(m)
			g.InsertNode(nil, onnx.NewNode("Identity", []string{"input_ids"}, []string{"spare"}))
		}},
		"an attribute in a graph inside": {nested, func(m *onnx.Model) {
			for _, n := range inner(m).Nodes {
				if n.Attribute("axis") != nil {
					n.SetAttribute(onnx.IntAttr("axis", 77))
					return
				}
			}
			panic("no axis")
		}},
		"the branches exchanged": {nested, func(m *onnx.Model) {
			for _, n := range m.Graph.Nodes {
				if n.OpType == "If" {
					n.Attributes[0].Name, n.Attributes[1].Name = n.Attributes[1].Name, n.Attributes[0].Name
				}
			}
		}},
		"a weight of a graph inside, covered": {nested, func(m *onnx.Model) {
			inner(m).AddInitializer(number(m.Graph.Initializers[0].Name, 0, 0, 128, 63))
		}},
		"an attribute more": {flat, func(m *onnx.Model) { m.Graph.Nodes[2].SetAttribute(onnx.IntAttr("axis", 1)) }},
		"an op's attribute": {flat, func(m *onnx.Model) {
			for _, n := range m.Graph.Nodes {
				if n.Domain != "" {
					n.SetAttribute(onnx.IntAttr("window", 70))
					return
				}
			}
		}},
		"an attribute twice": {flat, func(m *onnx.Model) {
			for _, n := range m.Graph.Nodes {
				if len(n.Attributes) > 0 {
					n.Attributes = append(n.Attributes, n.Attributes[0])
					return
				}
			}
		}},
		"inputs exchanged": {flat, func(m *onnx.Model) {
			for _, n := range m.Graph.Nodes {
				if n.OpType == "Pow" {
					slices.Reverse(n.Inputs)
					return
				}
			}
		}},
		"an op of another overload": {flat, func(m *onnx.Model) { m.Graph.Nodes[2].Overload = "other" }},
		"a weight of another type": {flat, func(m *onnx.Model) {
			for _, w := range m.Graph.Initializers {
				if w.Type == onnx.Float {
					w.Type = onnx.Int32
					return
				}
			}
		}},
		"two weights of one name": {flat, func(m *onnx.Model) { m.Graph.AddInitializer(m.Graph.Initializers[0]) }},
		"a default of an input": {flat, func(m *onnx.Model) {
			m.Graph.AddInitializer(onnx.NewTensor("input_ids", onnx.Int64, []int64{1, 1}, make([]byte, 8)))
		}},
		"a sparse default": {flat, func(m *onnx.Model) {
			m.Graph.SparseInitializers = append(m.Graph.SparseInitializers, sparse("input_ids"))
		}},
		"a sparse weight of a value": {flat, func(m *onnx.Model) {
			m.Graph.SparseInitializers = append(m.Graph.SparseInitializers, sparse(hidden(m)))
		}},
		"an output's name": {flat, func(m *onnx.Model) { rename(m, "logits", "scores") }},
		"outputs exchanged": {flat, func(m *onnx.Model) {
			o := m.Graph.Outputs
			o[1].Name, o[2].Name = o[2].Name, o[1].Name
		}},
		"an output more":        {flat, func(m *onnx.Model) { m.Graph.AddOutput(&onnx.ValueInfo{Name: hidden(m), Type: onnx.Float}) }},
		"an output's shape":     {flat, func(m *onnx.Model) { m.Graph.Outputs[0].Shape[0] = onnx.Dim{Value: 1} }},
		"an output says less":   {flat, func(m *onnx.Model) { m.Graph.Outputs[0].HasShape = false; m.Graph.Outputs[0].Shape = nil }},
		"an input's batch":      {flat, func(m *onnx.Model) { m.Graph.Inputs[0].Shape[0] = onnx.Dim{Value: 2} }},
		"an input's dimension":  {flat, func(m *onnx.Model) { m.Graph.Inputs[0].Shape[0] = onnx.Dim{Param: "rows"} }},
		"an input's type":       {flat, func(m *onnx.Model) { m.Graph.Inputs[0].Type = onnx.Int32 }},
		"inputs in other order": {flat, func(m *onnx.Model) { slices.Reverse(m.Graph.Inputs) }},
		"a shape inside": {flat, func(m *onnx.Model) {
			m.Graph.ValueInfo = append(m.Graph.ValueInfo, onnx.NewValueInfo(hidden(m), onnx.Float, onnx.Dim{Value: 1}, onnx.Dim{Value: 16}, onnx.Dim{Value: 128}))
		}},
		"two sizes called one": {flat, func(m *onnx.Model) {
			for _, v := range m.Graph.ValueInfo {
				for i := range v.Shape {
					v.Shape[i] = onnx.Dim{Param: "one"}
				}
			}
		}},
		"another version of operators": {flat, func(m *onnx.Model) { m.RequireOpset("", 19) }},
		"another version of ours":      {flat, func(m *onnx.Model) { m.RequireOpset("rope.rewrite", 2) }},
		"another format":               {flat, func(m *onnx.Model) { m.IRVersion = 3 }},
		"metadata":                     {flat, func(m *onnx.Model) { m.SetMetadata("ort_config", "{}") }},
		"an operator's function": {flat, func(m *onnx.Model) {
			m.Functions = append(m.Functions, &onnx.Function{Name: "MatMul", Inputs: []string{"a", "b"}, Outputs: []string{"c"}, Nodes: []*onnx.Node{onnx.NewNode("Add", []string{"a", "b"}, []string{"c"})}})
		}},
		"a node of the fallback": {flat, func(m *onnx.Model) {
			for _, n := range m.Functions[0].Nodes {
				if n.OpType == "Mul" {
					n.OpType = "Add"
					return
				}
			}
		}},
		"another fallback": {flat, func(m *onnx.Model) {
			m.Functions = append(m.Functions, &onnx.Function{Domain: "rope.rewrite", Name: "RotaryAttention_7"})
		}},
		"nodes in no order": {flat, func(m *onnx.Model) { slices.Reverse(m.Graph.Nodes) }},
	} {
		have := open(t, c.path)
		c.change(have)
		if d := first(t, open(t, c.path), have); d == nil || d.String() == "" {
			t.Errorf("%s: no difference is found", name)
		}
	}
}

func sparse(name string) *onnx.SparseTensor {
	return &onnx.SparseTensor{Values: onnx.NewTensor(name, onnx.Int64, []int64{1}, make([]byte, 8)), Indices: onnx.NewTensor("", onnx.Int64, []int64{1}, make([]byte, 8)), Dims: []int64{1, 1}}
}
