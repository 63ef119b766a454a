package rewrite

import (
	"fmt"
	"iter"
	"slices"

	"github.com/rope-rewrite/rope-rewrite/onnx"
)

// graph is a view of a model's main graph for analysis: live nodes only, in
// topological order, with who makes and who reads each value. The model itself
// is not changed.
type graph struct {
	view
	model     *onnx.Model
	nodes     []*onnx.Node
	order     map[*onnx.Node]int
	producer  map[string]*onnx.Node
	consumers map[string][]*onnx.Node
	constants map[string]*onnx.Tensor // initializers and the values of Constant nodes
	inputs    map[string]*onnx.ValueInfo
	outputs   map[string]bool
	classes   map[string]class
	fixedDims map[string][]int64       // of constants, and of what is computed from them in ways that are known
	elements  map[string]onnx.DataType // see element
}

// buildGraph reads nodes, which are those of the model's main graph or stand for
// them, and constants beside the model's own.
func buildGraph(m *onnx.Model, nodes []*onnx.Node, constants []*onnx.Tensor, v view) (*graph, error) {
	g := &graph{
		view:      v,
		model:     m,
		order:     map[*onnx.Node]int{},
		producer:  map[string]*onnx.Node{},
		consumers: map[string][]*onnx.Node{},
		constants: map[string]*onnx.Tensor{},
		inputs:    map[string]*onnx.ValueInfo{},
		outputs:   map[string]bool{},
	}
	for _, v := range m.Graph.Inputs {
		g.inputs[v.Name] = v
	}
	for _, t := range m.Graph.Initializers {
		if g.inputs[t.Name] != nil && m.IRVersion >= 4 {
			continue // only a default: the caller may feed another value
		}
		delete(g.inputs, t.Name)
		g.constants[t.Name] = t
	}
	for _, t := range constants {
		g.constants[t.Name] = t
	}
	for _, v := range m.Graph.Outputs {
		g.outputs[v.Name] = true
	}
	for _, n := range nodes {
		if need := fewestInputs(n); len(n.Inputs) < need {
			return nil, fmt.Errorf("node %s (%s) has %d inputs, at least %d are needed: the model is broken", label(n), n.OpType, len(n.Inputs), need)
		}
		for _, o := range n.Outputs {
			if o == "" {
				continue
			}
			if g.producer[o] != nil {
				return nil, fmt.Errorf("value %q is made by two nodes (%s and %s): the model is broken", o, label(g.producer[o]), label(n))
			}
			g.producer[o] = n
		}
	}
	if err := g.sortLive(nodes); err != nil {
		return nil, err
	}
	for _, n := range g.nodes {
		if t := constantValue(n); t != nil {
			g.constants[n.Outputs[0]] = t
		}
		for v := range uses(n) {
			g.consumers[v] = append(g.consumers[v], n)
		}
	}
	g.classify()
	return g, nil
}

// fewestInputs is the number of inputs without which a node makes no sense, of
// the ops whose inputs are looked at one by one.
func fewestInputs(n *onnx.Node) int {
	switch {
	case standard(n, "MatMul", "Gemm", "Gather", "Reshape", "Expand", "Tile"), n.Domain == "com.microsoft" && n.OpType == "FusedMatMul":
		return 2
	case standard(n, "Identity", "Slice", "Split", "Squeeze", "Unsqueeze", "Transpose", "Cast", "Shape", "Size", "Cos", "Sin", "Concat"):
		return 1
	}
	return 0
}

// sortLive fills nodes with what the graph's outputs need, producers first.
// A list that is already in order keeps it.
func (g *graph) sortLive(nodes []*onnx.Node) error {
	live := map[*onnx.Node]bool{}
	var stack []*onnx.Node
	mark := func(value string) {
		if n := g.producer[value]; n != nil && !live[n] {
			live[n] = true
			stack = append(stack, n)
		}
	}
	for name := range g.outputs {
		mark(name)
	}
	for len(stack) > 0 {
		n := stack[len(stack)-1]
		stack = stack[:len(stack)-1]
		for v := range uses(n) {
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
		path := []visit{{root, slices.Collect(uses(root))}}
		for len(path) > 0 {
			top := &path[len(path)-1]
			if len(top.next) == 0 {
				g.order[top.node] = len(g.nodes)
				g.nodes = append(g.nodes, top.node)
				path = path[:len(path)-1]
				continue
			}
			n := g.producer[top.next[0]]
			top.next = top.next[1:]
			if n == nil {
				continue
			}
			if _, done := g.order[n]; done {
				continue
			}
			if started[n] {
				return fmt.Errorf("node %s depends on its own output: the model is broken", label(n))
			}
			started[n] = true
			path = append(path, visit{n, slices.Collect(uses(n))})
		}
	}
	return nil
}

// uses yields the values that a node reads, those its sub-graphs take from
// outside included.
func uses(n *onnx.Node) iter.Seq[string] {
	return func(yield func(string) bool) {
		for _, v := range n.Inputs {
			if v != "" && !yield(v) {
				return
			}
		}
		for sub := range n.Subgraphs() {
			for v := range captured(sub) {
				if !yield(v) {
					return
				}
			}
		}
	}
}

// captured yields the values that a sub-graph reads and does not make.
func captured(g *onnx.Graph) iter.Seq[string] {
	return func(yield func(string) bool) {
		own := map[string]bool{}
		for _, v := range g.Inputs {
			own[v.Name] = true
		}
		for _, t := range g.Initializers {
			own[t.Name] = true
		}
		for _, n := range g.Nodes {
			for v := range uses(n) {
				if !own[v] && !yield(v) {
					return
				}
			}
			for _, o := range n.Outputs {
				own[o] = true
			}
		}
		for _, o := range g.Outputs {
			if !own[o.Name] && !yield(o.Name) {
				return
			}
		}
	}
}

// label names a node for people: its name, or what it makes.
func label(n *onnx.Node) string {
	if n.Name != "" {
		return n.Name
	}
	if len(n.Outputs) > 0 {
		return fmt.Sprintf("%s making %q", n.OpType, n.Outputs[0])
	}
	return n.OpType
}

// standard reports whether n is the standard op of that name.
func standard(n *onnx.Node, ops ...string) bool {
	return n != nil && (n.Domain == "" || n.Domain == "ai.onnx") && slices.Contains(ops, n.OpType)
}
