package earlier

import (
	"errors"
	"fmt"
	"slices"

	"github.com/rope-rewrite/rope-rewrite/customop"
	"github.com/rope-rewrite/rope-rewrite/internal/short"
	"github.com/rope-rewrite/rope-rewrite/onnx"
	"github.com/rope-rewrite/rope-rewrite/provenance"
	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/lower"
	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/site"
)

// Rewrite is what an earlier rewrite left in a model.
type Rewrite struct {
	Record *provenance.Record // nil where the model has none
	Ops    []*onnx.Node       // of the op, in the order of the graphs; of Rotary those that the record names
}

// Read returns what an earlier rewrite left in m, nil where there was none.
func Read(m *onnx.Model) (*Rewrite, error) {
	e := &Rewrite{}
	record, err := provenance.Read(m)
	named := names(record)
	for n := range m.Graph.AllNodes() {
		if site.IsOp(n) || site.IsRotary(n) && named[n.Name] { // another program may have put others there
			e.Ops = append(e.Ops, n)
		}
	}
	switch {
	case errors.Is(err, provenance.ErrNone) && len(e.Ops) == 0:
		return nil, nil
	case errors.Is(err, provenance.ErrNone):
		return e, nil
	case err != nil:
		return nil, err
	}
	e.Record = record
	return e, nil
}

// names are those of the nodes that a record describes; none without one.
func names(record *provenance.Record) map[string]bool {
	list := map[string]bool{}
	if record == nil {
		return list
	}
	for _, s := range record.Sites {
		for _, name := range s.Ops {
			list[name] = true
		}
	}
	return list
}

// Usable refuses a model from whose record a rewrite cannot start.
func (e *Rewrite) Usable() error {
	if e.Record == nil {
		return fmt.Errorf("%w that is not rewritten already: %d %s nodes are from an earlier rewrite, and the model has no record of it; start from the original file", site.ErrNoAttention, len(e.Ops), customop.Domain)
	}
	names := 0
	for _, s := range e.Record.Sites {
		names += len(s.Ops)
	}
	if names != len(e.Ops) {
		return fmt.Errorf("the model's record names %d nodes of the op, but the model has %d: another program changed it; start from the original file (its graph has the SHA-256 %.12s…)", names, len(e.Ops), e.Record.Graph)
	}
	if layer, ok := e.replaced(); ok {
		return fmt.Errorf("layer %d was rewritten with --target %s, which cannot be undone; start from the original file (its graph has the SHA-256 %.12s…)", layer, e.Record.Target, e.Record.Graph)
	}
	added := slices.DeleteFunc(slices.Clone(e.Record.AddedInputs), e.placesLogits) // which can be taken out
	if !e.HoldsOps() && len(added) > 0 {
		return fmt.Errorf("an earlier rewrite with --target onnx added the input %q to the model's own nodes, which cannot be undone; start from the original file (its graph has the SHA-256 %.12s…)", short.Name(added[0]), e.Record.Graph)
	}
	return nil
}

// HoldsOps reports whether the earlier rewrite put the op into the model, and did not
// change the model's own nodes.
func (e *Rewrite) HoldsOps() bool { return len(e.Ops) > 0 }

// replaced returns the first layer that is written as nodes other than the op or the
// model's own.
func (e *Rewrite) replaced() (layer int, ok bool) {
	return e.First(func(s provenance.Site) bool { return lower.Form(s.Form).Replaced() })
}

// First returns the first recorded layer for which holds is true.
func (e *Rewrite) First(holds func(provenance.Site) bool) (layer int, ok bool) {
	if e.Record == nil {
		return 0, false
	}
	i := slices.IndexFunc(e.Record.Sites, holds)
	if i < 0 {
		return 0, false
	}
	return e.Record.Sites[i].Layers[0], true
}
