package onnx_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/rope-rewrite/rope-rewrite/onnx"
)

// calling is a model of one call of f, with an If around it where asked.
func calling(f ...*onnx.Function) *onnx.Model {
	m := onnx.New()
	m.RequireIR(8)
	m.RequireOpset("", 18)
	m.RequireOpset("own", 1)
	m.Functions = f
	for _, fn := range f {
		fn.Domain = "own"
		if fn.Opsets == nil {
			fn.Opsets = []onnx.Opset{{Domain: "", Version: 18}, {Domain: "own", Version: 1}}
		}
	}
	m.Graph.Inputs = []*onnx.ValueInfo{onnx.NewValueInfo("x", onnx.Float, onnx.Dim{Value: 2})}
	m.Graph.Outputs = []*onnx.ValueInfo{onnx.NewValueInfo("y", onnx.Float, onnx.Dim{Value: 2})}
	call := onnx.NewNode("F", []string{"x"}, []string{"y"}, onnx.IntAttr("to", 7))
	call.Domain, call.Name = "own", "here"
	m.Graph.Nodes = []*onnx.Node{call}
	return m
}

func own(op string, in, out []string, attrs ...*onnx.Attribute) *onnx.Node {
	n := onnx.NewNode(op, in, out, attrs...)
	n.Domain, n.Name = "own", op
	return n
}

func TestInline(t *testing.T) {
	refers := func(name, to string) *onnx.Attribute {
		return &onnx.Attribute{Name: name, RefName: to, Type: onnx.AttrInt}
	}
	inner := &onnx.Graph{Name: "g", Nodes: []*onnx.Node{
		onnx.NewNode("Neg", []string{"a"}, []string{"t"}), onnx.NewNode("Cast", []string{"t"}, []string{"u"}, refers("to", "to"))},
		Outputs: []*onnx.ValueInfo{{Name: "u"}}}
	f := &onnx.Function{Name: "F", Inputs: []string{"a", "missing"}, Outputs: []string{"z"}, AttributeNames: []string{"to", "absent"},
		Attributes: []*onnx.Attribute{onnx.IntAttr("axis", 3)},
		Nodes: []*onnx.Node{
			own("G", []string{"a"}, []string{"x"}), // x is a name of the caller too
			own("G", []string{"x"}, []string{"w"}),
			onnx.NewNode("Clip", []string{"w", "missing"}, []string{"v"}),
			onnx.NewNode("Softmax", []string{"v"}, []string{"s"}, refers("axis", "axis"), refers("left_out", "absent")),
			onnx.NewNode("If", []string{"s"}, []string{"z"}, onnx.GraphAttr("then_branch", inner)),
		}}
	g := &onnx.Function{Name: "G", Inputs: []string{"a"}, Outputs: []string{"b"}, Nodes: []*onnx.Node{
		onnx.NewNode("Exp", []string{"a"}, []string{"x"}), onnx.NewNode("Log", []string{"x"}, []string{"b"})}}
	m := calling(f, g)
	call := m.Graph.Nodes[0]
	calls, err := m.Inline(m.Functions)
	if err != nil {
		t.Fatal(err)
	}
	if len(calls) != 1 || calls[0].Call != call || calls[0].Graph != m.Graph || !slices.Equal(calls[0].Nodes, m.Graph.Nodes) {
		t.Fatalf("calls %+v", calls)
	}
	var ops []string
	made := map[string]bool{"x": true, "": true}
	for n := range m.Graph.AllNodes() {
		ops = append(ops, n.OpType)
		for _, v := range n.Inputs {
			if !made[v] && n.OpType != "Neg" {
				t.Errorf("%s reads %q, which nothing made", n.OpType, v)
			}
		}
		for _, v := range n.Outputs {
			if made[v] {
				t.Errorf("%q is made twice", v)
			}
			made[v] = true
		}
	}
	if got := strings.Join(ops, " "); got != "Exp Log Exp Log Clip Softmax If Neg Cast" {
		t.Errorf("nodes %s", got)
	}
	nodes := m.Graph.Nodes
	if a := nodes[5].Attributes; len(a) != 1 || a[0].Name != "axis" || a[0].Int != 3 || a[0].RefName != "" {
		t.Errorf("Softmax has %+v", a)
	}
	then := nodes[6].Graph("then_branch")
	if then.Nodes[0].Inputs[0] != "x" || then.Nodes[1].Int("to", 0) != 7 || then.Outputs[0].Name != then.Nodes[1].Outputs[0] || then == inner {
		t.Errorf("the graph inside is %+v, %+v", then.Nodes[0], then.Nodes[1])
	}
	if nodes[4].Inputs[1] != "" || nodes[6].Outputs[0] != "y" {
		t.Errorf("an input that is left out became %q, the output %q", nodes[4].Inputs[1], nodes[6].Outputs[0])
	}
}

func TestInlinePassesThrough(t *testing.T) {
	m := calling(&onnx.Function{Name: "F", Inputs: []string{"a"}, Outputs: []string{"a"}})
	if _, err := m.Inline(m.Functions); err != nil {
		t.Fatal(err)
	}
	if n := m.Graph.Nodes; len(n) != 1 || n[0].OpType != "Identity" || n[0].Inputs[0] != "x" || n[0].Outputs[0] != "y" {
		t.Errorf("nodes %+v", n)
	}
}

// chain is functions of which each calls the next one.
func chain(n int) (list []*onnx.Function) {
	for i := range n {
		list = append(list, &onnx.Function{Name: "F" + strings.Repeat("x", i), Inputs: []string{"a"}, Outputs: []string{"b"},
			Nodes: []*onnx.Node{own("F"+strings.Repeat("x", i+1), []string{"a"}, []string{"b"})}})
	}
	return list
}

func TestInlineRefuses(t *testing.T) {
	twice := func(name, inner string) *onnx.Function {
		return &onnx.Function{Name: name, Inputs: []string{"a"}, Outputs: []string{"c"},
			Nodes: []*onnx.Node{own(inner, []string{"a"}, []string{"b"}), own(inner, []string{"b"}, []string{"c"})}}
	}
	var doubling []*onnx.Function
	for i := range 25 {
		doubling = append(doubling, twice("F"+strings.Repeat("x", i), "F"+strings.Repeat("x", i+1)))
	}
	for _, c := range []struct {
		name, want string
		functions  []*onnx.Function
	}{
		{"recursion", "calls itself", []*onnx.Function{twice("F", "G"), twice("G", "F")}},
		{"too deep", "32 deep", chain(40)},
		{"doubling", "more than", doubling},
		{"another operator set", "version 17", []*onnx.Function{{Name: "F", Inputs: []string{"a"}, Outputs: []string{"b"},
			Opsets: []onnx.Opset{{Domain: "", Version: 17}}, Nodes: []*onnx.Node{onnx.NewNode("Neg", []string{"a"}, []string{"b"})}}}},
		{"a value from nowhere", `reads "q"`, []*onnx.Function{{Name: "F", Inputs: []string{"a"}, Outputs: []string{"b"},
			Nodes: []*onnx.Node{onnx.NewNode("Neg", []string{"q"}, []string{"b"})}}}},
		{"an output from nowhere", `its output "b"`, []*onnx.Function{{Name: "F", Inputs: []string{"a"}, Outputs: []string{"b"}}}},
		{"too few inputs", "gives it 1 inputs", []*onnx.Function{{Name: "F", Outputs: []string{"b"}}}},
	} {
		m := calling(c.functions...)
		call := m.Graph.Nodes[0]
		if _, err := m.Inline(m.Functions); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: error %v lacks %q", c.name, err, c.want)
		}
		if len(m.Graph.Nodes) != 1 || m.Graph.Nodes[0] != call {
			t.Errorf("%s: the model is changed", c.name)
		}
	}
}
