package decoder

import (
	"encoding/binary"
	"fmt"
	"math"
	"slices"

	"github.com/rope-rewrite/rope-rewrite/internal/short"
	"github.com/rope-rewrite/rope-rewrite/onnx"
)

// hold lets a model compute as if its caches were int8 with fixed scales, given by the output of each cache:
// attention reads every key and value as such a cache holds it, those of this call among them. So it is with
// GroupQueryAttention.
func hold(m *onnx.Model, scales map[string][]float32) error {
	for _, out := range m.Graph.Outputs {
		if list := scales[out.Name]; list != nil && !holdOutput(m.Graph, out, list) {
			return fmt.Errorf("its attention does not read the cache's output %q, so it cannot be run with the fixed scales of the other model", short.Name(out.Name))
		}
	}
	return nil
}

// holdOutput rounds a cache where it is made: before the present output, where the attention reads that, or
// before the node that both appends to the cache and reads it. It reports whether it is one of them.
func holdOutput(g *onnx.Graph, out *onnx.ValueInfo, scales []float32) bool {
	value, at := out.Name, maker(g, out.Name)
	for at >= 0 && g.Nodes[at].OpType == "Identity" && !isRead(g, value) {
		value = g.Nodes[at].Inputs[0]
		at = maker(g, value)
	}
	if at < 0 {
		return false
	}
	n := g.Nodes[at]
	if isRead(g, value) {
		exact := value + "/exact"
		n.Outputs[slices.Index(n.Outputs, value)] = exact
		g.Nodes = slices.Insert(g.Nodes, at+1, rounding(g, exact, value, out, scales, false)...)
		return true
	}
	input := slices.Index(n.Outputs, value) // of Attention and MultiHeadAttention: 1 and 2 are key and value
	if n.OpType != "Attention" && n.OpType != "MultiHeadAttention" || input < 1 || input > 2 {
		return false
	}
	held := value + "/held"
	g.Nodes = slices.Insert(g.Nodes, at, rounding(g, n.Inputs[input], held, out, scales, n.Attribute("kv_num_heads") != nil || n.OpType == "MultiHeadAttention")...)
	n.Inputs[input] = held
	return true
}

// maker is the place of the node that makes a value, -1 without.
func maker(g *onnx.Graph, value string) int {
	return slices.IndexFunc(g.Nodes, func(n *onnx.Node) bool { return slices.Contains(n.Outputs, value) })
}

// isRead reports whether a node reads the numbers of a value, other than to keep it under another name as an output.
func isRead(g *onnx.Graph, value string) bool {
	for n := range g.AllNodes() {
		kept := n.OpType == "Identity" && slices.ContainsFunc(g.Outputs, func(o *onnx.ValueInfo) bool { return o.Name == n.Outputs[0] }) && !isRead(g, n.Outputs[0])
		if slices.Contains(n.Inputs, value) && !kept && n.OpType != "Shape" {
			return true
		}
	}
	return false
}

// rounding are the nodes that round one value into another of the type of a cache. flat values are [batch,
// tokens, heads · channels], others [batch, heads, tokens, channels].
func rounding(g *onnx.Graph, from, to string, like *onnx.ValueInfo, scales []float32, flat bool) []*onnx.Node {
	constant := func(part string, dims []int64, list ...float32) string {
		var raw []byte
		for _, x := range list {
			raw = binary.LittleEndian.AppendUint32(raw, math.Float32bits(x))
		}
		name := to + "/" + part
		g.AddInitializer(onnx.NewTensor(name, onnx.Float, dims, raw))
		return name
	}
	dims := []int64{int64(len(scales))}
	if channels := like.Shape[3]; len(scales) > 1 && !flat {
		dims = []int64{int64(len(scales)) / channels.Value, 1, channels.Value}
	}
	scale := constant("scale", dims, scales...)
	node := func(op, output string, inputs ...string) *onnx.Node {
		return onnx.NewNode(op, inputs, []string{to + "/" + output})
	}
	cast := func(value, output string, t onnx.DataType) *onnx.Node {
		return onnx.NewNode("Cast", []string{value}, []string{output}, onnx.IntAttr("to", int64(t)))
	}
	return []*onnx.Node{
		cast(from, to+"/wide", onnx.Float),
		node("Div", "steps", to+"/wide", scale),
		node("Round", "rounded", to+"/steps"),
		node("Max", "low", to+"/rounded", constant("least", []int64{}, -128)),
		node("Min", "held", to+"/low", constant("greatest", []int64{}, 127)),
		node("Mul", "read", to+"/held", scale),
		cast(to+"/read", to, like.Type),
	}
}
