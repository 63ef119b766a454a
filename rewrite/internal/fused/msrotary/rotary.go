package msrotary

import (
	"errors"
	"fmt"

	"github.com/rope-rewrite/rope-rewrite/internal/short"
	"github.com/rope-rewrite/rope-rewrite/onnx"
	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/fused"
)

// Adapter reads com.microsoft RotaryEmbedding.
func Adapter() fused.Adapter {
	return fused.Adapter{Domain: "com.microsoft", OpType: "RotaryEmbedding", Expand: expand}
}

func expand(n *onnx.Node, c fused.Context) (*fused.Expansion, error) {
	if err := fused.Known(n, "interleaved", "is_packed_batching", "num_heads", "rotary_embedding_dim", "scale"); err != nil {
		return nil, err
	}
	if err := fused.Arity(n, 4, 4, 1); err != nil {
		return nil, err
	}
	var interleaved, heads, width, packed int64
	for _, a := range []struct {
		into      *int64
		name      string
		low, high int64
	}{
		{&interleaved, "interleaved", 0, 1},
		{&heads, "num_heads", 0, fused.MaxHeads},
		{&width, "rotary_embedding_dim", 0, 1 << 16},
		{&packed, "is_packed_batching", 0, 0},
	} {
		var err error
		if *a.into, err = fused.Int(n, a.name, 0, a.low, a.high); err != nil {
			return nil, err
		}
	}
	if scale, err := fused.Float(n, "scale", 1); err != nil {
		return nil, err
	} else if scale != 1 {
		return nil, fmt.Errorf("its scale is %g, which ONNX Runtime ignores; expected 1", scale)
	}
	columns, err := fused.Tables(c, n.Inputs[2], n.Inputs[3], 0)
	switch {
	case err != nil:
		return nil, err
	case width != 0 && width != columns:
		return nil, fmt.Errorf("its rotary_embedding_dim is %d, its tables rotate %d channels", width, columns)
	case width != 0 && heads == 0:
		return nil, errors.New("the node has rotary_embedding_dim without num_heads")
	}
	b := fused.NewBuilder(n)
	x := n.Inputs[0]
	rank, ok := c.Rank(x)
	switch {
	case !ok:
		return nil, fmt.Errorf("the graph does not say how many dimensions its input %q has", short.Name(x))
	case rank != 3 && rank != 4:
		return nil, fmt.Errorf("its input %q has %d dimensions, expected 3 or 4", short.Name(x), rank)
	}
	lengthAxis := int64(2)
	if rank == 3 {
		lengthAxis = 1
		if heads > 0 {
			x = b.Add("Reshape", []string{x, b.Ints(0, 0, heads, -1)})
		} else {
			x = b.Add("Reshape", []string{x, b.Ints(0, 0, -1, columns)})
		}
	}
	positions, err := places(b, c, n, lengthAxis)
	if err != nil {
		return nil, err
	}
	table := func(t string) string {
		rows := b.Add("Gather", []string{t, positions}, onnx.IntAttr("axis", 0)) // [batch or 1, length, width / 2]
		return b.Add("Unsqueeze", []string{rows, b.Ints(3 - lengthAxis)})        // one angle serves all heads
	}
	r := fused.Rotation{Cos: table(n.Inputs[2]), Sin: table(n.Inputs[3]), Width: columns, Rest: width != 0, Interleaved: interleaved == 1}
	turned := r.Turn(b, x)
	if rank == 3 {
		b.AddTo(n.Outputs[0], "Reshape", []string{turned, b.Ints(0, 0, -1)})
	} else {
		b.AddTo(n.Outputs[0], "Identity", []string{turned})
	}
	return b.Expansion(), nil
}

// places returns the positions as [batch or 1, length].
func places(b *fused.Builder, c fused.Context, n *onnx.Node, lengthAxis int64) (string, error) {
	given := n.Inputs[1]
	rank, ok := c.Rank(given)
	switch {
	case ok && rank == 2:
		return given, nil
	case ok && rank == 1:
		count := b.Add("Range", []string{b.Int(0), b.Size(n.Inputs[0], lengthAxis), b.Int(1)})
		return b.Add("Unsqueeze", []string{b.Add("Add", []string{given, count}), b.Ints(0)}), nil
	}
	return "", fmt.Errorf("the graph does not say whether its position_ids %q have one dimension or two", short.Name(given))
}
