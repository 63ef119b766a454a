package fused

import (
	"fmt"
	"slices"

	"github.com/rope-rewrite/rope-rewrite/internal/short"
	"github.com/rope-rewrite/rope-rewrite/onnx"
	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/ir"
)

// Builder collects the nodes of an expansion. Add and AddTo write one node, Ints,
// Int and Float a constant, Size and Sizes what gives dimensions of a value.
type Builder struct{ ir.Builder }

// NewBuilder starts the expansion of a node. The names that it makes begin with
// that of the node's first output.
func NewBuilder(n *onnx.Node) *Builder {
	stem := "absent"
	if i := slices.IndexFunc(n.Outputs, func(o string) bool { return o != "" }); i >= 0 {
		stem = n.Outputs[i]
	}
	stem += "/rope-rewrite/" + n.OpType
	known := short.Name(n.Name)
	if known == "" {
		known = fmt.Sprintf("%s making %q", n.OpType, short.Name(stem))
	}
	// What people are told of the node names the one that they know.
	title := func(b *ir.Builder, part *onnx.Node) string {
		return fmt.Sprintf("%s (its %s %d)", known, part.OpType, len(b.Nodes)+1)
	}
	return &Builder{ir.Builder{Stem: stem, Title: title}}
}

// Expansion returns what was collected.
func (b *Builder) Expansion() *Expansion { return &Expansion{Nodes: b.Nodes, Constants: b.Constants} }
