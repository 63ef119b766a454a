package graph

import (
	"fmt"

	"github.com/rope-rewrite/rope-rewrite/onnx"
	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/ir"
)

// Refusal says why a site is unchanged.
type Refusal struct {
	Node   string // the node at which the reason was seen, as ir.Label names it
	Op     string // the op of that node
	Reason string // what was expected and what was measured
}

// Error is the node and the reason.
func (r *Refusal) Error() string { return r.Node + ": " + r.Reason }

// Refuse returns a refusal at n with a formatted reason.
func Refuse(n *onnx.Node, format string, args ...any) *Refusal {
	return &Refusal{Node: ir.Label(n), Op: n.OpType, Reason: fmt.Sprintf(format, args...)}
}
