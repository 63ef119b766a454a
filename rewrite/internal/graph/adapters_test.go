package graph_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/rope-rewrite/rope-rewrite/onnx"
	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/fused"
	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/graph"
)

// plainNode is a node of a fused op that its adapter expands.
type plainNode struct {
	domain, opType  string
	inputs, outputs string
	mostIn, mostOut int // inputs and outputs in the op's schema
	attributes      []*onnx.Attribute
}

func (p plainNode) node() *onnx.Node {
	n := onnx.NewNode(p.opType, strings.Fields(p.inputs), strings.Fields(p.outputs), p.attributes...)
	n.Domain = p.domain
	return n
}

var plainNodes = []plainNode{
	{
		domain: "com.microsoft", opType: "GroupQueryAttention", inputs: "x3 x3 x3 x4 x4 last total cos sin", outputs: "y present_key present_value",
		mostIn: 17, mostOut: 4,
		attributes: []*onnx.Attribute{onnx.IntAttr("num_heads", 4), onnx.IntAttr("kv_num_heads", 4), onnx.IntAttr("do_rotary", 1)},
	},
	{domain: "com.microsoft", opType: "FusedMatMul", inputs: "x4 x4", outputs: "y", mostIn: 2, mostOut: 1},
	{domain: "com.microsoft", opType: "RotaryEmbedding", inputs: "x4 x2 cos sin", outputs: "y", mostIn: 4, mostOut: 1},
	{
		domain: "com.microsoft", opType: "MultiHeadAttention", inputs: "x3 x3 x3", outputs: "y", mostIn: 10, mostOut: 4,
		attributes: []*onnx.Attribute{onnx.IntAttr("num_heads", 4)},
	},
	{opType: "Attention", inputs: "x4 x4 x4", outputs: "y", mostIn: 7, mostOut: 4},
	{opType: "CastLike", inputs: "x4 x4", outputs: "y", mostIn: 2, mostOut: 1},
	{
		opType: "Einsum", inputs: "x4 x4", outputs: "y", mostIn: 2, mostOut: 1,
		attributes: []*onnx.Attribute{onnx.StringAttr("equation", "bhid,bhjd->bhij")},
	},
	{opType: "RotaryEmbedding", inputs: "x4 cos sin", outputs: "y", mostIn: 4, mostOut: 1},
	{opType: "SimplifiedLayerNormalization", inputs: "x4 scale", outputs: "y", mostIn: 2, mostOut: 2},
	{opType: "RMSNormalization", inputs: "x4 scale", outputs: "y", mostIn: 2, mostOut: 2},
}

// tells answers as a graph would in which x3 has 3 dimensions and so on; what has been
// invented has as many as are asked for most.
var tells = fused.Context{
	Opset: 24,
	Rank: func(v string) (int, bool) {
		if strings.HasPrefix(v, "x") {
			return int(v[1] - '0'), true
		}
		return 3, v == "invented"
	},
	Type:  func(string) onnx.DataType { return onnx.Float },
	Width: func(v string) (int64, bool) { return map[string]int64{"x3": 64, "x4": 16}[v], v == "x3" || v == "x4" },
	Constant: func(v string) *onnx.Tensor {
		if v == "cos" || v == "sin" {
			return onnx.NewTensor(v, onnx.Float, []int64{9, 8}, make([]byte, 4*9*8))
		}
		return nil
	},
}

// TestUnknownIsRefused gives a node of each fused op what its adapter cannot know: an
// attribute, an input behind the last, an output behind the last. Each refuses the node.
// What the schema has is read and made, or refused as well.
func TestUnknownIsRefused(t *testing.T) {
	for _, a := range graph.Adapters() {
		i := slices.IndexFunc(plainNodes, func(p plainNode) bool { return p.domain == a.Domain && p.opType == a.OpType })
		if i < 0 {
			t.Errorf("no node of %s is tried", a.OpType)
			continue
		}
		forms := map[string]func(*onnx.Node, fused.Context) (*fused.Expansion, error){"Expand": a.Expand}
		if a.Define != nil {
			forms["Define"] = a.Define
		}
		for form, expand := range forms {
			t.Run(a.Domain+" "+a.OpType+"/"+form, func(t *testing.T) { unknownIsRefused(t, plainNodes[i], expand) })
		}
	}
}

func unknownIsRefused(t *testing.T, p plainNode, expand func(*onnx.Node, fused.Context) (*fused.Expansion, error)) {
	if _, err := expand(p.node(), tells); err != nil {
		t.Fatalf("the plain node is refused: %v", err)
	}
	n := p.node()
	n.SetAttribute(onnx.IntAttr("invented", 1))
	if _, err := expand(n, tells); err == nil {
		t.Error("an invented attribute is not refused")
	}
	for i := len(strings.Fields(p.inputs)); i <= p.mostIn; i++ {
		n := p.node()
		for len(n.Inputs) < i {
			n.Inputs = append(n.Inputs, "")
		}
		n.Inputs = append(n.Inputs, "invented")
		e, err := expand(n, tells)
		reads := err == nil && slices.ContainsFunc(e.Nodes, func(n *onnx.Node) bool { return slices.Contains(n.Inputs, "invented") })
		if err == nil && (!reads || i == p.mostIn) {
			t.Errorf("input %d is neither read nor refused", i)
		}
	}
	for i := len(strings.Fields(p.outputs)); i <= p.mostOut; i++ {
		n := p.node()
		for len(n.Outputs) < i {
			n.Outputs = append(n.Outputs, "")
		}
		n.Outputs = append(n.Outputs, "invented")
		e, err := expand(n, tells)
		makes := err == nil && slices.ContainsFunc(e.Nodes, func(n *onnx.Node) bool { return slices.Contains(n.Outputs, "invented") })
		if err == nil && (!makes || i == p.mostOut) {
			t.Errorf("output %d is neither made nor refused", i)
		}
	}
}
