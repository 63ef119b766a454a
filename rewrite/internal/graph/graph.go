package graph

import (
	"fmt"
	"slices"

	"github.com/rope-rewrite/rope-rewrite/customop"
	"github.com/rope-rewrite/rope-rewrite/onnx"
	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/ir"
)

// Graph is a view of a model's main graph for analysis: live nodes only, in
// topological order, with who makes and who reads each value. The model itself
// is not changed.
type Graph struct {
	view
	Model        *onnx.Model
	Nodes        []*onnx.Node
	Order        map[*onnx.Node]int
	Producer     map[string]*onnx.Node
	Consumers    map[string][]*onnx.Node
	Constants    map[string]*onnx.Tensor // initializers and the values of Constant nodes
	Inputs       map[string]*onnx.ValueInfo
	Outputs      map[string]bool
	Classes      map[string]class
	constantDims map[string][]int64       // of constants, and of what is computed from them in ways that are known
	elements     map[string]onnx.DataType // see element
}

// buildGraph reads nodes, which are those of the model's main graph or stand for
// them, and constants beside the model's own.
func buildGraph(m *onnx.Model, nodes []*onnx.Node, constants []*onnx.Tensor, v view) (*Graph, error) {
	g := &Graph{
		view:      v,
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
			continue // only a default: the caller may feed another value
		}
		delete(g.Inputs, t.Name)
		g.Constants[t.Name] = t
	}
	for _, t := range constants {
		g.Constants[t.Name] = t
	}
	for _, v := range m.Graph.Outputs {
		g.Outputs[v.Name] = true
	}
	for _, n := range nodes {
		if need := fewestInputs(n); len(n.Inputs) < need {
			return nil, fmt.Errorf("node %s (%s) has %d inputs, at least %d are needed: the model is broken", ir.Label(n), n.OpType, len(n.Inputs), need)
		}
		for _, o := range n.Outputs {
			if o == "" {
				continue
			}
			if g.Producer[o] != nil {
				return nil, fmt.Errorf("value %q is made by two nodes (%s and %s): the model is broken", o, ir.Label(g.Producer[o]), ir.Label(n))
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
	return g, nil
}

// fewestInputs is the number of inputs without which a node makes no sense, of
// the ops whose inputs are looked at one by one.
func fewestInputs(n *onnx.Node) int {
	switch {
	case ir.Standard(n, "MatMul", "Gemm", "Gather", "Reshape", "Expand", "Tile"), n.Domain == "com.microsoft" && n.OpType == "FusedMatMul":
		return 2
	case ir.Standard(n, "Identity", "Slice", "Split", "Squeeze", "Unsqueeze", "Transpose", "Cast", "Shape", "Size", "Cos", "Sin", "Concat"):
		return 1
	}
	return 0
}

// sortLive fills nodes with what the graph's outputs need, producers first.
// A list that is already in order keeps it.
func (g *Graph) sortLive(nodes []*onnx.Node) error {
	live := map[*onnx.Node]bool{}
	var stack []*onnx.Node
	mark := func(value string) {
		if n := g.Producer[value]; n != nil && !live[n] {
			live[n] = true
			stack = append(stack, n)
		}
	}
	for name := range g.Outputs {
		mark(name)
	}
	for len(stack) > 0 {
		n := stack[len(stack)-1]
		stack = stack[:len(stack)-1]
		for v := range ir.Uses(n) {
			mark(v)
		}
	}
	type visit struct {
		node *onnx.Node
		next []string
	}
	started := map[*onnx.Node]bool{}
	for _, root := range nodes {
		if !live[root] || started[root] {
			continue
		}
		started[root] = true
		path := []visit{{root, slices.Collect(ir.Uses(root))}}
		for len(path) > 0 {
			top := &path[len(path)-1]
			if len(top.next) == 0 {
				g.Order[top.node] = len(g.Nodes)
				g.Nodes = append(g.Nodes, top.node)
				path = path[:len(path)-1]
				continue
			}
			n := g.Producer[top.next[0]]
			top.next = top.next[1:]
			if n == nil {
				continue
			}
			if _, done := g.Order[n]; done {
				continue
			}
			if started[n] {
				return fmt.Errorf("node %s depends on its own output: the model is broken", ir.Label(n))
			}
			started[n] = true
			path = append(path, visit{n, slices.Collect(ir.Uses(n))})
		}
	}
	return nil
}

const OpsDomain = customop.Domain

// Upstream walks from values back to what they are made of, each value once.
// visit is told a value and the node that makes it (nil for inputs and
// initializers) and returns the values to go on with.
func (g *Graph) Upstream(from []string, visit func(value string, made *onnx.Node) []string) {
	seen := map[string]bool{}
	stack := slices.Clone(from)
	for len(stack) > 0 {
		v := stack[len(stack)-1]
		stack = stack[:len(stack)-1]
		if v != "" && !seen[v] {
			seen[v] = true
			stack = append(stack, visit(v, g.Producer[v])...)
		}
	}
}
