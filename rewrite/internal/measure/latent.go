package measure

import (
	"context"
	"math"
	"slices"

	"github.com/rope-rewrite/rope-rewrite/internal/engine"
	"github.com/rope-rewrite/rope-rewrite/internal/short"
	"github.com/rope-rewrite/rope-rewrite/onnx"
	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/bound"
	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/dim"
	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/eval"
	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/graph"
	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/ir"
	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/rotation"
	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/site"
)

// Latent attention (DeepSeek-V2, arXiv 2405.04434) caches two things: latent states, from
// which every call computes the keys and values of all tokens, and a few rotated channels
// that all heads share. The op takes the keys and values of cached tokens and those of
// new tokens as two inputs. The keys that it gives contain the shared channels, and these
// are the model's cache.

// Latent says how the keys of such a site are concatenated.
type Latent struct {
	Place  []int64 // for each channel of a key: its index among the channels of all boundaries, one after the other
	First  int64   // index among these of the first shared channel
	Count  int64   // number of shared channels
	Part   int     // index in Key.Boundaries of the value that holds them
	factor float64 // on all channels
}

// sharedRotation measures the rotation of the shared channels, and which channels of a
// key they are.
func sharedRotation(ctx context.Context, ev *eval.Evaluator, s *site.Sized, ly *site.Layouts, mask *onnx.ValueInfo) (*rotation.Matrix, placed, *Latent, error) {
	c, part := s.Key.Shared, ly.Key.Parts[s.Key.SharedAt]
	for _, v := range []string{c.Past, c.Present} {
		if cached, err := dim.LayoutOf(ev.Table.Dims[v], part.Channels); err != nil || !cached.Canonical() || cached.Heads != part.Heads || cached.Channels != part.Channels {
			return nil, placed{}, nil, graph.Refuse(c.Concat, "the cache of its rotated keys has the shape %v; expected [batch, %d, tokens, %d]", ev.Table.Dims[v], part.Heads, part.Channels)
		}
	}
	newRows, err := dim.LayoutOf(ev.Table.Dims[c.NewRows], part.Channels)
	if err != nil {
		return nil, placed{}, nil, graph.Refuse(s.ScoresMatMul, "the rotated key (%q) has an unexpected shape: %v", short.Name(c.NewRows), err)
	}
	b := site.Branch{Boundary: s.Key.Boundaries()[s.Key.SharedAt]}
	m, position, err := branchRotation(ctx, ev, b, s.ScoresMatMul, "key", c.NewRows, part, newRows, mask)
	if err != nil {
		return nil, placed{}, nil, err
	}
	if m.Factors != nil {
		return nil, placed{}, nil, graph.Refuse(s.ScoresMatMul, "the channels of its key that all heads share have their own factors (for example the weights of a norm after the rotation)")
	}
	la, err := keyChannelMap(ctx, ev, s, ly)
	if err != nil {
		return nil, placed{}, nil, err
	}
	at := slices.Index(la.Place, la.First)
	for i := range la.Count {
		if c := at + int(i); at < 0 || c >= len(la.Place) || la.Place[c] != la.First+i {
			return nil, placed{}, nil, graph.Refuse(s.ScoresMatMul, "the channels of its key that all heads share are %v of all; expected one run of them", la.Place)
		}
	}
	order := slices.Clone(la.Place)
	if m.Order != nil {
		for i, from := range m.Order {
			order[at+i] = la.First + from
		}
	}
	return m.Within(order, at), position, la, nil
}

// keyChannelMap finds, for each channel of a key, which channel of the concatenated
// values it is. It must be the same for cached and new tokens.
func keyChannelMap(ctx context.Context, ev *eval.Evaluator, s *site.Sized, ly *site.Layouts) (*Latent, error) {
	la := &Latent{Part: s.Key.SharedAt, Count: ly.Key.Parts[s.Key.SharedAt].Channels}
	boundaries := s.Key.Boundaries()
	boundaries[la.Part] = s.Key.Shared.Present
	loaded, refusal := ev.Open(ctx, s.ScoresMatMul, "the path from the key cache to the scores", []string{s.Key.Operand}, boundaries)
	if refusal != nil {
		return nil, refusal
	}
	defer loaded.Session.Close()
	// Each row of the batch feeds one channel.
	pt := dim.Point{B: ly.Key.Channels, L: 3, P: 4}
	feeds := map[string]engine.Tensor{}
	first := int64(0)
	for i, boundary := range boundaries {
		dims := dim.Evaluate(ev.Table.Dims[boundary], pt)
		part := ly.Key.Parts[i]
		if i == la.Part {
			part, _ = dim.LayoutOf(ev.Table.Dims[boundary], part.Channels) // checked by sharedRotation
		}
		elements, err := bound.Elements(dims)
		if err != nil {
			return nil, graph.Refuse(s.ScoresMatMul, "how its key is assembled cannot be evaluated: %v", err)
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
		feeds[boundary] = loaded.Piece.State(boundary, x, dims...)
		first += part.Channels
	}
	results, err := loaded.Run(ctx, pt, feeds)
	if err != nil {
		return nil, graph.Refuse(s.ScoresMatMul, "how its key is assembled cannot be evaluated: %v", err)
	}
	y := results[s.Key.Operand]
	values := y.Values()
	at := func(b, h, r, c int64) float64 { return values[ly.KeyOperand.Index(y.Dims, b, h, r, c)] }
	precision := loaded.Piece.Precision()
	for c := range ly.KeyOperand.Channels {
		from := int64(-1)
		for b := range pt.B {
			if v := at(b, 0, 0, c); v != 0 {
				if la.factor == 0 {
					la.factor = ir.Snapped(v, precision)
				}
				from = b
			}
		}
		if from < 0 || slices.Contains(la.Place, from) {
			return nil, graph.Refuse(s.ScoresMatMul, "channel %d of its key is none of those it is assembled from", c)
		}
		la.Place = append(la.Place, from)
		for b := range pt.B {
			want := 0.0
			if b == from {
				want = la.factor
			}
			for h := range ly.KeyOperand.Heads {
				for r := range pt.L + pt.P {
					if v := at(b, h, r, c); !(math.Abs(v-want) <= 4*precision.Epsilon()*math.Abs(la.factor)) {
						return nil, graph.Refuse(s.ScoresMatMul, "channel %d of its key is %g times channel %d of those it is assembled from, at head %d, token %d; expected %g", c, v, b, h, r, want)
					}
				}
			}
		}
	}
	return la, nil
}
