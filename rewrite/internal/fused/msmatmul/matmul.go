package msmatmul

import (
	"fmt"

	"github.com/rope-rewrite/rope-rewrite/internal/short"
	"github.com/rope-rewrite/rope-rewrite/onnx"
	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/fused"
)

// Adapter reads com.microsoft FusedMatMul.
func Adapter() fused.Adapter {
	return fused.Adapter{Domain: "com.microsoft", OpType: "FusedMatMul", Expand: expand}
}

func expand(n *onnx.Node, c fused.Context) (*fused.Expansion, error) {
	if err := fused.Known(n, "alpha", "transA", "transB", "transBatchA", "transBatchB"); err != nil {
		return nil, err
	}
	if err := fused.Arity(n, 2, 2, 1); err != nil {
		return nil, err
	}
	alpha, err := fused.Float(n, "alpha", 1)
	if err != nil {
		return nil, err
	}
	b := fused.NewBuilder(n)
	operands := make([]string, 2)
	for i, which := range []string{"A", "B"} {
		swap, err := fused.Int(n, "trans"+which, 0, 0, 1)
		if err != nil {
			return nil, err
		}
		batch, err := fused.Int(n, "transBatch"+which, 0, 0, 1)
		if err != nil {
			return nil, err
		}
		operands[i] = n.Inputs[i]
		if swap == 0 && batch == 0 {
			continue
		}
		rank, ok := c.Rank(operands[i])
		switch {
		case !ok:
			return nil, fmt.Errorf("the graph does not say how many dimensions its input %q has", short.Name(operands[i]))
		case rank < 2:
			return nil, fmt.Errorf("its input %q has %d dimensions, expected at least 2", short.Name(operands[i]), rank)
		}
		operands[i] = b.Add("Transpose", []string{operands[i]}, onnx.IntsAttr("perm", order(rank, swap == 1, batch == 1)...))
	}
	if alpha == 1 {
		b.AddTo(n.Outputs[0], "MatMul", operands)
		return b.Expansion(), nil
	}
	product := b.Add("MatMul", operands)
	b.AddTo(n.Outputs[0], "Mul", []string{product, b.Float(alpha, c.Type(n.Inputs[0]))})
	return b.Expansion(), nil
}

// order is the permutation that an operand of some rank goes through.
func order(rank int, swap, batch bool) []int64 {
	perm := make([]int64, rank)
	for i := range perm {
		perm[i] = int64(i)
	}
	last := rank - 1
	if batch {
		for i := range last - 1 {
			perm[i] = int64(i + 1)
		}
		perm[last-1] = 0
	}
	if swap {
		perm[last-1], perm[last] = perm[last], perm[last-1]
	}
	return perm
}
