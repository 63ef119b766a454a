package graph

import (
	"fmt"

	"github.com/rope-rewrite/rope-rewrite/onnx"
	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/ir"
)

// Refusal says why an attention site stays as it is.
type Refusal struct {
	Node   string // the node at which it was seen
	Op     string // what kind of node that is
	Reason string // what was expected and what was measured
}

func (r *Refusal) Error() string { return r.Node + ": " + r.Reason }

func Refuse(n *onnx.Node, format string, args ...any) *Refusal {
	return &Refusal{Node: ir.Label(n), Op: n.OpType, Reason: fmt.Sprintf(format, args...)}
}
