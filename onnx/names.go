package onnx

import "fmt"

// Names are the names of values and nodes that a model has. New ones are made of it.
type Names map[string]bool

// Note notes the names in a graph and in the graphs inside its nodes.
func (names Names) Note(g *Graph) {
	for g := range g.AllGraphs() {
		for _, v := range g.Inputs {
			names[v.Name] = true
		}
		for name := range g.InitializerNames() {
			names[name] = true
		}
		for _, n := range g.Nodes {
			names[n.Name] = true
			for _, o := range n.Outputs {
				names[o] = true
			}
		}
	}
}

// Fresh returns a name that nothing has, and notes it: the name itself, or with _2, _3 and
// so on behind it.
func (names Names) Fresh(name string) string {
	base := name
	for i := 2; names[name]; i++ {
		name = fmt.Sprintf("%s_%d", base, i)
	}
	names[name] = true
	return name
}
