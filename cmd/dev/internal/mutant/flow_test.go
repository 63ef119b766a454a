package mutant

import (
	"slices"
	"testing"

	"github.com/rope-rewrite/rope-rewrite/onnx"
)

func value(name string, t onnx.DataType, dims ...onnx.Dim) *onnx.ValueInfo {
	return onnx.NewValueInfo(name, t, dims...)
}

// Control nodes are those on the way to the mask and to the rotation's angles: not what computes hidden states, nor
// what says of which shape these are, nor a value that nothing reads.
func TestControlNodes(t *testing.T) {
	batch, length := onnx.Dim{Param: "batch"}, onnx.Dim{Param: "length"}
	m := onnx.New()
	g := m.Graph
	g.Inputs = []*onnx.ValueInfo{
		value("input_ids", onnx.Int64, batch, length), value("attention_mask", onnx.Int64, batch, length), value("position_ids", onnx.Int64, batch, length),
	}
	g.Outputs = []*onnx.ValueInfo{value("logits", onnx.Float, batch, length, onnx.Dim{Value: 4})}
	g.AddInitializer(onnx.NewTensor("weights", onnx.Float, []int64{4, 4}, make([]byte, 64)))
	g.AddInitializer(onnx.NewTensor("zero", onnx.Int64, nil, make([]byte, 8)))
	node := func(name, op string, inputs ...string) {
		n := onnx.NewNode(op, inputs, []string{name})
		n.Name = name
		if op == "Cast" {
			n.SetAttribute(onnx.IntAttr("to", int64(onnx.Float)))
		}
		g.Nodes = append(g.Nodes, n)
	}
	node("embedded", "Gather", "weights", "input_ids")
	node("shape", "Shape", "embedded") // of a hidden state: its numbers are none
	node("length", "Gather", "shape", "zero")
	node("range", "Range", "zero", "length", "zero")
	node("sizes", "Unsqueeze", "length", "zero")
	node("shaped", "Reshape", "embedded", "sizes")
	node("seen", "Equal", "attention_mask", "range")
	node("apart", "Equal", "input_ids", "zero") // tokens as whole numbers: they may tell padding
	node("both", "And", "seen", "apart")
	node("angle", "Cast", "position_ids")
	node("cosine", "Cos", "angle")
	node("rotated", "Mul", "shaped", "cosine")
	node("hidden", "Where", "both", "rotated", "embedded")
	node("unread", "Neg", "angle")
	node("logits", "MatMul", "hidden", "weights")
	f := follow(m)
	var got []string
	for _, n := range g.Nodes {
		if f.control[n] {
			got = append(got, n.Name)
		}
	}
	if want := []string{"shape", "length", "range", "seen", "apart", "both", "angle", "cosine"}; !slices.Equal(got, want) {
		t.Errorf("control nodes %v, want %v", got, want)
	}
}

// In a merged model the branches hold them.
func TestControlNodesOfBranches(t *testing.T) {
	m, err := onnx.Open("../../../../testdata/models/gpt_neox__dynamo18-merged/model.onnx")
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close()
	f := follow(m)
	found := map[string]int{}
	for n := range m.Graph.AllNodes() {
		if f.control[n] {
			found[n.OpType]++
		}
	}
	for _, op := range []string{"And", "Range", "Cos", "Sin"} {
		if found[op] == 0 {
			t.Errorf("no %s among the control nodes %v", op, found)
		}
	}
	if found["MatMul"] > 2 || found["Softmax"] > 0 { // angles are products, once in each branch
		t.Errorf("hidden states among the control nodes %v", found)
	}
}
