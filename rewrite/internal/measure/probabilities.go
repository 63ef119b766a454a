package measure

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"

	"github.com/rope-rewrite/rope-rewrite/internal/engine"
	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/dim"
	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/eval"
)

// probabilitiesKept checks that nothing but the removal of NaN, and of a sink's
// column, stands between the softmax and the product with the values.
func probabilitiesKept(ctx context.Context, l *eval.Loaded, in, out string, heads, extra int64) error {
	pt := dim.Point{B: 2, L: 3, P: 2}
	if !l.Table.Past {
		pt = dim.Point{B: 2, L: 5}
	}
	pt = l.Table.Within(pt)
	total := pt.L + pt.P
	dims, kept := []int64{pt.B, heads, pt.L, total + extra}, []int64{pt.B, heads, pt.L, total}
	rng := rand.New(rand.NewPCG(5, 6))
	x := make([]float32, engine.Elements(dims))
	for i := range x {
		x[i] = rng.Float32()
	}
	result, err := l.Run(ctx, pt, map[string]engine.Tensor{in: l.Piece.State(in, x, dims...)})
	if err != nil {
		return err
	}
	y := result[out]
	if !slices.Equal(y.Dims, kept) {
		return fmt.Errorf("the probabilities' shape %v becomes %v", dims, y.Dims)
	}
	for i, v := range y.Values() {
		row, column := int64(i)/total, int64(i)%total
		if p := x[row*(total+extra)+column]; v != float64(p) {
			return fmt.Errorf("the probability %g becomes %g", p, v)
		}
	}
	return nil
}
