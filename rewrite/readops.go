package rewrite

import (
	"fmt"
	"slices"

	"github.com/rope-rewrite/rope-rewrite/customop"
	"github.com/rope-rewrite/rope-rewrite/internal/short"
	"github.com/rope-rewrite/rope-rewrite/onnx"
	"github.com/rope-rewrite/rope-rewrite/rewrite/definition"
	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/earlier"
	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/eval"
	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/ir"
	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/lower"
	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/plan"
	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/site"
	"github.com/rope-rewrite/rope-rewrite/rope"
)

// Op is one attention layer of a model that Rewrite wrote, as the op computes it now.
type Op struct {
	Layer     int        // its place among the model's attention layers
	Node      *onnx.Node // in the model's own graph
	Op        customop.RotaryAttention
	Attention rope.Attention // after its methods; without a record HeadSize is 0. Sinks are an input of the op's
}

// ReadOps returns the attention layers of m that an earlier Rewrite, perhaps in memory, replaced
// by the op, in their order. The sites are those without an op in the model's own graph: layers
// left unchanged, with the reason, and layers inside branches of the model. A model without any
// op is an error.
func ReadOps(m *onnx.Model) (ops []Op, kept []Site, err error) {
	e, err := earlier.Read(m)
	if err != nil {
		return nil, nil, err
	}
	if e == nil || !e.HoldsOps() {
		return nil, nil, fmt.Errorf("%s has no node of %s; rewrite it first, without --target", m.Path, customop.Domain)
	}
	if e.Usable() != nil {
		return unrecorded(m, e)
	}
	list, err := e.OpsByLayer(m)
	if err != nil {
		return nil, nil, err
	}
	for layer, w := range list {
		switch {
		case w == nil:
			kept = append(kept, unchangedBefore(e, layer))
		case w.Rotary != nil:
			kept = append(kept, Site{Layer: layer, Node: w.Node.Name, Op: w.Node.OpType, Scope: w.Scope.Where, Status: Rotation, Reason: "only its rotation is an op (Rotary): " + w.Record.Reason})
		case w.Scope.Where != "":
			kept = append(kept, inside(layer, w.Node, w.Scope.Where))
		default:
			ops = append(ops, Op{Layer: layer, Node: w.Node, Op: w.Op, Attention: w.Now})
		}
	}
	return ops, kept, nil
}

// unrecorded returns the ops of a model whose record is missing or does not fit them.
func unrecorded(m *onnx.Model, e *earlier.Rewrite) (ops []Op, kept []Site, err error) {
	for layer, n := range e.Ops {
		if site.IsRotary(n) {
			continue
		}
		if !slices.Contains(m.Graph.Nodes, n) {
			kept = append(kept, inside(layer, n, "a branch"))
			continue
		}
		op, err := definition.Read(n)
		if err != nil {
			return nil, nil, fmt.Errorf("it cannot be read: %w", err)
		}
		a, err := lower.Value(op, rope.Attention{})
		if err != nil {
			return nil, nil, err
		}
		ops = append(ops, Op{Layer: layer, Node: n, Op: op, Attention: a})
	}
	return ops, kept, nil
}

// inside is the site of an op whose values no other graph can read.
func inside(layer int, n *onnx.Node, where string) Site {
	return Site{Layer: layer, Node: n.Name, Op: n.OpType, Scope: where, Status: Unchanged, Reason: "the op is in " + short.Name(where) + ", outside the model's own graph"}
}

// NewNode returns a node of the op with the given name, for the caller's own graph.
func NewNode(op customop.RotaryAttention, name string) (*onnx.Node, error) {
	n, err := op.Node(name)
	if err != nil {
		return nil, err
	}
	return ir.FromCustom(n), nil
}

// InFloat64 returns a model that computes in float64 what m does. It is the reference for
// other models, and it allows comparing two models that may differ only in float32 rounding
// (a mixture of experts magnifies it). Rotation angles are still rounded to float32, since
// that belongs to what a model computes. Ops without a float64 kernel in ONNX Runtime compute
// in float32: Gelu, Softplus, fused norms and activations, and this project's own op. Float
// inputs and outputs become doubles.
func InFloat64(m *onnx.Model) (*onnx.Model, error) { return eval.InFloat64(m) }

// InExactPrecision gives a model whose ops multiply as with precision exact. It changes the model.
func InExactPrecision(m *onnx.Model) (*onnx.Model, error) {
	for n := range m.Graph.AllNodes() {
		if n.Domain == customop.Domain && n.Attribute("precision") != nil {
			n.SetAttribute(onnx.StringAttr("precision", plan.Exact))
		}
	}
	return m, nil
}
