package lastlogits

import (
	"errors"
	"fmt"

	"github.com/rope-rewrite/rope-rewrite/internal/short"
	"github.com/rope-rewrite/rope-rewrite/onnx"
	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/graph"
	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/ir"
)

// Head is the product with weights that makes a model's logits from hidden states.
type Head struct {
	Output string // the graph's output [batch, length, vocabulary]
	Hidden string // the hidden states [batch, length, hidden size] that the product reads

	product *onnx.Node
	scalars []string // scales of hidden states that were quantised: one number for all tokens
}

// Find returns the head of a model.
func Find(g *graph.Graph) (*Head, error) {
	var heads []*Head
	var why []error
	for _, o := range g.Model.Graph.Outputs {
		if !ir.IsFloat(o.Type) || o.HasShape && len(o.Shape) != 3 {
			continue
		}
		h, err := behind(g, o.Name)
		if err != nil {
			why = append(why, fmt.Errorf("%q: %w", short.Name(o.Name), err))
			continue
		}
		heads = append(heads, h)
	}
	switch {
	case len(heads) == 1:
		return heads[0], nil
	case len(heads) > 1:
		return nil, fmt.Errorf("both %q and %q may be the logits; remove the other outputs from the model first", short.Name(heads[0].Output), short.Name(heads[1].Output))
	case len(why) > 0:
		return nil, errors.Join(why...)
	}
	return nil, errors.New("no output has the form [batch, length, vocabulary]")
}

// behind returns the head that makes an output.
func behind(g *graph.Graph, output string) (*Head, error) {
	h := &Head{Output: output}
	var products []*onnx.Node
	var wrong error
	refuse := func(format string, args ...any) {
		if wrong == nil {
			wrong = fmt.Errorf(format, args...)
		}
	}
	g.Upstream([]string{output}, func(v string, n *onnx.Node) []string {
		switch {
		case !g.IsData(v):
			return nil
		case n == nil:
			refuse("it reads the input %q after the last product with weights", short.Name(v))
			return nil
		case g.WeightProduct(n):
			products = append(products, n)
			return nil
		case ir.Standard(n, "DynamicQuantizeLinear") && len(n.Outputs) > 1 && v == n.Outputs[1]:
			h.scalars = append(h.scalars, v)
			return nil
		}
		for range n.Subgraphs() {
			refuse("node %s (%s) computes it in branches, which are not searched", ir.Label(n), short.Name(n.OpType))
			return nil
		}
		return ir.Reads(n)
	})
	switch {
	case wrong != nil:
		return nil, wrong
	case len(products) == 0:
		return nil, errors.New("it does not come from a product with weights")
	case len(products) > 1:
		return nil, fmt.Errorf("it comes from two products, %s and %s", ir.Label(products[0]), ir.Label(products[1]))
	}
	h.product = g.AsWritten(products[0])
	p := g.Projection(products[0])
	if p == nil || h.product != products[0] {
		return nil, fmt.Errorf("node %s (%s) is not a product of hidden states [batch, length, hidden size] with a weight matrix", ir.Label(h.product), short.Name(h.product.OpType))
	}
	if err := eachTokenAlone(g, h.product); err != nil {
		return nil, fmt.Errorf("node %s (%s): %w", ir.Label(h.product), short.Name(h.product.OpType), err)
	}
	h.Hidden = p.From
	return h, nil
}

// eachTokenAlone returns an error for products whose result for one token depends on others.
func eachTokenAlone(g *graph.Graph, n *onnx.Node) error {
	switch n.OpType {
	case "MatMul", "FusedMatMul", "MatMulNBits":
		return nil
	case "MatMulInteger":
		// The zero point of the hidden states may have a number for each of their rows.
		if len(n.Inputs) > 2 && n.Inputs[2] != "" {
			made := g.Producer[n.Inputs[2]]
			t := g.Constants[n.Inputs[2]]
			if !ir.Standard(made, "DynamicQuantizeLinear") && (t == nil || t.Len() != 1) {
				return fmt.Errorf("its zero point %q may differ from token to token", short.Name(n.Inputs[2]))
			}
		}
		return nil
	case "DynamicQuantizeMatMul":
		return errors.New("it quantises all tokens together, so fewer tokens would give different logits")
	}
	return errors.New("it is not known to work on each token by itself")
}
