package dim

import "slices"

// Grid says which dimensions the scores of an attention have, and what is computed of
// them: [batch, heads, length, total], or batch and heads in one dimension, row of the
// batch by row. The elements have the same order in both.
type Grid struct {
	Heads  int64
	Folded bool // batch and heads are one dimension
}

// GridOf recognises scores whose last dimension is columns; ok is false where they are
// not those of an attention.
func GridOf(dims []Extent, columns Extent) (g Grid, ok bool) {
	rows := len(dims) - 2
	switch {
	case rows < 1 || dims[rows] != LengthExtent || dims[rows+1] != columns:
		return g, false
	case rows == 1:
		g = Grid{Heads: dims[0].B, Folded: true}
		return g, g.Heads > 0 && dims[0] == Extent{B: g.Heads}
	}
	g = Grid{Heads: dims[1].One}
	return g, rows == 2 && dims[0] == BatchExtent && dims[1].Constant()
}

// Dims returns the dimensions for a batch, rows and columns.
func (g Grid) Dims(batch, rows, columns int64) []int64 {
	if g.Folded {
		return []int64{batch * g.Heads, rows, columns}
	}
	return []int64{batch, g.Heads, rows, columns}
}

// Has reports whether dims are those of a batch, rows and columns, whether batch and
// heads are one dimension or not.
func (g Grid) Has(dims []int64, batch, rows, columns int64) bool {
	return slices.Equal(dims, Grid{Heads: g.Heads}.Dims(batch, rows, columns)) || slices.Equal(dims, Grid{g.Heads, true}.Dims(batch, rows, columns))
}

// RowAxis returns the dimension of the rows.
func (g Grid) RowAxis() int {
	if g.Folded {
		return 1
	}
	return 2
}
