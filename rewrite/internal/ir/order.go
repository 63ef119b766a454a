package ir

import (
	"fmt"
	"slices"

	"github.com/rope-rewrite/rope-rewrite/onnx"
)

// Order restores topological order where a new node follows a reader of its
// outputs. A list that is in order is unchanged. A cycle is an error.
func Order(g *onnx.Graph) error {
	producer := map[string]int{}
	for i, n := range g.Nodes {
		for _, o := range n.Outputs {
			if o != "" {
				producer[o] = i
			}
		}
	}
	const (
		unseen = iota
		open
		done
	)
	state := make([]uint8, len(g.Nodes))
	var sorted []*onnx.Node
	var visit func(i int) error
	visit = func(i int) error {
		switch state[i] {
		case done:
			return nil
		case open:
			return fmt.Errorf("node %s would depend on its own output", Label(g.Nodes[i]))
		}
		state[i] = open
		for v := range Uses(g.Nodes[i]) {
			if p, ok := producer[v]; ok {
				if err := visit(p); err != nil {
					return err
				}
			}
		}
		state[i] = done
		sorted = append(sorted, g.Nodes[i])
		return nil
	}
	for i := range g.Nodes {
		if err := visit(i); err != nil {
			return err
		}
	}
	if !slices.Equal(sorted, g.Nodes) {
		g.Nodes = sorted
	}
	return nil
}
