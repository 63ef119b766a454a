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

	// Define returns the full definition, the reference of the proof in float64;
	// nil means Expand.
	Define func(n *onnx.Node, c Context) (*Expansion, error)
}

// Context is what an adapter may ask of the model around a node.
type Context struct {
	Opset    int64                            // of the standard ops
	Rank     func(value string) (int, bool)   // number of dimensions, where the graph tells it
	Type     func(value string) onnx.DataType // element type; Undefined where the graph does not tell it
	Constant func(value string) *onnx.Tensor  // contents of an initializer or Constant; nil for other values
	Width    func(value string) (int64, bool) // last dimension, where the graph tells it
}

// Expansion is what a node is read as: nodes in topological order, and the
// constants that they read.
type Expansion struct {
	Nodes     []*onnx.Node
	Constants []*onnx.Tensor

	// Cache says how the op counts its cache; nil where past holds nothing but
	// past tokens.
	Cache *LengthTrackedCache

	// Dims are dimensions that values must have for the node to run, by axis,
	// for graph inputs whose own declaration leaves them open.
	Dims map[string]map[int]int64
}

// LengthTrackedCache is the key-value cache of an op whose past and present are
// buffers, of which each row of the batch holds as many tokens as an input
// says. Expand is then written for rows without padding in buffers that are
// full; Define, and the op that takes the node's place, read the counts. Rows
// are padded on the right only: a token's index is its place in its row, and
// rows behind a row's tokens are never used.
type LengthTrackedCache struct {
	Last  string // int32 [batch]: index of each row's last token after the call
	Total string // int32, one element: the largest number of tokens of a row; a present has max(past's rows, Total) rows
	Limit int64  // the most tokens of a row that the node runs with; 0 is any number
}
