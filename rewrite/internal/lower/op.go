package lower

import (
	"github.com/rope-rewrite/rope-rewrite/customop"
	"github.com/rope-rewrite/rope-rewrite/onnx"
	"github.com/rope-rewrite/rope-rewrite/rewrite/definition"
	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/site"
)

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
