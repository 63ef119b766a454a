package rewrite

import (
	"context"
	"slices"

	"github.com/rope-rewrite/rope-rewrite/onnx"
)

// TorchScript writes the assignment of a slice, key[..., 16:] = rotated, as a
// ScatterND whose indices it computes for every element. They are larger than
// what they place, so that they are looked at for fewer tokens than other sizes.

// scatters reports whether n writes elements into a larger value.
func scatters(n *onnx.Node) bool { return standard(n, "ScatterND") && len(n.Inputs) == 3 }

// mostIndices bounds the indices of one ScatterND that are looked at.
const mostIndices = 1 << 21

// placedAlike checks that every ScatterND between cuts and output writes a box:
// element (i, j, …) of what it places goes to (i + a, j + b, …), for the same
// a, b, … always.
func (l *lifter) placedAlike(ctx context.Context, at *onnx.Node, what, output string, cuts []string) error {
	var asked []string
	l.graph.upstream([]string{output}, func(v string, n *onnx.Node) []string {
		if slices.Contains(cuts, v) || !l.graph.isData(v) || n == nil {
			return nil
		}
		if scatters(n) {
			asked = append(asked, n.Inputs[1])
		}
		return reads(n)
	})
	for _, v := range unique(asked) {
		p, err := l.graph.extract([]string{v}, nil)
		if err != nil {
			return refuse(at, "%s writes to places (%q) that cannot be evaluated: %v", what, v, err)
		}
		loaded, refusal := l.openPiece(ctx, at, "the place where "+what+" writes", p)
		if refusal != nil {
			return refusal
		}
		err = l.box(ctx, loaded, at, what, v)
		loaded.session.Close()
		if err != nil {
			return err
		}
	}
	return nil
}

// box checks the indices of one ScatterND.
func (l *lifter) box(ctx context.Context, loaded *loaded, at *onnx.Node, what, indices string) error {
	var offset []int64
	points := samplePoints(l.table.past)
	for i := 0; i < len(points); i++ {
		results, err := loaded.run(ctx, points[i], nil)
		if err != nil {
			return refuse(at, "%s writes to places (%q) that cannot be evaluated with %v: %v", what, indices, points[i], err)
		}
		t := results[indices]
		first, ok := boxAt(t.Dims, t.Values())
		if offset == nil {
			offset = first
		}
		if !ok || !slices.Equal(first, offset) {
			return refuse(at, "%s writes to places (%q) that are not one block at %v, with %v", what, indices, offset, points[i])
		}
		if i == 0 { // as many tokens as are not too many
			pt := points[0]
			each := int64(len(t.Values()))/(pt.B*(pt.L+pt.P)) + 1
			points = slices.Insert(points, 1, point{B: 1, L: 1 + min(mostIndices/each, 4096)})
		}
	}
	return nil
}

// boxAt returns where the first element goes, and whether all others stand
// around it as in what is placed.
func boxAt(dims []int64, indices []float64) (offset []int64, ok bool) {
	if len(dims) == 0 {
		return nil, false
	}
	depth := int(dims[len(dims)-1])
	if depth != len(dims)-1 || len(indices) < depth {
		return nil, false
	}
	at := make([]int64, depth)
	for e := 0; e+depth <= len(indices); e += depth {
		for d := range depth {
			i := int64(indices[e+d])
			if e == 0 {
				offset = append(offset, i)
			}
			if i != offset[d]+at[d] {
				return offset, false
			}
		}
		for d := depth - 1; d >= 0; d-- { // the next element
			if at[d]++; at[d] < dims[d] {
				break
			}
			at[d] = 0
		}
	}
	return offset, true
}
