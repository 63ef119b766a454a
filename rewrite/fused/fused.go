package fused

import "github.com/rope-rewrite/rope-rewrite/onnx"

// Adapter reads one fused op.
type Adapter struct {
	Domain    string // "" is the standard domain
	OpType    string
	Attention bool // a whole attention: where it cannot be expanded, the attention is refused

	// Expand returns the primitive nodes that compute what n does, as sites are
	// found in and measured with.
	Expand func(n *onnx.Node, c Context) (*Expansion, error)

	// Define returns the definition that the op is proven against in float64;
	// nil stands for Expand.
	Define func(n *onnx.Node, c Context) (*Expansion, error)
}

// Context is what an adapter may ask of the model around a node.
type Context struct {
	Opset    int64                            // of the standard ops
	Rank     func(value string) (int, bool)   // number of dimensions, where the graph tells it
	Type     func(value string) onnx.DataType // element type; Undefined where the graph does not tell it
	Constant func(value string) *onnx.Tensor  // contents of an initializer or Constant; nil for other values
}

// Expansion is what a node is read as: nodes in topological order, and the
// constants that they read.
type Expansion struct {
	Nodes     []*onnx.Node
	Constants []*onnx.Tensor
}
