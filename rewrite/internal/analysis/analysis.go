package analysis

import (
	"fmt"
	"slices"

	"github.com/rope-rewrite/rope-rewrite/onnx"
	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/earlier"
	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/graph"
	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/ir"
	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/measure"
	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/prove"
	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/site"
)

// Kind says by which rule a site is unchanged; "" if it can be rewritten.
type Kind string

const (
	NotDelimited Kind = "not delimited"         // its beginning or end was not found
	SharesCache  Kind = "shares its cache"      // another site reads or writes the same cache
	NotMeasured  Kind = "not measured"          // what it computes could not be measured
	NotProven    Kind = "not verified"          // the op computes something else
	NotRotary    Kind = "not rotary"            // it rotates neither query nor key by position
	NotAsked     Kind = "not asked for"         // the caller chose other layers
	CrossAlone   Kind = "cross-attention alone" // no rotary site is rewritten with it
	PaddingRead  Kind = "padding is read"       // other tokens depend on padded queries
	Outside      Kind = "read outside"          // a value that a method changes is read elsewhere
	Earlier      Kind = "earlier rewrite"       // an earlier rewrite left it unchanged
)

// Analysis is what was found out about a model's attention.
type Analysis struct {
	Sites    []Site // in the graph's order
	Warnings []string

	// OpUnfit says why the op cannot replace a proven site, by layer. It is filled only if the
	// model's own nodes may stay (Options.KeepsAttention).
	OpUnfit map[int]string

	Scopes []*site.Scope // the graphs that were searched; nil where nothing was

	Again bool // the sites hold the op of an earlier rewrite, and were proven then
}

// Site is one attention layer.
type Site struct {
	Layer int    // its place among the sites
	Node  string // its core, as the exporter named it
	Scope string // the graph inside a node that it is in; "" is the model's own
	Op    string // what the exporter wrote the core as

	Attention *measure.Attention // what was measured; nil where nothing was
	Proof     *prove.Proof       // nil where it was not proven
	Written   *earlier.Op        // the op of an earlier rewrite that it is; nil for most

	Unchanged Kind
	Whole     Kind   // by which rule the attention keeps its nodes where its rotation alone can be rewritten; "" for others
	Reason    string // why it is unchanged, or why only its rotation or scores are known
}

// KeepRotation leaves a site unchanged of which only the rotation could be rewritten.
func (s *Site) KeepRotation(why error) {
	s.leave(s.Whole, fmt.Sprintf("%s; its rotation alone cannot be rewritten either: %v", s.Reason, why))
	s.Whole, s.Attention = "", nil
}

// ReadOutside leaves a site unchanged for which methods were asked: a value that they change is read elsewhere.
func (s *Site) ReadOutside(why error) {
	if s.Whole != "" {
		s.KeepRotation(why)
		return
	}
	s.leave(Outside, why.Error())
}

// leave marks a site as unchanged.
func (s *Site) leave(kind Kind, reason string) { s.Unchanged, s.Proof, s.Reason = kind, nil, reason }

// Editable returns the sites that can be rewritten.
func (a *Analysis) Editable() (list []*Site) {
	for i := range a.Sites {
		if s := &a.Sites[i]; s.Unchanged == "" {
			list = append(list, s)
		}
	}
	return list
}

// Measured returns the sites of which something was measured, including those not asked for.
func (a *Analysis) Measured() (list []*Site) {
	for i := range a.Sites {
		if s := &a.Sites[i]; s.Attention != nil && s.Unchanged != CrossAlone {
			list = append(list, s)
		}
	}
	return list
}

// Rewritable reports whether any site can be rewritten.
func (a *Analysis) Rewritable() bool {
	return slices.ContainsFunc(a.Sites, func(s Site) bool { return s.Unchanged == "" })
}

func (a *Analysis) warn(w string) {
	if !slices.Contains(a.Warnings, w) {
		a.Warnings = append(a.Warnings, w)
	}
}

// refuse notes a site that was refused before it was delimited.
func (a *Analysis) refuse(where string, refusal *graph.Refusal) {
	a.Sites = append(a.Sites, Site{Node: refusal.Node, Scope: where, Op: refusal.Op, Unchanged: NotDelimited, Reason: refusal.Reason})
}

// add notes a site of which nothing is known yet.
func (a *Analysis) add(part *site.Scope, c site.Candidate, kind Kind, reason string) {
	a.Sites = append(a.Sites, Site{Node: ir.FullLabel(c.Node), Scope: part.Where, Op: c.Node.OpType, Unchanged: kind, Reason: reason})
}

// number gives the sites their places.
func (a *Analysis) number() {
	for i := range a.Sites {
		a.Sites[i].Layer = i
	}
}

// OfEarlier returns the sites of a model that holds the ops of an earlier rewrite.
func OfEarlier(m *onnx.Model, e *earlier.Rewrite) (*Analysis, error) {
	list, err := e.OpsByLayer(m)
	if err != nil {
		return &Analysis{}, err
	}
	a := &Analysis{Again: true}
	for layer, w := range list {
		if w == nil {
			k := e.Unchanged(layer)
			a.Sites = append(a.Sites, Site{Node: k.Node, Scope: k.Scope, Op: k.Op, Unchanged: Earlier, Reason: k.Reason})
			continue
		}
		f := w.Attention()
		s := Site{Node: w.Name(), Scope: w.Record.Scope, Op: w.Record.Op, Attention: &f, Proof: w.Record.Proof, Written: w, Reason: w.Record.Reason}
		if w.Rotary != nil {
			s.Whole = Earlier
		}
		a.Sites = append(a.Sites, s)
	}
	a.number()
	return a, nil
}
