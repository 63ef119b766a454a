package dim

import (
	"slices"
	"testing"
)

func TestGridOf(t *testing.T) {
	four, eight := ConstantExtent(4), ConstantExtent(8)
	for _, c := range []struct {
		name    string
		dims    []Extent
		columns Extent
		want    Grid
		ok      bool
	}{
		{"four dimensions", []Extent{BatchExtent, four, LengthExtent, TotalExtent}, TotalExtent, Grid{Heads: 4}, true},
		{"batch and heads in one", []Extent{{B: 4}, LengthExtent, TotalExtent}, TotalExtent, Grid{4, true}, true},
		{"one head", []Extent{BatchExtent, LengthExtent, LengthExtent}, LengthExtent, Grid{1, true}, true},
		{"a sink behind the keys", []Extent{{B: 4}, LengthExtent, {One: 1, L: 1}}, Extent{One: 1, L: 1}, Grid{4, true}, true},
		{"other columns", []Extent{{B: 4}, LengthExtent, TotalExtent}, LengthExtent, Grid{}, false},
		{"one batch alone", []Extent{eight, LengthExtent, TotalExtent}, TotalExtent, Grid{}, false},
		{"one more than heads", []Extent{{One: 1, B: 4}, LengthExtent, TotalExtent}, TotalExtent, Grid{}, false},
		{"heads before the batch", []Extent{four, BatchExtent, LengthExtent, TotalExtent}, TotalExtent, Grid{}, false},
		{"keys before queries", []Extent{{B: 4}, TotalExtent, LengthExtent}, TotalExtent, Grid{}, false},
		{"groups of heads", []Extent{BatchExtent, four, ConstantExtent(2), LengthExtent, TotalExtent}, TotalExtent, Grid{}, false},
		{"no heads", []Extent{LengthExtent, TotalExtent}, TotalExtent, Grid{}, false},
		{"nothing", nil, TotalExtent, Grid{}, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			got, ok := GridOf(c.dims, c.columns)
			if ok != c.ok || ok && got != c.want {
				t.Fatalf("it is %+v, %v; %+v, %v was expected", got, ok, c.want, c.ok)
			}
			if !ok {
				return
			}
			pt := Point{B: 3, L: 5, P: 7}
			if dims := got.Dims(pt.B, pt.L, c.columns.At(pt)); !slices.Equal(dims, Evaluate(c.dims, pt)) || dims[got.RowAxis()] != pt.L || !got.Has(dims, pt.B, pt.L, c.columns.At(pt)) {
				t.Errorf("its dimensions are %v with the rows at %d, %v was expected", dims, got.RowAxis(), Evaluate(c.dims, pt))
			}
		})
	}
}
