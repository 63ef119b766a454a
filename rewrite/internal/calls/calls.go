package calls

import (
	"slices"

	"github.com/rope-rewrite/rope-rewrite/onnx"
	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/ir"
)

// Inlined is what inlining did to a model.
type Inlined struct {
	calls  []onnx.Inlined
	before map[*onnx.Graph][]*onnx.Node
}

// Inline replaces the calls of the model's functions by their bodies. Functions
// that cannot be inlined stay, and the error says why.
func Inline(m *onnx.Model) (*Inlined, error) {
	if first, _ := ir.FunctionCalls(m); first == nil {
		return &Inlined{}, nil
	}
	in := &Inlined{before: map[*onnx.Graph][]*onnx.Node{}}
	for g := range m.Graph.AllGraphs() {
		in.before[g] = g.Nodes
	}
	var err error
	in.calls, err = m.Inline(m.Functions)
	return in, err
}

// Restore puts all calls back, in a model of which nothing else was changed.
func (in *Inlined) Restore() {
	for g, nodes := range in.before {
		g.Nodes = nodes
	}
}

// Fold puts the calls back of which every node is still there.
func (in *Inlined) Fold() error {
	if len(in.calls) == 0 {
		return nil
	}
	graphs := map[*onnx.Graph]map[*onnx.Node]bool{}
	for _, c := range in.calls {
		if graphs[c.Graph] == nil {
			graphs[c.Graph] = map[*onnx.Node]bool{}
			for _, n := range c.Graph.Nodes {
				graphs[c.Graph][n] = true
			}
		}
	}
	call := map[*onnx.Node]*onnx.Node{} // node of a body → the call that it goes back into
	for _, c := range in.calls {
		if len(c.Nodes) > 0 && !slices.ContainsFunc(c.Nodes, func(n *onnx.Node) bool { return !graphs[c.Graph][n] }) {
			for _, n := range c.Nodes {
				call[n] = c.Call
			}
		}
	}
	// A body that a new node reads from is unchanged.
	for g, nodes := range graphs {
		maker := map[string]*onnx.Node{}
		for n := range nodes {
			for _, o := range n.Outputs {
				maker[o] = n
			}
		}
		read := func(v string, by *onnx.Node) {
			c := call[maker[v]]
			if c == nil || c == by || slices.Contains(c.Outputs, v) {
				return
			}
			for n, other := range call {
				if other == c {
					delete(call, n)
				}
			}
		}
		for _, n := range g.Nodes {
			for v := range ir.Uses(n) {
				read(v, call[n])
			}
		}
	}
	for g := range graphs {
		var nodes []*onnx.Node
		placed := map[*onnx.Node]bool{}
		for _, n := range g.Nodes {
			c := call[n]
			if c == nil {
				nodes = append(nodes, n)
			} else if !placed[c] {
				placed[c] = true
				nodes = append(nodes, c)
			}
		}
		g.Nodes = nodes
		if err := ir.Order(g); err != nil {
			return err
		}
	}
	return nil
}
