package rewrite

import (
	"context"
	"fmt"
	"math"
	"slices"

	"github.com/rope-rewrite/rope-rewrite/customop"
	"github.com/rope-rewrite/rope-rewrite/internal/engine"
	"github.com/rope-rewrite/rope-rewrite/onnx"
)

// Latent attention (DeepSeek-V2, arXiv 2405.04434) keeps two things for later
// calls: latent states, of which every call makes keys and values for all
// tokens anew, and a few rotated channels that all heads share. The op takes
// the keys and values of cached and of new tokens apart, and what it gives back
// as keys holds the shared channels, which are the model's cache.

// latent says how the keys of such a site are put together.
type latent struct {
	place  []int64 // channel of a key → among those of the cuts, one after the other
	first  int64   // of the shared ones among these
	count  int64   // how many are shared
	part   int     // which of the cuts holds them
	factor float64 // on all of them
}

// sharedRotation measures the rotation of the channels that are kept, and where
// they stand in a key.
func (l *lifter) sharedRotation(ctx context.Context, s *sizedSite, ly *layouts) (*matrix, *onnx.ValueInfo, *latent, error) {
	c, part := s.key.shared, ly.key.parts[s.key.sharedAt]
	for _, v := range []string{c.past, c.present} {
		if kept, err := layoutOf(l.table.dims[v], part.channels); err != nil || !kept.canonical() || kept.heads != part.heads || kept.channels != part.channels {
			return nil, nil, nil, refuse(c.concat, "the cache of its rotated keys has the shape %v; [batch, %d, tokens, %d] was expected", l.table.dims[v], part.heads, part.channels)
		}
	}
	fresh, err := layoutOf(l.table.dims[c.fresh], part.channels)
	if err != nil {
		return nil, nil, nil, refuse(s.product, "the rotated key (%q) has an unexpected shape: %v", c.fresh, err)
	}
	b := branch{cut: s.key.cuts()[s.key.sharedAt]}
	m, position, err := l.rotation(ctx, b, s.product, "key", c.fresh, part, fresh)
	if err != nil {
		return nil, nil, nil, err
	}
	la, err := l.placed(ctx, s, ly)
	if err != nil {
		return nil, nil, nil, err
	}
	at := slices.Index(la.place, la.first)
	for i := range la.count {
		if c := at + int(i); at < 0 || c >= len(la.place) || la.place[c] != la.first+i {
			return nil, nil, nil, refuse(s.product, "the channels of its key that all heads share are %v of all; one run of them was expected", la.place)
		}
	}
	order := slices.Clone(la.place)
	if m.order != nil {
		for i, from := range m.order {
			order[at+i] = la.first + from
		}
	}
	m.order, m.encoding.Offset = order, m.encoding.Offset+at
	return m, position, la, nil
}

// placed finds which channel of what a key is put together of each of its
// channels is, for cached tokens and new ones alike.
func (l *lifter) placed(ctx context.Context, s *sizedSite, ly *layouts) (*latent, error) {
	la := &latent{part: s.key.sharedAt, count: ly.key.parts[s.key.sharedAt].channels}
	cuts := s.key.cuts()
	cuts[la.part] = s.key.shared.present
	loaded, refusal := l.open(ctx, s.product, "the way from the key cache to the scores", []string{s.key.operand}, cuts)
	if refusal != nil {
		return nil, refusal
	}
	defer loaded.session.Close()
	// One row of the batch for each channel.
	pt := point{B: ly.key.channels, L: 3, P: 4}
	feeds := map[string]engine.Tensor{}
	first := int64(0)
	for i, cut := range cuts {
		dims := evaluate(l.table.dims[cut], pt)
		part := ly.key.parts[i]
		if i == la.part {
			part, _ = layoutOf(l.table.dims[cut], part.channels) // as sharedRotation has it
		}
		elements, err := room(dims)
		if err != nil {
			return nil, refuse(s.product, "how its key is put together cannot be evaluated: %v", err)
		}
		if i == la.part {
			la.first = first
		}
		x := make([]float32, elements)
		for c := range part.channels {
			for h := range part.heads {
				for r := range pt.L + pt.P {
					x[part.index(dims, first+c, h, r, c)] = 1
				}
			}
		}
		feeds[cut] = loaded.piece.state(cut, x, dims...)
		first += part.channels
	}
	results, err := loaded.run(ctx, pt, feeds)
	if err != nil {
		return nil, refuse(s.product, "how its key is put together cannot be evaluated: %v", err)
	}
	y := results[s.key.operand]
	values := y.Values()
	at := func(b, h, r, c int64) float64 { return values[ly.keyOperand.index(y.Dims, b, h, r, c)] }
	for c := range ly.keyOperand.channels {
		from := int64(-1)
		for b := range pt.B {
			if v := at(b, 0, 0, c); v != 0 {
				if la.factor == 0 {
					la.factor = snapped(v, loaded.piece.precision())
				}
				from = b
			}
		}
		if from < 0 || slices.Contains(la.place, from) {
			return nil, refuse(s.product, "channel %d of its key is none of what it is put together of", c)
		}
		la.place = append(la.place, from)
		for b := range pt.B {
			want := 0.0
			if b == from {
				want = la.factor
			}
			for h := range ly.keyOperand.heads {
				for r := range pt.L + pt.P {
					if v := at(b, h, r, c); !(math.Abs(v-want) <= 4*loaded.piece.precision().Epsilon()*math.Abs(la.factor)) {
						return nil, refuse(s.product, "channel %d of its key is %g times channel %d of what it is put together of, at head %d, token %d; %g was expected", c, v, b, h, r, want)
					}
				}
			}
		}
	}
	return la, nil
}

// latent gives the op keys and values of cached and of new tokens apart, and
// returns the nodes that take the model's cache out of the op's.
func (b *builder) latent(w wiring, op *customop.RotaryAttention) []*onnx.Node {
	la := w.latent
	past := b.add("Slice", []string{b.add("Shape", []string{w.pastKey}, b.value("past_dims")),
		b.constant("past_from", 2), b.constant("past_to", 3)}, b.value("past"))
	zero, end, rows := b.constant("first_row", 0), b.constant("last_row", math.MaxInt64), b.constant("rows", 2)
	split := func(value, part string) (cached, fresh string) {
		return b.add("Slice", []string{value, zero, past, rows}, b.value(part+"_cached")),
			b.add("Slice", []string{value, past, end, rows}, b.value(part+"_fresh"))
	}
	var cached, fresh []string
	for i, v := range append([]string{w.key}, w.keyBeside...) {
		part := fmt.Sprintf("key_%d", i)
		v = b.canonical(v, w.keyLayout.parts[i], part)
		old := w.pastKey
		if i != la.part {
			old, v = split(v, part)
		}
		cached, fresh = append(cached, old), append(fresh, v)
	}
	op.Key = b.ordered(b.sideBySide(fresh, w.keyLayout, "key"), w.keyOrder, "key")
	op.PastKey = b.ordered(b.sideBySide(cached, w.keyLayout, "past_key"), la.place, "past_key")
	op.PastValue, op.Value = split(b.canonical(w.value, w.valLayout, "value"), "value")
	op.PresentKey = b.value("present_key")

	shared := make([]int64, la.count)
	for c, from := range la.place {
		if i := from - la.first; i >= 0 && i < la.count {
			shared[i] = int64(c)
		}
	}
	after := &builder{stem: b.stem}
	from := op.PresentKey
	if heads := w.keyLayout.parts[la.part].heads; heads < w.keyLayout.heads {
		from = after.add("Slice", []string{from, zero, after.constant("one_head", 1), after.constant("heads", 1)}, b.value("present_head"))
	}
	after.add("Gather", []string{from, after.constant("shared_channels", shared...)}, w.presentKey, onnx.IntAttr("axis", 3))
	b.constants = append(b.constants, after.constants...)
	return after.nodes
}
