package graph

import (
	"fmt"
	"slices"

	"github.com/rope-rewrite/rope-rewrite/onnx"
	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/ir"
)

// sortLive fills g.Nodes with the nodes that the graph's outputs need, producers
// first. A list that is in order stays in that order. A cycle is an error.
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
