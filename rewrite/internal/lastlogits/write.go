package lastlogits

import (
	"fmt"
	"slices"

	"github.com/rope-rewrite/rope-rewrite/internal/short"
	"github.com/rope-rewrite/rope-rewrite/onnx"
	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/ir"
)

// OldestOpset is the oldest version of the standard operators in which Write can be done:
// GatherND takes a place per row from it on.
const OldestOpset = 12

// stem begins the names of the nodes that Write makes.
const stem = "rope_rewrite/logits"

// Write makes the model compute the logits of one token per row. input is the name of a new
// graph input, int64 [batch] or [1], with the place of that token among the call's; negative
// places count from the end. It need not be fed: it is -1 then, the last token.
func (h *Head) Write(m *onnx.Model, input string) error {
	if v := m.Opset(""); v < OldestOpset {
		return fmt.Errorf("the model uses opset %d, and logits of single tokens need opset %d: give --opset %d", v, OldestOpset, OldestOpset+1)
	}
	m.RequireIR(4) // an input with a default value
	g := m.Graph
	batch := onnx.Dim{Param: input + "_rows"} // 1 or batch
	g.AddInput(onnx.NewValueInfo(input, onnx.Int64, batch))
	g.AddInitializer(ir.Int64Tensor(input, []int64{1}, -1))

	b := &ir.Builder{Stem: stem}
	rows, tokens := b.Sizes(h.Hidden, 0, 1), b.Sizes(h.Hidden, 1, 2)
	places := b.Add("Expand", []string{input, rows})
	negative := func(v string) string { return b.Add("Less", []string{v, b.Ints(0)}) }
	places = b.Add("Where", []string{negative(places), b.Add("Add", []string{places, tokens}), places})
	// Not every runtime counts negative places of a GatherND from the end. One before the
	// first token becomes one behind the last, which runtimes refuse.
	places = b.Add("Where", []string{negative(places), tokens, places})
	places = b.Add("Reshape", []string{places, b.Ints(-1, 1, 1)})
	one := b.AddAs("hidden", "GatherND", []string{h.Hidden, places}, onnx.IntAttr("batch_dims", 1))
	for i, v := range h.product.Inputs {
		if v == h.Hidden {
			h.product.Inputs[i] = one
		}
	}
	b.Into(g, h.product)
	g.Outputs = slices.Clone(g.Outputs)
	resize(g.Outputs, h.Output, onnx.Dim{Value: 1})
	tail := h.tail(g)
	g.ValueInfo = slices.DeleteFunc(slices.Clone(g.ValueInfo), func(v *onnx.ValueInfo) bool { return tail[v.Name] })
	return ir.Order(g)
}

// tail returns the values between the product and the output, whose shapes have changed.
func (h *Head) tail(g *onnx.Graph) map[string]bool {
	makers := map[string]*onnx.Node{}
	for _, n := range g.Nodes {
		for _, o := range n.Outputs {
			makers[o] = n
		}
	}
	tail := map[string]bool{}
	for list := []string{h.Output}; len(list) > 0; {
		v := list[len(list)-1]
		list = list[:len(list)-1]
		if n := makers[v]; n != nil && !tail[v] {
			tail[v] = true
			if n != h.product {
				list = append(list, ir.Reads(n)...)
			}
		}
	}
	return tail
}

// resize gives the tokens' dimension of a value another size.
func resize(list []*onnx.ValueInfo, name string, tokens onnx.Dim) {
	for i, v := range list {
		if v.Name == name && len(v.Shape) == 3 {
			v = v.Clone()
			v.Shape[1] = tokens
			list[i] = v
		}
	}
}

// Undo takes out what Write put in: the input of that name, and the choice that reads it.
// tokens is the size that the output had before.
func Undo(m *onnx.Model, input, output string, tokens onnx.Dim) error {
	g := m.Graph
	i := slices.IndexFunc(g.Nodes, func(n *onnx.Node) bool { return slices.Contains(n.Outputs, stem+"/hidden") })
	if i < 0 {
		return fmt.Errorf("the node that selects the tokens of %q is missing: another program changed the model; start from the original file", short.Name(output))
	}
	choice := g.Nodes[i]
	for _, n := range g.Nodes {
		for k, v := range n.Inputs {
			if v == choice.Outputs[0] {
				n.Inputs[k] = choice.Inputs[0]
			}
		}
	}
	ir.Sweep(g, map[*onnx.Node]bool{choice: true}, nil)
	g.RemoveInput(input)
	g.RemoveInitializers(func(t *onnx.Tensor) bool { return t.Name == input })
	g.Outputs = slices.Clone(g.Outputs)
	resize(g.Outputs, output, tokens)
	return nil
}
