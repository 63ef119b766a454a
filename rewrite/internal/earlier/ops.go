package earlier

import (
	"fmt"

	"github.com/rope-rewrite/rope-rewrite/customop"
	"github.com/rope-rewrite/rope-rewrite/internal/short"
	"github.com/rope-rewrite/rope-rewrite/onnx"
	"github.com/rope-rewrite/rope-rewrite/provenance"
	"github.com/rope-rewrite/rope-rewrite/rewrite/definition"
	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/lower"
	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/measure"
	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/positions"
	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/site"
	"github.com/rope-rewrite/rope-rewrite/rope"
)

// Op is one op that an earlier rewrite put into the model.
type Op struct {
	Node      *onnx.Node
	Scope     *site.Scope
	Op        customop.RotaryAttention // the zero value where it is Rotary
	Rotary    *customop.Rotary         // of a rotation without its attention; nil for most
	Now       rope.Attention           // what the op computes now
	Record    *provenance.Site
	Layer     int
	place     int    // in the lists of the record's site
	positions string // see provenance.Site
}

// OpsByLayer reads the ops that the record describes, in the order of the layers. A layer that
// left unchanged is nil.
func (e *Rewrite) OpsByLayer(m *onnx.Model) ([]*Op, error) {
	scopes, err := site.Scopes(m)
	if err != nil {
		return nil, err
	}
	type place struct{ scope, name string } // graphs inside nodes may have nodes of the same name
	ops, scopeOf := map[place]*onnx.Node{}, map[place]*site.Scope{}
	for _, s := range scopes {
		for _, n := range s.Graph.Nodes {
			if site.IsOp(n) || site.IsRotary(n) {
				ops[place{s.Where, n.Name}], scopeOf[place{s.Where, n.Name}] = n, s
			}
		}
	}
	list := make([]*Op, e.Record.Layers())
	for i := range e.Record.Sites {
		s := &e.Record.Sites[i]
		for k, name := range s.Ops {
			at := place{s.Scope, name}
			if ops[at] == nil {
				return nil, fmt.Errorf("the model's record names the node %q, which the model does not have: another program changed it; start from the original file", short.Name(name))
			}
			w := &Op{Node: ops[at], Scope: scopeOf[at], Record: s, place: k, Layer: s.Layers[k]}
			if err := w.read(); err != nil {
				return nil, err
			}
			if s.PositionIDs != nil {
				w.positions = s.PositionIDs[k]
			}
			list[w.Layer] = w
		}
	}
	return list, nil
}

// read reads the node, and what it computes now.
func (w *Op) read() (err error) {
	if site.IsRotary(w.Node) {
		r, err := definition.ReadRotary(w.Node)
		if err != nil {
			return err
		}
		w.Rotary, w.positions, w.Now = &r, r.PositionIDs, w.Record.Original
		w.Now.Encoding = lower.EncodingOf(r.Rotation(), w.Record.Original.Encoding.Precision)
		return nil
	}
	if w.Op, err = definition.Read(w.Node); err != nil {
		return err
	}
	if w.Now, err = lower.Value(w.Op, w.Record.Original); err != nil {
		return fmt.Errorf("layer %d: %w; start from the original file", w.Layer, err)
	}
	w.positions = w.Op.PositionIDs
	return nil
}

// Turned reports whether the model's own nodes rotate the query and key that the op reads.
func (w *Op) Turned() bool {
	return w.Rotary == nil && len(w.Op.Frequencies) == 0 && w.Op.Cross == 0 && site.RotatedBefore(w.Scope.View, []string{w.Op.Query, w.Op.Key}) != nil
}

// Name returns the name of the core that the op replaced.
func (w *Op) Name() string { return w.Record.Nodes[w.place] }

// Attention returns the site as it is to be edited: with the values before the earlier rewrite.
func (w *Op) Attention() measure.Attention {
	view := w.Scope.View
	original := w.Record.Original
	if r := w.Rotary; r != nil {
		return measure.Attention{Index: w.Layer, Scope: w.Scope, Site: site.WrittenRotary(view, w.Node, r.RotatedQuery), Measured: &measure.Measured{
			Computed: w.computed(), Attention: original, Layouts: &site.Layouts{}, Position: view.Inputs[w.positions],
			RotationOnly: true, Rotated: &measure.Rotated{Query: 1, Key: 1},
		}}
	}
	original.QueryFactors, original.KeyFactors = w.Now.QueryFactors, w.Now.KeyFactors // the record has none
	return measure.Attention{Index: w.Layer, Scope: w.Scope, Site: site.Written(view, w.Node, w.Op, w.Record.Normed), Measured: &measure.Measured{
		Computed:  w.computed(),
		Attention: original,
		Layouts:   &site.Layouts{Cached: w.Op.PastKey != ""},
		Position:  view.Inputs[w.positions],
		Mask:      view.Inputs[w.Op.AttentionMask],
		Turned:    w.Turned(),
	}}
}

// computed is the positions that the graph computes itself, nil where it does not. What they are computed
// from is not known any more.
func (w *Op) computed() *positions.Computed {
	switch why := w.Record.Positions; why {
	case "":
		return nil
	case provenance.ByIndex:
		return &positions.Computed{Value: w.positions}
	default:
		return &positions.Computed{Value: w.positions, About: positions.About{Unlike: why}}
	}
}

// Binding returns what the op is lowered with once more.
func (w *Op) Binding(mask *onnx.ValueInfo) lower.Binding {
	if w.Rotary != nil {
		return lower.WrittenRotary(w.Node, *w.Rotary)
	}
	b := lower.Written(w.Node, w.Op, w.positions, mask, w.Record.Latent, w.Record.Cache == lower.FixedCache, w.Record.Original.Encoding.LengthDependent)
	b.Computed = w.computed()
	return b
}
