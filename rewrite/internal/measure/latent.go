package measure

import (
	"context"
	"math"
	"slices"

	"github.com/rope-rewrite/rope-rewrite/internal/engine"
	"github.com/rope-rewrite/rope-rewrite/onnx"
	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/bound"
	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/dim"
	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/eval"
	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/graph"
	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/ir"
	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/rotation"
	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/site"
)

// Latent attention (DeepSeek-V2, arXiv 2405.04434) keeps two things for later
// calls: latent states, of which every call makes keys and values for all
// tokens anew, and a few rotated channels that all heads share. The op takes
// the keys and values of cached and of new tokens apart, and what it gives back
// as keys holds the shared channels, which are the model's cache.

// Latent says how the keys of such a site are put together.
type Latent struct {
	Place  []int64 // channel of a key → among those of the cuts, one after the other
	First  int64   // of the shared ones among these
	Count  int64   // how many are shared
	Part   int     // which of the cuts holds them
	factor float64 // on all of them
}

// sharedRotation measures the rotation of the channels that are kept, and where
// they stand in a key.
func sharedRotation(ctx context.Context, l *eval.Evaluator, s *site.Sized, ly *site.Layouts) (*rotation.Matrix, *onnx.ValueInfo, *Latent, error) {
	c, part := s.Key.Shared, ly.Key.Parts[s.Key.SharedAt]
	for _, v := range []string{c.Past, c.Present} {
		if kept, err := dim.LayoutOf(l.Table.Dims[v], part.Channels); err != nil || !kept.Canonical() || kept.Heads != part.Heads || kept.Channels != part.Channels {
			return nil, nil, nil, graph.Refuse(c.Concat, "the cache of its rotated keys has the shape %v; [batch, %d, tokens, %d] was expected", l.Table.Dims[v], part.Heads, part.Channels)
		}
	}
	fresh, err := dim.LayoutOf(l.Table.Dims[c.NewRows], part.Channels)
	if err != nil {
		return nil, nil, nil, graph.Refuse(s.ScoresMatMul, "the rotated key (%q) has an unexpected shape: %v", c.NewRows, err)
	}
	b := site.Branch{Boundary: s.Key.Boundaries()[s.Key.SharedAt]}
	m, position, err := branchRotation(ctx, l, b, s.ScoresMatMul, "key", c.NewRows, part, fresh)
	if err != nil {
		return nil, nil, nil, err
	}
	la, err := keyChannelMap(ctx, l, s, ly)
	if err != nil {
		return nil, nil, nil, err
	}
	at := slices.Index(la.Place, la.First)
	for i := range la.Count {
		if c := at + int(i); at < 0 || c >= len(la.Place) || la.Place[c] != la.First+i {
			return nil, nil, nil, graph.Refuse(s.ScoresMatMul, "the channels of its key that all heads share are %v of all; one run of them was expected", la.Place)
		}
	}
	order := slices.Clone(la.Place)
	if m.Order != nil {
		for i, from := range m.Order {
			order[at+i] = la.First + from
		}
	}
	m.Order, m.Encoding.Offset = order, m.Encoding.Offset+at
	return m, position, la, nil
}

// keyChannelMap finds which channel of what a key is put together of each of its
// channels is, for cached tokens and new ones alike.
func keyChannelMap(ctx context.Context, l *eval.Evaluator, s *site.Sized, ly *site.Layouts) (*Latent, error) {
	la := &Latent{Part: s.Key.SharedAt, Count: ly.Key.Parts[s.Key.SharedAt].Channels}
	cuts := s.Key.Boundaries()
	cuts[la.Part] = s.Key.Shared.Present
	loaded, refusal := l.Open(ctx, s.ScoresMatMul, "the way from the key cache to the scores", []string{s.Key.Operand}, cuts)
	if refusal != nil {
		return nil, refusal
	}
	defer loaded.Session.Close()
	// One row of the batch for each channel.
	pt := dim.Point{B: ly.Key.Channels, L: 3, P: 4}
	feeds := map[string]engine.Tensor{}
	first := int64(0)
	for i, cut := range cuts {
		dims := dim.Evaluate(l.Table.Dims[cut], pt)
		part := ly.Key.Parts[i]
		if i == la.Part {
			part, _ = dim.LayoutOf(l.Table.Dims[cut], part.Channels) // as sharedRotation has it
		}
		elements, err := bound.Room(dims)
		if err != nil {
			return nil, graph.Refuse(s.ScoresMatMul, "how its key is put together cannot be evaluated: %v", err)
		}
		if i == la.Part {
			la.First = first
		}
		x := make([]float32, elements)
		for c := range part.Channels {
			for h := range part.Heads {
				for r := range pt.L + pt.P {
					x[part.Index(dims, first+c, h, r, c)] = 1
				}
			}
		}
		feeds[cut] = loaded.Piece.State(cut, x, dims...)
		first += part.Channels
	}
	results, err := loaded.Run(ctx, pt, feeds)
	if err != nil {
		return nil, graph.Refuse(s.ScoresMatMul, "how its key is put together cannot be evaluated: %v", err)
	}
	y := results[s.Key.Operand]
	values := y.Values()
	at := func(b, h, r, c int64) float64 { return values[ly.KeyOperand.Index(y.Dims, b, h, r, c)] }
	for c := range ly.KeyOperand.Channels {
		from := int64(-1)
		for b := range pt.B {
			if v := at(b, 0, 0, c); v != 0 {
				if la.factor == 0 {
					la.factor = ir.Snapped(v, loaded.Piece.Precision())
				}
				from = b
			}
		}
		if from < 0 || slices.Contains(la.Place, from) {
			return nil, graph.Refuse(s.ScoresMatMul, "channel %d of its key is none of what it is put together of", c)
		}
		la.Place = append(la.Place, from)
		for b := range pt.B {
			want := 0.0
			if b == from {
				want = la.factor
			}
			for h := range ly.KeyOperand.Heads {
				for r := range pt.L + pt.P {
					if v := at(b, h, r, c); !(math.Abs(v-want) <= 4*loaded.Piece.Precision().Epsilon()*math.Abs(la.factor)) {
						return nil, graph.Refuse(s.ScoresMatMul, "channel %d of its key is %g times channel %d of what it is put together of, at head %d, token %d; %g was expected", c, v, b, h, r, want)
					}
				}
			}
		}
	}
	return la, nil
}
