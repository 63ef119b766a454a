package fused

import (
	"fmt"

	"github.com/rope-rewrite/rope-rewrite/internal/short"
	"github.com/rope-rewrite/rope-rewrite/onnx"
)

// Rotation rotates channel pairs (x₁, x₂) of the last axis by tables:
//
//	x₁·cos − x₂·sin   and   x₂·cos + x₁·sin
type Rotation struct {
	Cos, Sin    string // half as wide as Width, broadcast over the other axes
	Width       int64  // channels that are rotated, the first ones
	Rest        bool   // more channels follow, which are unchanged
	Interleaved bool   // pairs are neighbours; else halves of the width
}

// Turn writes the rotation of x, a value of rank 4.
func (r Rotation) Turn(b *Builder, x string) string {
	slice := func(from, to, step int64) string {
		return b.Add("Slice", []string{x, b.Ints(from), b.Ints(to), b.Ints(-1), b.Ints(step)})
	}
	var first, second string
	if r.Interleaved {
		first, second = slice(0, r.Width, 2), slice(1, r.Width, 2)
	} else {
		first, second = slice(0, r.Width/2, 1), slice(r.Width/2, r.Width, 1)
	}
	last := onnx.IntAttr("axis", -1)
	times := func(x, table string) string { return b.Add("Mul", []string{x, table}) }
	parts := []string{
		b.Add("Sub", []string{times(first, r.Cos), times(second, r.Sin)}),
		b.Add("Add", []string{times(second, r.Cos), times(first, r.Sin)}),
	}
	if r.Interleaved {
		for i := range parts {
			parts[i] = b.Add("Unsqueeze", []string{parts[i], b.Ints(-1)})
		}
		pairs := b.Add("Concat", parts, last)
		parts = []string{b.Add("Reshape", []string{pairs, b.Ints(0, 0, 0, r.Width)})}
	}
	if r.Rest {
		parts = append(parts, slice(r.Width, 1<<31-1, 1))
	}
	if len(parts) == 1 {
		return parts[0]
	}
	return b.Add("Concat", parts, last)
}

// Tables checks the tables of a rotary op, [positions, width / 2], and returns
// the width: how many of a head's channels they rotate. headSize 0 means one
// that is not known. ONNX Runtime ends its process on tables of another rank, so
// that of a computed table must be known.
func Tables(c Context, cos, sin string, headSize int64) (width int64, err error) {
	for _, name := range []string{cos, sin} {
		if name == "" {
			return 0, fmt.Errorf("the node rotates without cos_cache and sin_cache")
		}
		columns, err := columnsOf(c, name)
		switch {
		case err != nil:
			return 0, err
		case headSize > 0 && columns > headSize/2:
			return 0, fmt.Errorf("its table %q has %d columns, too many for heads of %d channels", short.Name(name), columns, headSize)
		case width != 0 && width != 2*columns:
			return 0, fmt.Errorf("its tables %q and %q have %d and %d columns", short.Name(cos), short.Name(sin), width/2, columns)
		}
		width = 2 * columns
	}
	return width, nil
}

func columnsOf(c Context, table string) (int64, error) {
	if t := c.Constant(table); t != nil {
		if len(t.Dims) != 2 || t.Dims[0] < 1 || t.Dims[1] < 1 {
			return 0, fmt.Errorf("its table %q has the shape %v; expected [positions, half of the rotated channels]", short.Name(table), t.Dims)
		}
		return t.Dims[1], nil
	}
	rank, known := c.Rank(table)
	columns, also := c.Width(table)
	switch {
	case !known || !also:
		return 0, fmt.Errorf("its table %q is not a constant, and the graph does not say its shape", short.Name(table))
	case rank != 2 || columns < 1 || columns > maxColumns:
		return 0, fmt.Errorf("its table %q has %d dimensions and %d columns; expected [positions, half of the rotated channels]", short.Name(table), rank, columns)
	}
	return columns, nil
}

// maxColumns bounds what a computed table may have.
const maxColumns = 1 << 15
