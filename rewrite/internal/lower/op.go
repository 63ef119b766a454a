package lower

import (
	"slices"

	"github.com/rope-rewrite/rope-rewrite/customop"
	"github.com/rope-rewrite/rope-rewrite/onnx"
	"github.com/rope-rewrite/rope-rewrite/rewrite/definition"
	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/site"
)

// Node returns the node of this project's ops that a change puts in, nil where the model's own nodes stay.
func (c Change) Node() *onnx.Node {
	i := slices.IndexFunc(c.Nodes, func(n *onnx.Node) bool { return n.Domain == customop.Domain })
	if i < 0 {
		return nil
	}
	return c.Nodes[i]
}

// Rotary returns the op Rotary that a change puts in, nil for other changes.
func (c Change) Rotary() *customop.Rotary {
	n := c.Node()
	if n == nil || !site.IsRotary(n) {
		return nil
	}
	op, err := definition.ReadRotary(n)
	if err != nil { // it was written a moment ago
		return nil
	}
	return &op
}

// Op returns the op that a change puts in, nil where the model's own nodes stay.
func (c Change) Op() (*customop.RotaryAttention, *onnx.Node) {
	for _, n := range c.Nodes {
		if site.IsOp(n) {
			if op, err := definition.Read(n); err == nil { // it was written a moment ago
				return &op, n
			}
		}
	}
	return nil, nil
}
