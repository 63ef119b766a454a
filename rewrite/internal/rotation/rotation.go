package rotation

import (
	"context"
	"fmt"
	"slices"

	"github.com/rope-rewrite/rope-rewrite/internal/engine"
	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/bound"
	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/dim"
	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/eval"
	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/ir"
	"github.com/rope-rewrite/rope-rewrite/rope"
)

// Rotator evaluates one branch of a site: un-rotated vectors in, rotated ones
// out, at chosen positions.
type Rotator struct {
	Loaded   *eval.Loaded
	Cuts     []string // most often one
	Out      string
	In, To   dim.Layout
	Position string  // graph input that holds positions; "" when they follow from past
	past     int64   // cached tokens, where positions are an input
	strict   bool    // what is computed in 16 bits must be right to the last place
	Tables   *tables // what the graph computes for each place, without cache and position input
	Places   int64   // the length of a model of fixed length that turns tokens by their place; 0 for others

	Precision rope.Precision // in which the function is computed
	Angles    rope.Precision // of the type that angles are computed in
	order     []int64        // which channel of the cut becomes each rotated one; nil when they keep their places

	Components int64 // how many positions a token has, where there are several
	only       int64 // the one of them that is fed, counted from 1, the others being 0; 0 is all alike
}

// apply feeds vectors (one per batch row, the same for every head and token)
// and returns out[vector][head][position][channel].
func (r *Rotator) apply(ctx context.Context, vectors [][]float32, positions []int64) ([][][][]float64, error) {
	out := make([][][][]float64, len(vectors))
	for b := range out {
		out[b] = make([][][]float64, r.To.Heads)
		for h := range out[b] {
			out[b][h] = make([][]float64, len(positions))
		}
	}
	// With a position input or tables all positions that the model takes go into
	// one call, a model of fixed length has its places in each; else a call holds
	// consecutive positions, past giving the first.
	for start := 0; start < len(positions); {
		end := len(positions)
		if most := r.Loaded.Table.Static.L; most > 0 && r.Places == 0 {
			end = min(end, start+int(most))
		}
		row := func(i int) int64 { return int64(i - start) } // where the token at positions[i] stands
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
			for _, t := range r.Tables.list {
				feeds[t.name] = t.rows(positions[start:end], pt.B)
			}
		case r.Position == "":
			most := end
			end = start + 1
			for end < most && positions[end] == positions[end-1]+1 {
				end++
			}
			pt.L, pt.P = int64(end-start), positions[start]
		default:
			t, err := r.positionFeed(positions[start:end], pt)
			if err != nil {
				return nil, err
			}
			feeds[r.Position] = t
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
			return nil, fmt.Errorf("%q has the shape %v, %v was expected", r.Out, y.Dims, want)
		}
		for b := range out {
			for h := range out[b] {
				for i := start; i < end; i++ {
					vector := make([]float64, r.To.Channels)
					for c := range vector {
						vector[c] = values[r.To.Index(y.Dims, int64(b), int64(h), row(i), int64(c))]
					}
					out[b][h][i] = vector
				}
			}
		}
		start = end
	}
	return out, nil
}

// feed adds the values that make the vectors un-rotated keys or queries.
func (r *Rotator) feed(feeds map[string]engine.Tensor, vectors [][]float32, pt dim.Point) error {
	first := int64(0) // channel of the value
	for i, ly := range r.In.Each() {
		cut := r.Cuts[i]
		dims := dim.Evaluate(r.Loaded.Table.Dims[cut], pt)
		elements, err := bound.Room(dims)
		if err != nil {
			return err
		}
		x := make([]float32, elements)
		for b, v := range vectors {
			for c, value := range v {
				from := int64(c)
				if r.order != nil {
					from = r.order[c]
				}
				if from -= first; from < 0 || from >= ly.Channels {
					continue
				}
				for h := range ly.Heads {
					for l := range pt.L {
						x[ly.Index(dims, int64(b), h, l, from)] = value
					}
				}
			}
		}
		feeds[cut] = r.Loaded.Piece.State(cut, x, dims...)
		first += ly.Channels
	}
	return nil
}

func (r *Rotator) positionFeed(positions []int64, pt dim.Point) (engine.Tensor, error) {
	for _, v := range r.Loaded.Piece.Inputs {
		if v.Name == r.Position {
			dims := dim.Evaluate(r.Loaded.Table.Inputs[v.Name], pt)
			values := slices.Repeat(positions, int(engine.Elements(dims)/pt.L))
			for i := range values {
				if r.only > 0 && int64(i)*r.Components/int64(len(values)) != r.only-1 {
					values[i] = 0
				}
			}
			return engine.Integers(v.Type, values, dims...)
		}
	}
	return engine.Tensor{}, fmt.Errorf("%q is not an input of the piece", r.Position)
}

// Matrix is a measured rotation: what R(p) does, as the encoding that does it,
// times a factor on every channel.
type Matrix struct {
	Encoding rope.Encoding
	Factor   float64        // on channels that are not rotated, and on the rotated ones beside the gain; 1 when all are rotated
	Limit    int64          // largest position that could be evaluated
	Angles   rope.Precision // of the type that angles are computed in
	Unknown  float64        // relative error that the frequencies may have beyond float32's
	Order    []int64        // which channel of the cut becomes each rotated one; nil when they keep their places
}

// Measure recovers frequencies, layout, width, offset and gain from the
// function itself, and checks them at many positions.
func (r *Rotator) Measure(ctx context.Context) (*Matrix, error) {
	limit, err := r.limit(ctx)
	if err != nil {
		return nil, err
	}
	powers := []int64{0}
	for p := int64(1); p <= limit && (r.Angles != rope.Float16 || p <= ir.LargestHalf); p *= 2 {
		powers = append(powers, p)
	}
	if last := powers[len(powers)-1]; r.Precision != rope.Float32 && r.Angles == rope.Float32 && limit > last && limit < 2*last {
		powers = append(powers, limit) // a short table in 16 bits: what is known of its frequencies grows with the position
	}
	d := int(r.In.Channels)
	basis := make([][]float32, d)
	for i := range basis {
		basis[i] = make([]float32, d)
		basis[i][i] = 1
	}
	m, err := r.alike(ctx, basis, powers)
	if err != nil {
		return nil, err
	}
	if r.order = rearranged(m); r.order != nil {
		there := slices.Clone(m)
		for to, from := range r.order {
			m[to] = there[from]
		}
	}
	pairs, err := findPairs(m, 1e-4*float64(powers[len(powers)-1])/ir.TopPosition)
	if err != nil {
		return nil, err
	}
	fit, err := fitEncoding(m, pairs, powers)
	if err != nil {
		return nil, err
	}
	if r.Angles != rope.Float32 {
		limit = min(limit, int64(2/r.Angles.Epsilon())-1) // larger positions are not even told apart
	}
	fit.Limit, fit.Angles, fit.Order = limit, r.Angles, r.order
	agreed, err := r.confirm(ctx, fit, powers[len(powers)-1])
	if err != nil && !Ended(err) && r.Angles != rope.Float32 {
		// ONNX Runtime leaves out roundings between products that it computes in float32.
		r.Angles = rope.Float32
		agreed, err = r.confirm(ctx, fit, powers[len(powers)-1])
	}
	if err != nil && !Ended(err) {
		if change := r.switches(ctx, fit); change != nil {
			return nil, change
		}
	}
	return agreed, err
}

// confirm checks a fit, and finds what its frequencies are where 16 bits blur them.
func (r *Rotator) confirm(ctx context.Context, fit *Matrix, top int64) (*Matrix, error) {
	fit.Unknown = 0
	if r.Precision != rope.Float32 && len(fit.Encoding.Frequencies) > 0 {
		return r.explained(ctx, fit, top)
	}
	return fit, r.verify(ctx, fit, fit.Limit)
}

// limit finds the largest position the graph can rotate to: a table that is
// gathered from ends somewhere.
func (r *Rotator) limit(ctx context.Context) (int64, error) {
	probe := func(p int64) error {
		_, err := r.apply(ctx, [][]float32{make([]float32, r.In.Channels)}, []int64{p})
		return err
	}
	if err := probe(0); err != nil {
		return 0, fmt.Errorf("ONNX Runtime does not evaluate the rotation: %w", err)
	}
	switch {
	case r.Tables != nil:
		return r.Tables.limit, nil
	case r.Places > 0:
		return r.Places - 1, nil
	}
	return Farthest(ir.TopPosition, func(p int64) (int64, error) { return p, probe(p) })
}

// top is the largest position that is asked for.
func (r *Rotator) top() int64 {
	if r.Tables != nil {
		return dim.Longest
	}
	return ir.TopPosition
}
