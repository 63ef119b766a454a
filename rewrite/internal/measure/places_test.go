package measure

import (
	"math"
	"testing"
)

// TestOfGrid: only tables in which some channels follow the row of a token and some its column are
// those of a grid.
func TestOfGrid(t *testing.T) {
	const rows, columns = 6, 4
	at := map[string]func(i int64) float64{
		"row":    func(i int64) float64 { return float64(i / columns) },
		"column": func(i int64) float64 { return float64(i % columns) },
		// The patches of four stand together.
		"row of blocks":    func(i int64) float64 { return float64(i/8*2 + i%4/2) },
		"column of blocks": func(i int64) float64 { return float64(i/4%2*2 + i%2) },
		"index":            func(i int64) float64 { return float64(i) },
		"none":             func(int64) float64 { return 0 },
	}
	for _, c := range []struct {
		pairs []string
		want  bool
	}{
		{[]string{"row", "row", "column", "column"}, true},
		{[]string{"column", "none", "row"}, true},
		{[]string{"row of blocks", "column of blocks", "column of blocks"}, true},
		{[]string{"row", "column of blocks"}, false},
		{[]string{"index", "index"}, false}, // a text
		{[]string{"row", "row"}, false},     // groups of tokens that share a position
		{[]string{"column", "column"}, false},
		{[]string{"row", "column", "index"}, false},
		{[]string{"none", "none"}, false},
	} {
		var table []float64
		for i := range int64(rows * columns) {
			for pair, p := range c.pairs {
				table = append(table, math.Cos(at[p](i)*math.Pow(100, -float64(pair)/8)))
			}
		}
		if got := ofGrid(table, rows*columns, int64(len(c.pairs))); got != c.want {
			t.Errorf("pairs by %v are a grid: %v; %v was expected", c.pairs, got, c.want)
		}
	}
}
