package onnx

// Function is a model-local function: a node whose Domain, OpType and Overload
// name it stands for the function's body. It may be changed like a Graph.
type Function struct {
	Name     string
	Domain   string
	Overload string
	Inputs   []string
	Outputs  []string

	AttributeNames []string     // attributes that a caller must give
	Attributes     []*Attribute // attributes with their default values
	Nodes          []*Node
	ValueInfo      []*ValueInfo
	Opsets         []Opset // what the body's nodes are written against

	src source
}

// Opset is one version of one domain of operators. The standard domain is "".
type Opset struct {
	Domain  string
	Version int64
}
