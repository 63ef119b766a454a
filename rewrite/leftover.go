package rewrite

import (
	"fmt"
	"slices"

	"github.com/rope-rewrite/rope-rewrite/onnx"
)

// leftovers says what of an edited site the model still computes as before,
// because something beside the attention reads it: rotated keys or probabilities
// that are outputs of the graph, for example. The op does not make them, so they
// do not have the new meaning.
func leftovers(changes []change) (warnings []string) {
	inside := map[*onnx.Node]bool{} // of any site that the op stands for
	for _, c := range changes {
		for n := range c.site.own() {
			inside[n] = true
		}
	}
	graphs := map[*scope]*readers{}
	for _, c := range changes {
		if !c.edited {
			continue
		}
		if graphs[c.scope] == nil {
			graphs[c.scope] = readersOf(c.scope.graph)
		}
		left := graphs[c.scope]
		results := c.site.results()
		for n := range c.site.own() {
			if !left.nodes[n] {
				continue
			}
			for _, v := range n.Outputs {
				if v == "" || slices.Contains(results, v) || !c.site.graph.isData(v) {
					continue
				}
				if reader := left.beside(v, inside); reader != "" {
					warnings = append(warnings, fmt.Sprintf("%q, which belongs to the attention at %s, is %s as well; it stays what the original model computes",
						v, label(c.site.graph.asWritten(c.site.softmax)), reader))
				}
			}
		}
	}
	slices.Sort(warnings)
	return warnings
}

// own returns the model's nodes that compute the site from what enters it.
func (s *site) own() map[*onnx.Node]bool {
	cuts, own := s.cuts(), map[*onnx.Node]bool{}
	s.graph.upstream(s.results(), func(v string, n *onnx.Node) []string {
		if n == nil || slices.Contains(cuts, v) || !s.graph.isData(v) {
			return nil
		}
		own[s.graph.asWritten(n)] = true
		return reads(n)
	})
	return own
}

// readers says who reads the values of a graph.
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
		for v := range uses(n) {
			r.of[v] = append(r.of[v], n)
		}
	}
	return r
}

// beside says what reads a value other than the given nodes and its size.
func (r *readers) beside(value string, inside map[*onnx.Node]bool) string {
	if r.outputs[value] {
		return "an output of the graph"
	}
	for _, n := range r.of[value] {
		if !inside[n] && !standard(n, "Shape", "Size") {
			return "read by node " + label(n)
		}
	}
	return ""
}
