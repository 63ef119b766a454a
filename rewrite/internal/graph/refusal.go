package graph

import (
	"errors"
	"fmt"

	"github.com/rope-rewrite/rope-rewrite/internal/short"
	"github.com/rope-rewrite/rope-rewrite/onnx"
	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/ir"
)

// Refusal says why a site is unchanged.
type Refusal struct {
	Node   string // the node at which the reason was seen, as ir.FullLabel names it
	Op     string // the op of that node
	Reason string // what was expected and what was measured

	cause error // what Refuse was given as %w
}

// Error is the node and the reason.
func (r *Refusal) Error() string { return short.Name(r.Node) + ": " + r.Reason }

// Unwrap returns the error that the reason tells, nil for most.
func (r *Refusal) Unwrap() error { return r.cause }

// Refuse returns a refusal at n with a formatted reason, as fmt.Errorf formats it.
func Refuse(n *onnx.Node, format string, args ...any) *Refusal {
	reason := fmt.Errorf(format, args...)
	return &Refusal{Node: ir.FullLabel(n), Op: n.OpType, Reason: reason.Error(), cause: errors.Unwrap(reason)}
}
