package contrib

import (
	"cmp"
	"errors"
	"fmt"
	"slices"

	"github.com/rope-rewrite/rope-rewrite/customop"
	"github.com/rope-rewrite/rope-rewrite/onnx"
	"github.com/rope-rewrite/rope-rewrite/rewrite/definition"
	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/ir"
)

// Domain is the domain of ONNX Runtime's own operators.
const Domain = "com.microsoft"

// Node is what an op's node does not say.
type Node struct {
	Element  onnx.DataType // of query, key and value
	HeadSize int64
	Rows     int64   // of its tables: the most tokens that a row may have
	Scales   *Scales // of its caches of int8; nil where they have the element type
	Drawn    bool    // its tokens stand at positions that are drawn
}

// Replace writes the ops of a model, whose queries have four dimensions, as
// GroupQueryAttention. nodes has each of them by its node; an op that is not in it, or that
// Refused refuses, is an error that names the node. The model then has no op.
func Replace(m *onnx.Model, nodes map[*onnx.Node]Node, runtime Version) error {
	w := &writer{model: m, made: map[string]bool{}}
	for g := range m.Graph.AllGraphs() {
		if err := w.graph(g, nodes, runtime); err != nil {
			return err
		}
	}
	m.RequireOpset(Domain, 1)
	m.RemoveOpset(customop.Domain)
	return nil
}

// writer writes the ops of a model.
type writer struct {
	model *onnx.Model
	made  map[string]bool // tables that the model has
}

func (w *writer) graph(g *onnx.Graph, nodes map[*onnx.Node]Node, runtime Version) error {
	shared := map[string][2]string{} // seqlens_k and total_sequence_length
	removed := map[*onnx.Node]bool{}
	for _, n := range slices.Clone(g.Nodes) {
		if n.Domain != customop.Domain {
			continue
		}
		of, known := nodes[n]
		op, err := definition.Read(n)
		if err == nil && !known {
			err = errors.New("only its node is known")
		}
		if err == nil {
			err = Refused(op, of, runtime)
		}
		if err != nil {
			return fmt.Errorf("node %s: %w", ir.Label(n), err)
		}
		b := &ir.Builder{Stem: n.Name + "/contrib"}
		key := sharing(op)
		if shared[key] == [2]string{} {
			last, total := lengths(b, g, op)
			shared[key] = [2]string{last, total}
		}
		w.write(b, g, op, of, shared[key])
		b.Into(g, n)
		removed[n] = true
	}
	if len(removed) == 0 {
		return nil
	}
	g.RemoveNodes(func(n *onnx.Node) bool { return removed[n] })
	ir.Sweep(g, removed, nil)
	return ir.Order(g)
}

// write writes one op.
func (w *writer) write(b *ir.Builder, g *onnx.Graph, op customop.RotaryAttention, of Node, lengths [2]string) {
	n := onnx.NewNode("GroupQueryAttention", []string{
		rowsFirst(b, g, op.Query, op.NumHeads*of.HeadSize), rowsFirst(b, g, op.Key, op.KVNumHeads*of.HeadSize), rowsFirst(b, g, op.Value, op.KVNumHeads*of.HeadSize),
		unshared(b, g, op.PastKey), unshared(b, g, op.PastValue), lengths[0], lengths[1],
	}, []string{b.Value("rows"), cmp.Or(op.PresentKey, b.Value("present_key")), cmp.Or(op.PresentValue, b.Value("present_value"))}, // which older versions ask for
		onnx.IntAttr("num_heads", op.NumHeads), onnx.IntAttr("kv_num_heads", op.KVNumHeads))
	n.Domain, n.Name = Domain, b.Stem
	if op.Scale != 0 {
		n.SetAttribute(onnx.FloatAttr("scale", op.Scale))
	}
	if op.Softcap != 0 {
		n.SetAttribute(onnx.FloatAttr("softcap", op.Softcap))
	}
	if op.Window > 0 {
		n.SetAttribute(onnx.IntAttr("local_window_size", op.Window))
	}
	if op.Causal == 0 {
		n.SetAttribute(onnx.IntAttr("causal", 0))
	}
	if len(op.Frequencies) > 0 {
		cos, sin := w.tables(op, of)
		n.Inputs = append(n.Inputs, cos, sin)
		n.SetAttribute(onnx.IntAttr("do_rotary", 1))
		if op.RotaryLayout == "interleaved" {
			n.SetAttribute(onnx.IntAttr("rotary_interleaved", 1))
		}
	}
	if op.SinkLogits != "" {
		n.Inputs = append(n.Inputs, make([]string, sinkInput-len(n.Inputs))...)
		n.Inputs = append(n.Inputs, op.SinkLogits)
	}
	if of.Scales != nil {
		of.Scales.hold(b, n, op.KVNumHeads, of.HeadSize)
	}
	b.Nodes = append(b.Nodes, n)
	apart := []string{b.Value("rows"), b.Ints(0, 0, op.NumHeads, of.HeadSize)}
	if after := swapped(g, op.Output); after != nil { // the model wants rows first again
		b.AddTo(after.Outputs[0], "Reshape", apart)
		g.RemoveNodes(func(n *onnx.Node) bool { return n == after })
		return
	}
	b.AddTo(op.Output, "Transpose", []string{b.Add("Reshape", apart)}, onnx.IntsAttr("perm", 0, 2, 1, 3))
}

// sinkInput is the place of head_sink among the inputs.
const sinkInput = 11

// rowsFirst brings [batch, heads, length, channels] to [batch, length, heads · channels],
// the width. (OpenVINO wants to read it from the graph.)
func rowsFirst(b *ir.Builder, g *onnx.Graph, value string, width int64) string {
	rows := rowsOf(g, value)
	if rows == "" {
		rows = b.Add("Transpose", []string{value}, onnx.IntsAttr("perm", 0, 2, 1, 3))
	}
	return b.Add("Reshape", []string{rows, b.Ints(0, 0, width)})
}

// rowsOf is the value [batch, length, heads, channels] that a node made another value of
// by exchanging heads and rows, "" where none did.
func rowsOf(g *onnx.Graph, value string) string {
	for _, n := range g.Nodes {
		if slices.Contains(n.Outputs, value) && swaps(n) {
			return n.Inputs[0]
		}
	}
	return ""
}

// swapped is the node that brings a value's rows in front of its heads, where that is the
// only reader.
func swapped(g *onnx.Graph, value string) *onnx.Node {
	var only *onnx.Node
	for _, n := range g.Nodes {
		for v := range ir.Uses(n) {
			if v != value {
				continue
			}
			if only != nil || !swaps(n) {
				return nil
			}
			only = n
		}
	}
	if slices.ContainsFunc(g.Outputs, func(o *onnx.ValueInfo) bool { return o.Name == value }) {
		return nil
	}
	return only
}

// swaps reports whether a node exchanges heads and rows.
func swaps(n *onnx.Node) bool {
	perm := n.Attribute("perm")
	return ir.Standard(n, "Transpose") && perm != nil && slices.Equal(perm.Ints, []int64{0, 2, 1, 3})
}
