package graph

import (
	"fmt"

	"github.com/rope-rewrite/rope-rewrite/internal/short"
	"github.com/rope-rewrite/rope-rewrite/onnx"
	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/ir"
)

// Evaluable returns an error for a node that must not be run: ops of other libraries,
// loops, calls of the model's own functions, and fused ops that their adapter refused,
// because nothing has checked their attributes.
func (g *Graph) Evaluable(n *onnx.Node) error {
	if err := g.Unread[n]; err != nil {
		return fmt.Errorf("the %s at %s cannot be read: %w", short.Name(n.OpType), ir.Label(n), err)
	}
	if err := evaluable(n); err != nil && ir.Function(g.Model, n) {
		return fmt.Errorf("node %s calls %s, a function of the model, which is not searched; %s", ir.Label(n), short.Name(n.OpType), InlineThem)
	} else if err != nil {
		return err
	}
	return nil
}

// InlineThem tells the user what to do about the model's own functions.
const InlineThem = "inline them first, for example by onnx.inliner.inline_local_functions in Python"

// evaluable refuses ops of other libraries, and loops: how long they run cannot be
// bounded.
func evaluable(n *onnx.Node) error {
	if n.Domain != "" && n.Domain != "ai.onnx" && n.Domain != "com.microsoft" {
		return fmt.Errorf("node %s is of the domain %q, which cannot be evaluated", ir.Label(n), short.Name(n.Domain))
	}
	if ir.Standard(n, "Loop", "Scan") {
		return fmt.Errorf("node %s is a %s, which cannot be evaluated", ir.Label(n), short.Name(n.OpType))
	}
	for sub := range n.Subgraphs() {
		for inner := range sub.AllNodes() {
			if err := evaluable(inner); err != nil {
				return err
			}
		}
	}
	return nil
}
