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
	for _, c := range changes {
		if !c.edited {
			continue
		}
		results := c.site.results()
		for n := range c.site.own() {
			if !slices.Contains(c.scope.graph.Nodes, n) {
				continue
			}
			for _, v := range n.Outputs {
				if v == "" || slices.Contains(results, v) || !c.site.graph.isData(v) {
					continue
				}
				if reader := c.scope.readBeside(v, inside); reader != "" {
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

// readBeside says what reads a value other than the given nodes and its size.
func (s *scope) readBeside(value string, inside map[*onnx.Node]bool) string {
	if slices.ContainsFunc(s.graph.Outputs, func(o *onnx.ValueInfo) bool { return o.Name == value }) {
		return "an output of the graph"
	}
	for _, n := range s.graph.Nodes {
		if inside[n] || standard(n, "Shape", "Size") {
			continue
		}
		for v := range uses(n) {
			if v == value {
				return "read by node " + label(n)
			}
		}
	}
	return ""
}
