package lastlogits

import (
	"bytes"
	"context"
	"fmt"
	"math/rand/v2"
	"slices"

	"github.com/rope-rewrite/rope-rewrite/internal/engine"
	"github.com/rope-rewrite/rope-rewrite/internal/short"
	"github.com/rope-rewrite/rope-rewrite/onnx"
	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/dim"
	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/eval"
	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/graph"
	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/ir"
)

// Prove returns an error unless the logits of some tokens are the same, whether these are
// chosen before the head or behind it.
func (h *Head) Prove(ctx context.Context, eng engine.Engine, g *graph.Graph) error {
	if err := h.proveRows(ctx, eng, g); err != nil {
		return err
	}
	product := h.product.Outputs[0]
	if product == h.Output {
		return nil // nothing follows it
	}
	piece, err := eval.Extract(g, []string{h.Output}, append([]string{product}, h.scalars...))
	if err != nil {
		return fmt.Errorf("the last part of the model, from hidden states to logits, cannot be run by itself: %w", err)
	}
	if len(piece.Sizes)+len(piece.Inputs) > 0 {
		return fmt.Errorf("the last part of the model, from hidden states to logits, depends on sizes or inputs of the call, such as %q", short.Name((append(piece.Sizes, names(piece.Inputs)...))[0]))
	}
	return h.proveTail(ctx, eng, g, piece)
}

// proveRows measures that hidden states and logits have one row for each token.
func (h *Head) proveRows(ctx context.Context, eng engine.Engine, g *graph.Graph) error {
	table, err := eval.MeasureShapes(ctx, eng, g, []string{h.Hidden, h.Output})
	if err != nil {
		return fmt.Errorf("the shapes of the graph could not be measured: %w", err)
	}
	for _, v := range []string{h.Hidden, h.Output} {
		if err := table.Refused[v]; err != nil {
			return fmt.Errorf("the shape of %q could not be measured: %w", short.Name(v), err)
		}
		dims := table.Dims[v]
		if len(dims) != 3 || !is(dims[0], dim.BatchExtent, table.Static.B) || !is(dims[1], dim.LengthExtent, table.Static.L) || !dims[2].Constant() {
			return fmt.Errorf("%q is %v, not one row for each token [batch, length, size]", short.Name(v), dims)
		}
	}
	return nil
}

// is reports whether a size is one of the call's, which is static where the model has it so.
func is(e, open dim.Extent, static int64) bool {
	return e == open || static > 0 && e == dim.ConstantExtent(static)
}

// Tokens of the runs of what follows the head.
const (
	proofRows   = 2
	proofTokens = 5
)

// proveTail runs the piece behind the head on all tokens and on one of each row.
func (h *Head) proveTail(ctx context.Context, eng engine.Engine, g *graph.Graph, piece *eval.Piece) error {
	product := h.product.Outputs[0]
	width := g.Projection(h.product).Width
	typed := []*onnx.ValueInfo(nil)
	fed := h.scalars
	if t := g.Element(product); ir.IsFloat(t) {
		fed = append([]string{product}, fed...)
	} else {
		typed = append(typed, &onnx.ValueInfo{Name: product, Type: t})
	}
	p := piece.Fed(fed, typed...)
	loader := eval.Loader{Engine: eng}
	session, err := loader.Session(ctx, p.Model(onnx.Float), p.Outputs)
	if err != nil {
		return fmt.Errorf("the last part of the model, from hidden states to logits, does not load: %w", err)
	}
	defer session.Close()
	rng := rand.New(rand.NewPCG(31, 7))
	values := make([]float64, proofRows*proofTokens*width)
	for i := range values {
		values[i] = 40 * rng.NormFloat64()
	}
	scalars := map[string]float64{}
	for _, s := range h.scalars {
		scalars[s] = 0.01 + rng.Float64()
	}
	run := func(values []float64, tokens int64) (engine.Tensor, error) {
		feeds := map[string]engine.Tensor{}
		if len(typed) == 0 {
			feeds[product] = p.State(product, narrowed(values), proofRows, tokens, width)
		} else {
			whole := make([]int64, len(values))
			for i, x := range values {
				whole[i] = int64(100 * x)
			}
			var err error
			if feeds[product], err = engine.Integers(typed[0].Type, whole, proofRows, tokens, width); err != nil {
				return engine.Tensor{}, err
			}
		}
		for s, x := range scalars {
			feeds[s] = p.State(s, []float32{float32(x)}, 1)
		}
		out, err := session.Run(ctx, feeds)
		return out[h.Output], err
	}
	all, err := run(values, proofTokens)
	if err != nil {
		return fmt.Errorf("the last part of the model, from hidden states to logits, does not run: %w", err)
	}
	for token := range int64(proofTokens) {
		places := []int64{token, (token + 3) % proofTokens}
		one, err := run(rows(values, places, width), 1)
		if err != nil {
			return fmt.Errorf("the last part of the model, from hidden states to logits, does not run on one token per row: %w", err)
		}
		if want := chosen(all, places); !slices.Equal(one.Dims, want.Dims) || !bytes.Equal(one.Data, want.Data) {
			return fmt.Errorf("the last part of the model, from hidden states to logits, gives token %d different logits alone than among others", token)
		}
	}
	return nil
}

// rows returns one token of each row of [rows, tokens, width].
func rows[T any](values []T, places []int64, width int64) (list []T) {
	for b, at := range places {
		from := (int64(b)*proofTokens + at) * width
		list = append(list, values[from:from+width]...)
	}
	return list
}

// chosen is rows of a tensor; one of another form gives none.
func chosen(t engine.Tensor, places []int64) engine.Tensor {
	if len(t.Dims) != 3 || t.Dims[0] != proofRows || t.Dims[1] != proofTokens {
		return engine.Tensor{}
	}
	width := int64(len(t.Data)) / (proofRows * proofTokens)
	return engine.Tensor{Type: t.Type, Dims: []int64{proofRows, 1, t.Dims[2]}, Data: rows(t.Data, places, width)}
}

func narrowed(values []float64) []float32 {
	list := make([]float32, len(values))
	for i, x := range values {
		list[i] = float32(x)
	}
	return list
}

func names(list []*onnx.ValueInfo) (names []string) {
	for _, v := range list {
		names = append(names, v.Name)
	}
	return names
}
