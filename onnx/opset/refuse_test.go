package opset_test

import (
	"bytes"
	"errors"
	"strings"
	"testing"

	"github.com/rope-rewrite/rope-rewrite/internal/engine"
	"github.com/rope-rewrite/rope-rewrite/onnx"
	"github.com/rope-rewrite/rope-rewrite/onnx/opset"
)

// refused fails unless raising the model is an error that says all of this, and leaves
// every byte of it unchanged.
func refused(t *testing.T, s small, to int64, says ...string) {
	t.Helper()
	refusedModel(t, s.model(), to, says...)
}

func refusedModel(t *testing.T, m *onnx.Model, to int64, says ...string) error {
	t.Helper()
	before, err := m.Marshal()
	if err != nil {
		t.Fatal(err)
	}
	_, err = opset.Raise(m, to)
	if err == nil {
		t.Fatalf("nothing was refused; %q was expected", says)
	}
	for _, text := range says {
		if !strings.Contains(err.Error(), text) {
			t.Errorf("the error does not say %q: %v", text, err)
		}
	}
	after, marshalled := m.Marshal()
	if marshalled != nil || !bytes.Equal(before, after) {
		t.Errorf("the model is another one after the error (%v)", marshalled)
	}
	return err
}

func TestRefusals(t *testing.T) {
	x := drawn(2, 3)
	good := named(onnx.NewNode("ReduceSum", []string{"x"}, []string{"sum"}, onnx.IntsAttr("axes", 1)))
	for name, c := range map[string]struct {
		model small
		to    int64
		says  []string
	}{
		"too new":                      {fed(13, x, "Relu"), 99, []string{"opset 99", "is 26"}},
		"too old":                      {fed(6, x, "Relu"), 13, []string{"opset 6", "oldest known is 7"}},
		"unheard":                      {fed(13, x, "Unheard"), 14, []string{`node "the Unheard": opset 13 has no operator Unheard`}},
		"not yet":                      {fed(13, x, "Gelu"), 20, []string{"opset 13 has no operator Gelu"}},
		"taken out":                    {fed(11, x, "Scatter"), 13, []string{"opset 11 removed the operator Scatter"}},
		"a change of what is computed": {fed(10, x, "OneHot"), 11, []string{`node "the OneHot": OneHot changed in opset 11`, "an index below zero"}},
		"of functions":                 {fed(12, x, "Softmax", &onnx.Attribute{Name: "axis", RefName: "of", Type: onnx.AttrInt}), 13, []string{"attribute axis belongs to the function"}},
		"of a type":                    {fed(12, x, "Squeeze", onnx.IntAttr("axes", 0)), 13, []string{"attribute axes has another type"}},
		"two inputs":                   {small{version: 12, nodes: []*onnx.Node{onnx.NewNode("ReduceSum", []string{"x", "x"}, []string{"y"})}}, 13, []string{`node "y"`, "2 inputs"}},
	} {
		t.Run(name, func(t *testing.T) {
			c.model.nodes = append([]*onnx.Node{good}, c.model.nodes...) // one that is converted before
			refused(t, c.model, c.to, c.says...)
		})
	}
}

func TestLower(t *testing.T) {
	if err := refusedModel(t, fed(17, drawn(2), "Relu").model(), 13, "17", "13"); !errors.Is(err, opset.ErrLower) {
		t.Errorf("the error is %v", err)
	}
	m := fed(17, drawn(2), "Unheard").model()
	before, _ := m.Marshal()
	raised, err := opset.Raise(m, 17)
	after, _ := m.Marshal()
	if err != nil || raised.From != 17 || !bytes.Equal(before, after) {
		t.Errorf("of a model at 17 raised to 17: %+v, %v", raised, err)
	}
	none := onnx.New()
	none.RequireOpset("com.microsoft", 1)
	refusedModel(t, none, 17, "does not name its opset")
	refusedModel(t, trained(), 17, "for training")
}

func trained() *onnx.Model {
	m := fed(13, drawn(2), "Relu").model()
	m.Training = []*onnx.Training{{Algorithm: &onnx.Graph{Name: "g"}}}
	return m
}

// Functions of the model's own are raised by the version that they name, also such that
// call one another or themselves, which nothing runs.
func TestFunctions(t *testing.T) {
	body := func(name string, version int64, nodes ...*onnx.Node) *onnx.Function {
		f := &onnx.Function{Name: name, Domain: "own", Inputs: []string{"a"}, Outputs: []string{"b"}, Nodes: nodes,
			Opsets: []onnx.Opset{{Version: version}, {Domain: "own", Version: 1}}}
		return f
	}
	call := func(f, from, to string) *onnx.Node {
		return &onnx.Node{Name: "calls " + f, OpType: f, Domain: "own", Inputs: []string{from}, Outputs: []string{to}}
	}
	mean := onnx.NewNode("ReduceMean", []string{"a"}, []string{"b"}, onnx.IntsAttr("axes", -1))
	s := small{version: 17, feeds: map[string]engine.Tensor{"x": drawn(2, 3)}, outputs: []string{"y"}, nodes: []*onnx.Node{call("Outer", "x", "y")},
		functions: []*onnx.Function{
			body("Outer", 17, onnx.NewNode("Softmax", []string{"a"}, []string{"c"}), call("Mean", "c", "b")),
			body("Mean", 17, mean),
		}}
	s.keeps(t)
	m := s.model()
	raised, err := opset.Raise(m, 18)
	if err != nil || raised.Converted != 1 {
		t.Fatalf("%+v, %v", raised, err)
	}
	for _, f := range m.Functions {
		if f.Opsets[0].Version != 18 || f.Opsets[1].Version != 1 {
			t.Errorf("%s imports %v", f.Name, f.Opsets)
		}
	}

	s.functions[1] = body("Mean", 17, call("Outer", "a", "b")) // calls itself
	m = s.model()
	if _, err := opset.Raise(m, 18); err != nil { // it is no worse than before
		t.Error(err)
	}
	s.functions[1] = body("Mean", 12, named(onnx.NewNode("OneHot", []string{"a", "a", "a"}, []string{"b"})))
	s.functions[1].Opsets[0].Version = 10
	refused(t, s, 18, "in the function Mean", `node "the OneHot"`, "opset 11")

	own := fed(17, drawn(2), "Gelu").model()
	own.Functions = []*onnx.Function{{Name: "Gelu", Inputs: []string{"a"}, Outputs: []string{"b"}, Opsets: []onnx.Opset{{Version: 17}},
		Nodes: []*onnx.Node{onnx.NewNode("Relu", []string{"a"}, []string{"b"})}}}
	if _, err := opset.Raise(own, 19); err != nil {
		t.Error(err)
	}
	refusedModel(t, own, 20, "own function Gelu has the name of a standard operator")
}

// Graphs inside nodes rise with the graph around them. They read constants of their own,
// and the rank of a value of the graph around them is known.
func TestGraphsInsideNodes(t *testing.T) {
	branch := func(name string, nodes ...*onnx.Node) *onnx.Attribute {
		g := &onnx.Graph{Name: name, Nodes: nodes}
		last := nodes[len(nodes)-1]
		g.AddOutput(&onnx.ValueInfo{Name: last.Outputs[0], Type: onnx.Float})
		return onnx.GraphAttr(name, g)
	}
	s := small{version: 11, feeds: map[string]engine.Tensor{"x": drawn(2, 3, 4), "flag": {Type: onnx.Bool, Dims: []int64{1}, Data: []byte{1}}}, outputs: []string{"y"}, ranks: true,
		nodes: []*onnx.Node{onnx.NewNode("If", []string{"flag"}, []string{"y"},
			branch("then_branch",
				onnx.NewNode("Softmax", []string{"x"}, []string{"s"}, onnx.IntAttr("axis", 2)),
				onnx.NewNode("ReduceSum", []string{"s"}, []string{"a"}, onnx.IntsAttr("axes", 1))),
			branch("else_branch",
				onnx.NewNode("Softmax", []string{"x"}, []string{"p"}),
				onnx.NewNode("Unsqueeze", []string{"p"}, []string{"b"}, onnx.IntsAttr("axes", 1))))}}
	s.keeps(t)
	s.feeds["flag"] = engine.Tensor{Type: onnx.Bool, Dims: []int64{1}, Data: []byte{0}}
	s.keeps(t)
	m := s.model()
	if _, err := opset.Raise(m, 13); err != nil {
		t.Fatal(err)
	}
	if ops := opsOf(m); ops != "If Constant Softmax ReduceSum Constant Flatten Shape Softmax Reshape Unsqueeze" {
		t.Errorf("the nodes are %s", ops)
	}
}

// What a graph inside a node says of the shapes of its inputs binds nobody.
func TestShapesOfInnerInputs(t *testing.T) {
	body := &onnx.Graph{Name: "body", Nodes: []*onnx.Node{
		onnx.NewNode("Identity", []string{"go"}, []string{"on"}),
		onnx.NewNode("Softmax", []string{"value"}, []string{"next"}, onnx.IntAttr("axis", 1)),
	}}
	body.Inputs = []*onnx.ValueInfo{onnx.NewValueInfo("i", onnx.Int64), onnx.NewValueInfo("go", onnx.Bool), onnx.NewValueInfo("value", onnx.Float, onnx.Dim{Value: 2}, onnx.Dim{Value: 3})}
	body.Outputs = []*onnx.ValueInfo{{Name: "on", Type: onnx.Bool}, {Name: "next", Type: onnx.Float}}
	s := small{version: 11, feeds: map[string]engine.Tensor{"x": drawn(2, 3, 4)}, outputs: []string{"y"},
		nodes:     []*onnx.Node{onnx.NewNode("Loop", []string{"times", "", "x"}, []string{"y"}, onnx.GraphAttr("body", body))},
		constants: []*onnx.Tensor{ints("times", 2)}}
	m := s.model()
	if _, err := opset.Raise(m, 13); err != nil {
		t.Fatal(err)
	}
	if ops := opsOf(m); ops != "Loop Identity Flatten Shape Softmax Reshape" {
		t.Errorf("the nodes are %s", ops)
	}
	body.Inputs[2].HasShape, body.Inputs[2].Shape = false, nil
	s.keeps(t)
}

// Nothing changes in graphs inside nodes and beside functions that cannot be converted.
func TestAllOrNothing(t *testing.T) {
	branch := &onnx.Graph{Name: "branch", Nodes: []*onnx.Node{onnx.NewNode("ReduceSum", []string{"x"}, []string{"s"}, onnx.IntsAttr("axes", 1))}}
	branch.AddOutput(&onnx.ValueInfo{Name: "s", Type: onnx.Float})
	s := fed(10, drawn(2, 3), "OneHot")
	s.nodes = append([]*onnx.Node{onnx.NewNode("If", []string{"flag"}, []string{"z"}, onnx.GraphAttr("then_branch", branch), onnx.GraphAttr("else_branch", branch))}, s.nodes...)
	refused(t, s, 13, "OneHot")
	s = fed(10, drawn(2, 3), "ReduceSum", onnx.IntsAttr("axes", 1))
	s.functions = []*onnx.Function{
		{Name: "Good", Domain: "own", Opsets: []onnx.Opset{{Version: 10}}, Nodes: []*onnx.Node{onnx.NewNode("Squeeze", []string{"a"}, []string{"b"}, onnx.IntsAttr("axes", 0))}},
		{Name: "Bad", Domain: "own", Opsets: []onnx.Opset{{Version: 10}}, Nodes: []*onnx.Node{onnx.NewNode("OneHot", []string{"a"}, []string{"b"})}},
	}
	refused(t, s, 13, "in the function Bad")
	s.functions[1] = &onnx.Function{Name: "Bad", Domain: "own", Opsets: []onnx.Opset{{Version: 10}, {Domain: "ai.onnx", Version: 11}}}
	refused(t, s, 13, "in the function Bad", "two opsets, 10 and 11")
}

// A constant that a model's user may replace says nothing of the Resize that reads it.
func TestOverridableConstant(t *testing.T) {
	s := fed(10, drawn(1, 1, 2, 2), "Resize")
	s.nodes[0].Inputs, s.constants = []string{"x", "s"}, []*onnx.Tensor{floats("s", 1, 1, 2, 2)}
	s.feeds["s"] = engine.Float32s([]float32{1, 1, 2, 2}, 4)
	refused(t, s, 11, "its scales are not constant")
}
