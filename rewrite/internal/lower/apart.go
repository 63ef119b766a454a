package lower

import (
	"slices"

	"github.com/rope-rewrite/rope-rewrite/onnx"
	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/ir"
	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/site"
)

// A hidden state that is added to scores may be computed from the values of all keys, the
// cached ones too, which the op concatenates. The op cannot wait for what it gives itself.
// So the model's nodes from there to that state are written once more, and concatenate for
// themselves.

// apart returns the bias with such nodes in front, where they are needed.
func (bias *Bias) apart(s *site.Sized) (*Bias, error) {
	g := s.Graph
	given := map[string]bool{} // by the op, or computed from what it gives
	for _, n := range g.Nodes {
		if slices.Contains(s.Replaced, g.AsWritten(n)) || slices.ContainsFunc(ir.Reads(n), func(v string) bool { return given[v] }) {
			for _, v := range n.Outputs {
				given[v] = true
			}
		}
	}
	out := &Bias{Builder: bias.Builder, value: bias.value}
	out.Builder.Nodes, out.Builder.Constants = nil, nil
	names := map[string]string{}
	needed := map[*onnx.Node]bool{}
	var wrong error
	var states []string
	for _, b := range s.Biases {
		if given[b.Value] {
			states = append(states, b.Value)
		}
	}
	g.Upstream(states, func(v string, n *onnx.Node) []string {
		switch {
		case g.Constants[v] != nil && g.Internal[v]:
			names[v] = out.AddConstant(g.Constants[v].Clone())
		case n == nil || g.Constants[v] != nil || !given[v] && !g.Internal[v]:
			names[v] = v
		default:
			if err := copyable(n); err != nil {
				wrong = err
			}
			needed[n] = true
			return ir.Reads(n)
		}
		return nil
	})
	if wrong != nil || len(needed) == 0 {
		return bias, wrong
	}
	out.copy(g, needed, names)
	for _, n := range bias.Nodes {
		c := n.Clone()
		for i, v := range c.Inputs {
			if given[v] {
				c.Inputs[i] = names[v]
			}
		}
		out.Nodes = append(out.Nodes, c)
	}
	out.Constants = append(out.Constants, bias.Constants...)
	return out, nil
}
