package onnxrotary

import (
	"fmt"
	"math"

	"github.com/rope-rewrite/rope-rewrite/internal/short"
	"github.com/rope-rewrite/rope-rewrite/onnx"
	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/fused"
)

// Adapter reads the standard op RotaryEmbedding.
func Adapter() fused.Adapter {
	return fused.Adapter{OpType: "RotaryEmbedding", Expand: expand}
}

// maxWidth bounds the number of rotated channels.
const maxWidth = 1 << 16

func expand(n *onnx.Node, c fused.Context) (*fused.Expansion, error) {
	if err := fused.Known(n, "interleaved", "num_heads", "rotary_embedding_dim"); err != nil {
		return nil, err
	}
	if err := fused.Arity(n, 3, 4, 1); err != nil {
		return nil, err
	}
	interleaved, err := fused.Int(n, "interleaved", 0, 0, 1)
	if err != nil {
		return nil, err
	}
	heads, err := fused.Int(n, "num_heads", 0, 0, fused.MaxHeads)
	if err != nil {
		return nil, err
	}
	width, err := fused.Int(n, "rotary_embedding_dim", 0, 0, maxWidth)
	if err != nil {
		return nil, err
	}
	if width%2 != 0 {
		return nil, fmt.Errorf("its rotary_embedding_dim %d is odd", width)
	}
	x, cos, sin := n.Inputs[0], n.Inputs[1], n.Inputs[2]
	rank, ok := c.Rank(x)
	switch {
	case !ok:
		return nil, fmt.Errorf("the graph does not say how many dimensions its input %q has", short.Name(x))
	case rank != 3 && rank != 4:
		return nil, fmt.Errorf("its input %q has %d dimensions, expected 3 or 4", short.Name(x), rank)
	case rank == 3 && heads == 0:
		return nil, fmt.Errorf("its input %q has 3 dimensions, and num_heads is not given", short.Name(x))
	}

	b := fused.NewBuilder(n)
	headAxis := int64(1)
	if rank == 3 {
		x, headAxis = b.Add("Reshape", []string{x, b.Ints(0, 0, heads, -1)}), 2
	}
	if positions := fused.Input(n, 3); positions != "" {
		cos = b.Add("Gather", []string{cos, positions}, onnx.IntAttr("axis", 0))
		sin = b.Add("Gather", []string{sin, positions}, onnx.IntAttr("axis", 0))
	}
	// One angle serves all heads.
	cos = b.Add("Unsqueeze", []string{cos, b.Ints(headAxis)})
	sin = b.Add("Unsqueeze", []string{sin, b.Ints(headAxis)})
	last := onnx.IntAttr("axis", -1)
	rest := ""
	if width > 0 {
		x, rest = slice(b, x, 0, width, 1), slice(b, x, width, math.MaxInt64, 1)
	}
	var first, second string
	if interleaved == 1 {
		first, second = slice(b, x, 0, math.MaxInt64, 2), slice(b, x, 1, math.MaxInt64, 2)
	} else {
		halves := b.AddSeveral(2, "Split", []string{x}, last, onnx.IntAttr("num_outputs", 2))
		first, second = halves[0], halves[1]
	}
	times := func(a, c string) string { return b.Add("Mul", []string{a, c}) }
	real := b.Add("Sub", []string{times(first, cos), times(second, sin)})
	imaginary := b.Add("Add", []string{times(first, sin), times(second, cos)})
	parts := []string{real, imaginary}
	if interleaved == 1 {
		pairs := b.Add("Concat", []string{b.Add("Unsqueeze", []string{real, b.Ints(-1)}), b.Add("Unsqueeze", []string{imaginary, b.Ints(-1)})}, last)
		parts = []string{b.Add("Reshape", []string{pairs, b.Ints(0, 0, 0, -1)})}
	}
	if rest != "" {
		parts = append(parts, rest)
	}
	if rank == 4 {
		b.AddTo(n.Outputs[0], "Concat", parts, last)
		return b.Expansion(), nil
	}
	b.AddTo(n.Outputs[0], "Reshape", []string{b.Add("Concat", parts, last), b.Ints(0, 0, -1)})
	return b.Expansion(), nil
}

// slice takes channels from, from + step … before to.
func slice(b *fused.Builder, x string, from, to, step int64) string {
	return b.Add("Slice", []string{x, b.Ints(from), b.Ints(to), b.Ints(-1), b.Ints(step)})
}
