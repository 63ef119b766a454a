package rotation

import (
	"context"
	"fmt"
	"slices"

	"github.com/rope-rewrite/rope-rewrite/internal/engine"
	"github.com/rope-rewrite/rope-rewrite/internal/short"
	"github.com/rope-rewrite/rope-rewrite/onnx"
	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/bound"
	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/dim"
	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/eval"
	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/ir"
	"github.com/rope-rewrite/rope-rewrite/rope"
)

// Rotator evaluates one branch of a site, its query or its key: un-rotated vectors in,
// rotated ones out, at chosen positions. Measuring keeps its state in it: a Rotator serves
// one branch, and one call at a time.
type Rotator struct {
	Loaded   *eval.Loaded
	Cuts     []string // the piece's boundaries: the values whose channels make the un-rotated vector, most often one
	Out      string   // the rotated value
	In, To   dim.Layout
	Position *Position // input of the piece that holds positions; nil when they follow from the past
	past     int64     // cached tokens, where positions are an input
	strict   bool      // results in 16 bits must be right to the last place
	Tables   *Tables   // the rows of each token index, in a model without a cache and position input; nil otherwise
	Places   int64     // the static length of a model that rotates tokens by their index; 0 for others

	Precision rope.Precision // in which the rotation is computed
	Angles    rope.Precision // in which angles are computed
	order     []int64        // see Matrix.Order
	factors   []float64      // see Matrix.Factors; results are divided by them

	most  int64 // the largest position that is evaluated; 0 where the graph says it
	reach int64 // the position of one more token in every call, whose rotation is not looked at; 0 for none. With tables: they are those of calls that reach it

	Components int64 // how many positions a token has; 0 for one
	only       int64 // if not 0: the one of these, counted from 1, that is fed, while the others are 0
	apart      int64 // if not 0: these differ, and each is at most this
}

// Position is an input of a piece that tells positions: one of the graph's, or a value inside it that
// is fed in its place.
type Position struct {
	Name string
	Type onnx.DataType
	Dims []dim.Extent
}

// apply feeds vectors (one for each row of the batch, the same for every head and token)
// and returns out[vector][head][position][channel].
func (r *Rotator) apply(ctx context.Context, vectors [][]float32, positions []int64) ([][][][]float64, error) {
	out := make([][][][]float64, len(vectors))
	for b := range out {
		out[b] = make([][][]float64, r.To.Heads)
		for h := range out[b] {
			out[b][h] = make([][]float64, len(positions))
		}
	}
	// With a position input or tables, one call has as many positions as the model takes.
	// A model that rotates a static length by token index has all its positions in each
	// call. Otherwise a call has consecutive positions, of which the past is the first.
	for start := 0; start < len(positions); {
		end := len(positions)
		if most := r.Loaded.Table.Static.L; most > 0 && r.Places == 0 {
			end = min(end, start+int(most))
		}
		row := func(i int) int64 { return int64(i - start) } // the row of the token at positions[i]
		pt := dim.Point{B: int64(len(vectors)), L: int64(end - start), P: r.past}
		feeds := map[string]engine.Tensor{}
		switch {
		case r.Places > 0:
			if last := slices.Max(positions); last >= r.Places {
				return nil, fmt.Errorf("position %d is beyond %d, the last of the model's fixed length", last, r.Places-1)
			}
			pt.L = r.Places
			row = func(i int) int64 { return positions[i] }
		case r.Tables != nil:
			for _, p := range positions {
				if p > r.Tables.limit {
					return nil, fmt.Errorf("position %d is beyond %d, the last that the graph computes", p, r.Tables.limit)
				}
			}
			tables, err := r.Tables.in(ctx, max(slices.Max(positions[start:end]), r.reach)+1)
			if err != nil {
				return nil, err
			}
			for _, t := range tables.list {
				feeds[t.name] = t.rows(positions[start:end], pt.B)
			}
		case r.Position == nil:
			most := end
			end = start + 1
			for end < most && positions[end] == positions[end-1]+1 {
				end++
			}
			pt.L, pt.P = int64(end-start), positions[start]
		default:
			some := positions[start:end]
			if r.reach > 0 {
				some = append(slices.Clone(some), r.reach)
				pt.L++
			}
			t, err := r.positionFeed(some, pt)
			if err != nil {
				return nil, err
			}
			feeds[r.Position.Name] = t
		}
		if err := r.feed(feeds, vectors, pt); err != nil {
			return nil, err
		}
		result, err := r.Loaded.Run(ctx, pt, feeds)
		if err != nil {
			return nil, err
		}
		y := result[r.Out]
		values := y.Values()
		if want := dim.Evaluate(r.Loaded.Table.Dims[r.Out], pt); !slices.Equal(want, y.Dims) {
			return nil, fmt.Errorf("%q has the shape %v, expected %v", short.Name(r.Out), y.Dims, want)
		}
		strides := r.To.Strides(y.Dims)
		for b := range out {
			for h := range out[b] {
				vectors := make([]float64, int64(end-start)*r.To.Channels)
				for i := start; i < end; i++ {
					vector := vectors[:r.To.Channels:r.To.Channels]
					vectors = vectors[r.To.Channels:]
					at := strides.Index(int64(b), int64(h), row(i), 0)
					for c := range vector {
						vector[c] = values[at+int64(c)*strides.Channel]
						if r.factors != nil {
							vector[c] /= r.factors[c]
						}
					}
					out[b][h][i] = vector
				}
			}
		}
		start = end
	}
	return out, nil
}

// feed adds the boundaries to feeds, with vectors as un-rotated queries or keys.
func (r *Rotator) feed(feeds map[string]engine.Tensor, vectors [][]float32, pt dim.Point) error {
	first := int64(0) // the vector's channel where this boundary begins
	for i, ly := range r.In.Each() {
		boundary := r.Cuts[i]
		dims := dim.Evaluate(r.Loaded.Table.Dims[boundary], pt)
		elements, err := bound.Elements(dims)
		if err != nil {
			return err
		}
		x := make([]float32, elements)
		strides := ly.Strides(dims)
		for b, v := range vectors {
			for c, value := range v {
				from := int64(c)
				if r.order != nil {
					from = r.order[c]
				}
				if from -= first; from < 0 || from >= ly.Channels || value == 0 && r.order == nil {
					continue
				}
				for h := range ly.Heads {
					at := strides.Index(int64(b), h, 0, from)
					for l := range pt.L {
						x[at+l*strides.Row] = value
					}
				}
			}
		}
		feeds[boundary] = r.Loaded.Piece.State(boundary, x, dims...)
		first += ly.Channels
	}
	return nil
}

// positionFeed returns the position input for these positions.
func (r *Rotator) positionFeed(positions []int64, pt dim.Point) (engine.Tensor, error) {
	dims := dim.Evaluate(r.Position.Dims, pt)
	if slices.Contains(r.Position.Dims, dim.TotalExtent) && pt.P > 0 { // cached tokens stand in front
		positions = append(make([]int64, pt.P), positions...)
	}
	values := slices.Repeat(positions, int(engine.Elements(dims))/len(positions))
	for i, p := range values {
		if r.Components > 0 {
			values[i] = r.onAxis(int64(i)*r.Components/int64(len(values)), p)
		}
	}
	if !ir.IsFloat(r.Position.Type) {
		return engine.Integers(r.Position.Type, values, dims...)
	}
	floats := make([]float64, len(values))
	for i, p := range values {
		floats[i] = float64(p)
	}
	data, err := ir.FloatTensor("", r.Position.Type, dims, floats...).Bytes()
	return engine.Tensor{Type: r.Position.Type, Dims: dims, Data: data}, err
}

// onAxis returns where a token of position p stands on one of its axes.
func (r *Rotator) onAxis(axis, p int64) int64 {
	switch {
	case r.only > 0 && axis != r.only-1:
		return 0
	case r.apart > 0:
		return (p*(2*axis+1) + 101*axis) % (r.apart + 1)
	}
	return p
}
