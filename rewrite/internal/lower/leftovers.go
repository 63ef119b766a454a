package lower

import (
	"fmt"
	"slices"

	"github.com/rope-rewrite/rope-rewrite/internal/short"
	"github.com/rope-rewrite/rope-rewrite/onnx"
	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/ir"
	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/site"
)

// Leftovers returns a warning for each value inside an edited site that the model still
// computes as before the edit, because something outside the attention reads it: rotated
// keys or probabilities that are outputs of the graph, for example. The op does not give
// these values.
func Leftovers(changes []Change) (warnings []string) {
	replaced := map[*onnx.Node]bool{} // all nodes of all sites that the op replaces
	for _, c := range changes {
		for n := range c.Site.Own() {
			replaced[n] = true
		}
	}
	graphs := map[*site.Scope]*readers{}
	for _, c := range changes {
		if !c.Edited {
			continue
		}
		if graphs[c.Scope] == nil {
			graphs[c.Scope] = readersOf(c.Scope.Graph)
		}
		left := graphs[c.Scope]
		results := c.Site.Results()
		for n := range c.Site.Own() {
			if !left.nodes[n] {
				continue
			}
			for _, v := range n.Outputs {
				if v == "" || slices.Contains(results, v) || !c.Site.Graph.IsData(v) {
					continue
				}
				if reader := left.otherReader(v, replaced); reader != "" {
					warnings = append(warnings, fmt.Sprintf("%q, which belongs to the attention layer at %s, is also %s; that use still gets the original model's values",
						short.Name(v), ir.Label(c.Site.Graph.AsWritten(c.Site.Softmax)), reader))
				}
			}
		}
	}
	slices.Sort(warnings)
	return warnings
}

// readers says which nodes read the values of a graph.
type readers struct {
	nodes   map[*onnx.Node]bool
	outputs map[string]bool
	of      map[string][]*onnx.Node
}

func readersOf(g *onnx.Graph) *readers {
	r := &readers{nodes: map[*onnx.Node]bool{}, outputs: map[string]bool{}, of: map[string][]*onnx.Node{}}
	for _, o := range g.Outputs {
		r.outputs[o.Name] = true
	}
	for _, n := range g.Nodes {
		r.nodes[n] = true
		for v := range ir.Uses(n) {
			r.of[v] = append(r.of[v], n)
		}
	}
	return r
}

// otherReader names in words what reads a value, except the replaced nodes and nodes that
// read its size alone; "" where nothing does.
func (r *readers) otherReader(value string, replaced map[*onnx.Node]bool) string {
	if r.outputs[value] {
		return "an output of the graph"
	}
	for _, n := range r.of[value] {
		if !replaced[n] && !ir.Standard(n, "Shape", "Size") {
			return "read by node " + ir.Label(n)
		}
	}
	return ""
}
