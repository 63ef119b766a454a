package graph

import (
	"fmt"

	"github.com/rope-rewrite/rope-rewrite/internal/short"
	"github.com/rope-rewrite/rope-rewrite/onnx"
	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/ir"
)

// Graph is a model's main graph for analysis: live nodes only, in topological order,
// with the producer and the consumers of each value. The model itself is not changed.
type Graph struct {
	View
	Model        *onnx.Model
	Nodes        []*onnx.Node
	Order        map[*onnx.Node]int // index in Nodes
	Producer     map[string]*onnx.Node
	Consumers    map[string][]*onnx.Node
	Constants    map[string]*onnx.Tensor    // initializers and the values of Constant nodes
	Inputs       map[string]*onnx.ValueInfo // those that must be fed: without initializers
	Outputs      map[string]bool
	Classes      map[string]Class
	constantDims map[string][]int64       // shapes of constants, and of what is computed from them as far as bound.Estimate follows
	elements     map[string]onnx.DataType // see Element; filled when the graph is built
}

// buildGraph makes a graph of nodes: the model's own or their expansions. constants are
// those of the expansions.
func buildGraph(m *onnx.Model, nodes []*onnx.Node, constants []*onnx.Tensor, v View) (*Graph, error) {
	g := &Graph{
		View:      v,
		Model:     m,
		Order:     map[*onnx.Node]int{},
		Producer:  map[string]*onnx.Node{},
		Consumers: map[string][]*onnx.Node{},
		Constants: map[string]*onnx.Tensor{},
		Inputs:    map[string]*onnx.ValueInfo{},
		Outputs:   map[string]bool{},
	}
	for _, v := range m.Graph.Inputs {
		g.Inputs[v.Name] = v
	}
	for _, t := range m.Graph.Initializers {
		if g.Inputs[t.Name] != nil && m.IRVersion >= 4 {
			continue // only a default value: the caller may feed another one
		}
		delete(g.Inputs, t.Name)
		g.Constants[t.Name] = t
	}
	for _, t := range m.Graph.SparseInitializers {
		return nil, fmt.Errorf("the initializer %q is sparse, and sparse initializers are not read here; write it as a dense one", short.Name(t.Name()))
	}
	for _, t := range constants {
		g.Constants[t.Name] = t
	}
	for _, v := range m.Graph.Outputs {
		g.Outputs[v.Name] = true
	}
	for _, n := range nodes {
		if need := fewestInputs(n); len(n.Inputs) < need {
			return nil, fmt.Errorf("node %s (%s) has %d inputs, at least %d are needed: the model is broken", ir.Label(n), short.Name(n.OpType), len(n.Inputs), need)
		}
		for _, o := range n.Outputs {
			if o == "" {
				continue
			}
			if g.Producer[o] != nil {
				return nil, fmt.Errorf("value %q is made by two nodes (%s and %s): the model is broken", short.Name(o), ir.Label(g.Producer[o]), ir.Label(n))
			}
			g.Producer[o] = n
		}
	}
	if err := g.sortLive(nodes); err != nil {
		return nil, err
	}
	for _, n := range g.Nodes {
		if t := ir.ConstantValue(n); t != nil {
			g.Constants[n.Outputs[0]] = t
		}
		for v := range ir.Uses(n) {
			g.Consumers[v] = append(g.Consumers[v], n)
		}
	}
	g.classify()
	g.readElements()
	return g, nil
}

// fewestInputs is the number of inputs that a node must have. It is known for the ops
// whose inputs are read by index.
func fewestInputs(n *onnx.Node) int {
	switch {
	case ir.Standard(n, "MatMul", "Gemm", "Gather", "Reshape", "Expand", "Tile"), n.Domain == "com.microsoft" && n.OpType == "FusedMatMul":
		return 2
	case ir.Standard(n, "Identity", "Slice", "Split", "Squeeze", "Unsqueeze", "Transpose", "Cast", "Shape", "Size", "Cos", "Sin", "Concat"):
		return 1
	}
	return 0
}
