package fallback

import (
	"context"
	"errors"
	"fmt"

	"github.com/rope-rewrite/rope-rewrite/customop"
	"github.com/rope-rewrite/rope-rewrite/internal/engine"
	"github.com/rope-rewrite/rope-rewrite/onnx"
	"github.com/rope-rewrite/rope-rewrite/rewrite/definition"
	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/prove"
)

// rotation is an op Rotary with the sizes on which its function is tried.
type rotation struct {
	customop.Rotary
	node     *onnx.Node
	heads    [2]int // of query and key
	headSize int
}

// rotationOf is a node as the op that a function stands for, on sizes that fit: the node does not say them.
func rotationOf(n *onnx.Node, f *onnx.Function) (tried, error) {
	op, err := definition.ReadRotary(n)
	if err != nil {
		return nil, err
	}
	if op.TensorFormat == "thd" {
		return nil, errors.New("its tokens are packed, and the function of packed tokens is not verified here")
	}
	of := rotation{Rotary: op, node: n.Clone(), heads: [2]int{2, 1}, headSize: 2*len(op.Frequencies) + int(op.RotaryOffset)}
	of.node.OpType = f.Name
	return of, nil
}

func (r rotation) description() string {
	op := r.Rotary
	op.Query, op.RotatedQuery = "", ""
	op.Key, op.RotatedKey = given(op.Key), given(op.RotatedKey)
	op.PositionIDs, op.SeqlenOffsets, op.MaxSeqlen = given(op.PositionIDs), given(op.SeqlenOffsets), given(op.MaxSeqlen)
	return fmt.Sprintf("%s %v %d %+v", r.node.OpType, r.heads, r.headSize, op)
}

// proven needs few tokens in any case.
func (r rotation) proven(ctx context.Context, eng engine.Engine, f *onnx.Function, opset int64, _ int) (float64, error) {
	return prove.RotaryDefinition(ctx, eng, r.node, r.Rotary, f, opset, r.heads, r.headSize)
}
