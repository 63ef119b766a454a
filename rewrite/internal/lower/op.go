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
	if n := c.first(site.IsOp); n != nil {
		return n
	}
	return c.first(site.IsRotary)
}

// first returns the first new node of a kind, nil where there is none.
func (c Change) first(is func(*onnx.Node) bool) *onnx.Node {
	i := slices.IndexFunc(c.Nodes, is)
	if i < 0 {
		return nil
	}
	return c.Nodes[i]
}

// Op returns the op that a change puts in, nil where the model's own nodes stay.
func (c Change) Op() (*customop.RotaryAttention, *onnx.Node) {
	if n := c.Node(); n != nil && site.IsOp(n) {
		if op, err := definition.Read(n); err == nil { // it was written a moment ago
			return &op, n
		}
	}
	return nil, nil
}

// Rotary returns the op Rotary that a change puts in, nil for other changes.
func (c Change) Rotary() (*customop.Rotary, *onnx.Node) {
	if n := c.Node(); n != nil && site.IsRotary(n) {
		if op, err := definition.ReadRotary(n); err == nil { // it was written a moment ago
			return &op, n
		}
	}
	return nil, nil
}
