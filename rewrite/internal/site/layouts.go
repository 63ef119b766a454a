package site

import (
	"cmp"
	"errors"
	"fmt"
	"slices"

	"github.com/rope-rewrite/rope-rewrite/internal/short"
	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/dim"
	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/eval"
	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/graph"
	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/ir"
)

// Layouts says which dimension is which in the values of a site that are fed or read
// in measurements.
type Layouts struct {
	Query, QueryOperand           dim.Layout // before rotation; as the scores MatMul reads it
	Key, KeyCached, KeyOperand    dim.Layout // before rotation; as it is cached; transposed, as the scores MatMul reads it
	Value, ValueCached, ValueUsed dim.Layout // at its boundary; as it is cached; as the value MatMul reads it
	Output                        dim.Layout
	Scores, Softmax               dim.Grid // of the product of query and key; of the softmax's input
	Sinks                         int64    // how many columns the softmax's input has after the keys: 0 or 1
	Cached                        bool     // the site reads past keys
	Cross                         bool     // keys and values are those of another text
	latent                        bool     // keys and values of all tokens are computed in every call, from cached latent states
}

// SizedValues lists the values of the site whose dimensions have to be measured.
func (s *Site) SizedValues() []string {
	list := []string{s.Query.Boundary, s.Query.Operand, s.Key.Boundary, s.Key.Cached(), s.Key.Operand,
		s.Value.Boundary, s.Value.Cached(), s.Value.Operand, s.Scores(), s.SoftmaxInput(), s.Output()}
	list = append(list, s.Results()...)
	for _, b := range []Branch{s.Query, s.Key, s.Value} {
		list = append(list, b.rearrangements...)
		if b.Shared != nil {
			list = append(list, b.Shared.NewRows)
		}
		for _, o := range b.Parts {
			list = append(append(list, o.boundary), o.rearrangements...)
		}
	}
	for _, b := range []Branch{s.Query, s.Key} {
		for _, scale := range b.Scales {
			list = append(list, scale.Value, scale.Of)
		}
	}
	return ir.Unique(append(list, s.Boundaries()...))
}

// Layouts recognises the dimensions of all values of the site, from the extents in t.
// It refuses shapes other than those of an attention with batch, heads and tokens.
func (s *Sized) Layouts(t *eval.ShapeTable) (*Layouts, error) {
	for _, v := range s.SizedValues() {
		if err := t.Refused[v]; err != nil {
			return nil, graph.Refuse(s.Softmax, "the shape of %q cannot be measured: %v", short.Name(v), err)
		}
	}
	ly := &Layouts{Cached: s.Past(), Cross: s.Crosses, latent: s.Key.Shared != nil}
	scores, total := t.Dims[s.Scores()], eval.TotalOf(t)
	if s.Crosses {
		total = dim.SourceExtent
	}
	if len(scores) > 2 && !slices.ContainsFunc(scores, func(e dim.Extent) bool { return !e.Constant() }) {
		return nil, graph.Refuse(s.ScoresMatMul, "its scores always have the shape %v: the model was exported for one batch and one length; export it with dynamic sizes", scores)
	}
	if len(scores) == 4 && scores[2] == dim.LengthExtent && scores[3] != total && scores[3].L == 0 && !scores[3].Constant() {
		return nil, graph.Refuse(s.ScoresMatMul, "its scores have the shape %v: its keys are not those of this call and earlier tokens; it may be cross-attention, which has no rotation", scores)
	}
	known := false
	if ly.Scores, known = dim.GridOf(scores, total); !known {
		return nil, graph.Refuse(s.ScoresMatMul, "its scores have the shape %v; expected [batch, heads, length, past + length], or batch · heads in one dimension", scores)
	}
	if ly.Softmax, known = dim.GridOf(t.Dims[s.SoftmaxInput()], total); !known {
		sinks := total
		sinks.One = 1
		if ly.Softmax, known = dim.GridOf(t.Dims[s.SoftmaxInput()], sinks); known {
			ly.Sinks = 1
		}
	}
	if !known || ly.Softmax.Heads != ly.Scores.Heads {
		return nil, graph.Refuse(s.Softmax, "its input has the shape %v, the scores have %v", t.Dims[s.SoftmaxInput()], scores)
	}
	valueChannels := dim.LastConstant(t.Dims[s.Value.Operand])
	if err := s.rotatedLayouts(ly, t); err != nil {
		return nil, err
	}
	return ly, s.recognise(t,
		place{&ly.KeyOperand, s.Key.Operand, "transposed key", ly.Query.Channels},
		place{&ly.Value, s.Value.Boundary, "value", valueChannels},
		place{&ly.ValueCached, s.Value.Cached(), "stored value", valueChannels},
		place{&ly.ValueUsed, s.Value.Operand, "used value", valueChannels},
		place{&ly.Output, s.Output(), "output", valueChannels})
}

// RotatedLayouts recognises no more than what it takes to measure the rotation: query
// and key before and after it, and the value, which may be packed together with them.
func (s *Sized) RotatedLayouts(t *eval.ShapeTable) (*Layouts, error) {
	ly := &Layouts{Cached: s.Past()}
	if err := s.rotatedLayouts(ly, t); err != nil {
		return nil, err
	}
	if s.Alone > 0 && s.Value.Boundary != s.Query.Boundary && s.Value.Boundary != s.Key.Boundary {
		return ly, nil // the value has no part in it
	}
	channels := dim.LastConstant(t.Dims[s.Value.Operand])
	return ly, s.recognise(t, place{&ly.Value, s.Value.Boundary, "value", channels}, place{&ly.ValueCached, s.Value.Cached(), "stored value", channels})
}

// rotatedLayouts fills in the layouts of query and key before and after rotation.
func (s *Sized) rotatedLayouts(ly *Layouts, t *eval.ShapeTable) error {
	channels := cmp.Or(s.Alone, dim.LastConstant(t.Dims[s.Query.Operand]))
	if channels == 0 {
		return graph.Refuse(s.ScoresMatMul, "the head size of its query is not constant")
	}
	if err := s.recognise(t,
		place{&ly.Query, s.Query.Boundary, "query", s.Query.width(channels)},
		place{&ly.QueryOperand, s.Query.Operand, "rotated query", channels},
		place{&ly.Key, s.Key.Boundary, "key", s.Key.width(channels)},
		place{&ly.KeyCached, s.Key.Cached(), "rotated key", channels}); err != nil {
		return err
	}
	for _, v := range []struct {
		branch Branch
		into   *dim.Layout
		what   string
	}{{s.Query, &ly.Query, "query"}, {s.Key, &ly.Key, "key"}} {
		if len(v.branch.Parts) == 0 {
			continue
		}
		var err error
		if *v.into, err = partsLayout(t, v.branch, ly.QueryOperand.Heads); err != nil {
			return graph.Refuse(s.ScoresMatMul, "the %s is assembled from several values in an unknown way: %v", v.what, err)
		}
	}
	return nil
}

// place is a value whose dimensions are to be recognised.
type place struct {
	into     *dim.Layout
	name     string
	what     string // for the text of a refusal
	channels int64  // of one head
}

// recognise fills in the layouts of the places.
func (s *Sized) recognise(t *eval.ShapeTable, places ...place) error {
	for _, v := range places {
		dims, ok := t.Dims[v.name]
		if !ok {
			return graph.Refuse(s.ScoresMatMul, "the shape of its %s (%q) does not follow from batch, length and past", v.what, short.Name(v.name))
		}
		var err error
		if *v.into, err = dim.LayoutOf(dims, v.channels); err != nil {
			return graph.Refuse(s.ScoresMatMul, "the %s (%q) has an unexpected shape: %v", v.what, short.Name(v.name), err)
		}
	}
	return nil
}

// CheckRotation returns an error where query or key has other heads before its rotation than after it.
func (ly *Layouts) CheckRotation() error {
	for _, v := range []struct {
		what     string
		from, to dim.Layout
	}{{"query", ly.Query, ly.QueryOperand}, {"key", ly.Key, ly.KeyCached}} {
		if v.from.Heads != v.to.Heads {
			return fmt.Errorf("the %s has %d heads before the rotation, and %d after it", v.what, v.from.Heads, v.to.Heads)
		}
	}
	if width := dim.Saturated(ly.Query.Heads, ly.Query.Channels); width > MaxWidth {
		return fmt.Errorf("%d heads of %d channels are above the limit of %d channels", ly.Query.Heads, ly.Query.Channels, MaxWidth)
	}
	return nil
}

// MaxWidth bounds heads · channels; the largest models have some 20,000.
const MaxWidth = 1 << 18

// Check returns an error where the layouts do not fit together: heads, channels per
// head and tokens of query, key, value and output.
func (ly *Layouts) Check() error {
	heads := ly.Scores.Heads
	if slices.Contains(ly.Output.Axes, dim.UnitAxis) {
		return errors.New("the output has an extra dimension of one element beside heads and channels")
	}
	for _, v := range []struct {
		what     string
		layout   dim.Layout
		heads    int64
		channels int64
	}{
		{"query", ly.Query, heads, ly.QueryOperand.Channels},
		{"rotated query", ly.QueryOperand, heads, ly.Query.Channels},
		{"rotated key", ly.KeyCached, 0, ly.Query.Channels},
		{"key", ly.Key, 0, ly.Query.Channels},
		{"output", ly.Output, heads, ly.Value.Channels},
	} {
		if v.heads != 0 && v.layout.Heads != v.heads {
			return fmt.Errorf("the %s has %d heads, the scores have %d", v.what, v.layout.Heads, v.heads)
		}
		if v.layout.Channels != v.channels {
			return fmt.Errorf("the %s has %d channels per head, expected %d", v.what, v.layout.Channels, v.channels)
		}
	}
	if width := dim.Saturated(heads, max(ly.Query.Channels, ly.Value.Channels)); width > MaxWidth {
		return fmt.Errorf("%d heads of %d channels are above the limit of %d channels", heads, ly.Query.Channels, MaxWidth)
	}
	rows := dim.LengthExtent
	if ly.Cross {
		rows = dim.SourceExtent
	}
	if have := ly.Value.Rows; have != rows && !(ly.latent && have == dim.TotalExtent) {
		return fmt.Errorf("the value has %v tokens, expected %v", have, rows)
	}
	if ly.Key.Heads != ly.Value.Heads {
		return fmt.Errorf("the key has %d heads, the value %d", ly.Key.Heads, ly.Value.Heads)
	}
	if ly.Key.Heads < 1 || heads%ly.Key.Heads != 0 {
		return fmt.Errorf("%d query heads are not a multiple of %d key heads", heads, ly.Key.Heads)
	}
	return nil
}
