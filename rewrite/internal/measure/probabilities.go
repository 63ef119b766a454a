package measure

import (
	"context"
	"fmt"
	"math/rand/v2"

	"github.com/rope-rewrite/rope-rewrite/internal/engine"
	"github.com/rope-rewrite/rope-rewrite/onnx"
	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/dim"
	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/eval"
	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/graph"
	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/site"
)

// checkProbabilities refuses a site in which something changes the probabilities between
// the softmax and the value MatMul.
func checkProbabilities(ctx context.Context, ev *eval.Evaluator, s *site.Sized, ly *site.Layouts) error {
	in, out := s.Softmax.Outputs[0], s.ValueMatMul.Inputs[0]
	if rank := int64(ly.Softmax.RowAxis() + 2); softmaxAxis(ev.Graph.Model, s.Softmax, rank) != rank-1 {
		return graph.Refuse(s.Softmax, "its axis is %d, expected %d", softmaxAxis(ev.Graph.Model, s.Softmax, rank), rank-1)
	}
	if in == out {
		return nil
	}
	loaded, refusal := ev.Open(ctx, s.Softmax, "what follows the softmax", []string{out}, []string{in})
	if refusal != nil {
		return refusal
	}
	defer loaded.Session.Close()
	if err := probabilitiesKept(ctx, loaded, in, out, ly.Softmax, ly.Sinks, ly.Cross); err != nil {
		return graph.Refuse(s.Softmax, "its probabilities are changed before they are used: %v", err)
	}
	return ev.Steady(ctx, s.Softmax, "what follows the softmax", out, []string{in})
}

// softmaxAxis returns the axis of a softmax over a value of the given rank, counted from
// the first dimension.
func softmaxAxis(m *onnx.Model, n *onnx.Node, rank int64) int64 {
	axis := n.Int("axis", -1)
	if m.Opset("") < 13 && n.Attribute("axis") == nil {
		axis = 1 // before opset 13 the default was 1, over the flattened rest
	}
	if axis < 0 {
		axis += rank
	}
	return axis
}

// probabilitiesKept checks that nothing happens to probabilities from in to out, except
// that NaN becomes zero and the extra columns of sinks are dropped.
func probabilitiesKept(ctx context.Context, l *eval.Loaded, in, out string, grid dim.Grid, extra int64, cross bool) error {
	pt := dim.Point{B: 2, L: 3, P: 2}
	if !l.Table.Past {
		pt = dim.Point{B: 2, L: 5}
	}
	pt = l.Table.Within(pt)
	if cross {
		pt.S = 4
	}
	total := pt.Keys()
	dims := grid.Dims(pt.B, pt.L, total+extra)
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
	if !grid.Has(y.Dims, pt.B, pt.L, total) { // with batch and heads in one dimension, or in two
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
