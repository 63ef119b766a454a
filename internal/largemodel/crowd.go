package largemodel

import (
	"google.golang.org/protobuf/proto"

	"github.com/rope-rewrite/rope-rewrite/onnx/onnxpb"
)

// Crowd is what a graph has far more of than exporters write, to find what
// takes time or memory with the square of it.
type Crowd struct {
	Plain         int64 // nodes in a row behind the last layer
	Softmaxes     int64 // of hidden states, in a row behind the last layer
	Probabilities int64 // more softmaxes in a row, of the probabilities of each attention
	Angles        int64 // nodes in a row from positions to angles
	MaskProducts  int64 // products of matrices in a row from which the mask is made
}

// plain is x through n nodes of one input.
func (b *builder) plain(x string, n int64) string {
	for range n {
		x = b.node("Neg", []string{x})
	}
	return x
}

func (b *builder) softmaxes(x string, n int64) string {
	for range n {
		x = b.node("Softmax", []string{x}, integer("axis", -1))
	}
	return x
}

// steps is x + 1 − 1 + 1 …, of n nodes; an odd one is a product with 1.
func (b *builder) steps(x string, n int64) string {
	one := b.float(1)
	if n%2 == 1 {
		x = b.node("Mul", []string{x, one})
	}
	for range n / 2 {
		x = b.node("Sub", []string{b.node("Add", []string{x, one}), one})
	}
	return x
}

// products is the boolean [batch, 1, 1, total] multiplied n times by the matrix
// [[1]] as numbers [batch, 1, total, 1].
func (b *builder) products(x string, n int64) string {
	if n == 0 {
		return x
	}
	one := b.constant(&onnxpb.TensorProto{Dims: []int64{1, 1}, DataType: proto.Int32(int32(onnxpb.TensorProto_FLOAT)), FloatData: []float32{1}})
	swap := func(x string) string { return b.node("Transpose", []string{x}, integers("perm", 0, 1, 3, 2)) }
	x = swap(b.node("Cast", []string{x}, integer("to", 1)))
	for range n {
		x = b.node("MatMul", []string{x, one})
	}
	return b.node("Cast", []string{swap(x)}, integer("to", 9))
}
