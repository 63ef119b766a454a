package plan

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/rope-rewrite/rope-rewrite/internal/short"
	"github.com/rope-rewrite/rope-rewrite/onnx"
	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/graph"
	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/ir"
	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/site"
)

// value is a value of one graph of a model: graphs inside others may use its name again.
type value struct {
	graph *onnx.Graph
	name  string
}

// readers says which nodes read each value of a model, in whatever graph they stand.
type readers struct {
	of      map[value][]*onnx.Node
	outputs map[value]bool // of its graph
	made    map[value]bool
	holder  map[*onnx.Node]*onnx.Graph
	views   map[*onnx.Node]*graph.Graph // of the nodes that some output depends on
	whole   map[*onnx.Graph]bool        // graphs of which each such node has a view
	sizes   map[*onnx.Node]bool         // see forSizes
	layers  map[*onnx.Node]bool         // nodes between the weights of an attention, rewritten or not, and its softmax
}

func readersIn(m *onnx.Model, scopes []*site.Scope) *readers {
	r := &readers{of: map[value][]*onnx.Node{}, outputs: map[value]bool{}, made: map[value]bool{}, holder: map[*onnx.Node]*onnx.Graph{},
		views: map[*onnx.Node]*graph.Graph{}, whole: map[*onnx.Graph]bool{}, sizes: map[*onnx.Node]bool{}, layers: map[*onnx.Node]bool{}}
	r.add([]*onnx.Graph{m.Graph})
	for _, s := range scopes {
		r.whole[s.Graph] = true
		for _, n := range s.View.Source.Nodes {
			if r.views[n] == nil {
				r.views[n] = s.View
			}
		}
		for _, c := range s.Found {
			r.addLayer(s.View, c)
		}
	}
	return r
}

// add adds the first of some graphs; the others are around it, the nearest first.
func (r *readers) add(graphs []*onnx.Graph) {
	g := graphs[0]
	for _, v := range g.Inputs {
		r.made[value{g, v.Name}] = true
	}
	for name := range g.InitializerNames() {
		r.made[value{g, name}] = true
	}
	for _, n := range g.Nodes {
		r.holder[n] = g
		for _, o := range n.Outputs {
			r.made[value{g, o}] = true
		}
	}
	for _, n := range g.Nodes {
		inputs := n.Inputs
		if ir.Standard(n, "CastLike") {
			inputs = inputs[:min(1, len(inputs))] // of the other it takes the type
		}
		for _, name := range ir.Unique(inputs) {
			if name == "" {
				continue
			}
			v := r.find(graphs, name)
			r.of[v] = append(r.of[v], n)
		}
		for sub := range n.Subgraphs() {
			r.add(append([]*onnx.Graph{sub}, graphs...))
		}
	}
	for _, o := range g.Outputs {
		r.outputs[r.find(graphs, o.Name)] = true
	}
}

// find returns the value that a name means in the first of some graphs.
func (r *readers) find(graphs []*onnx.Graph, name string) value {
	for _, g := range graphs {
		if v := (value{g, name}); r.made[v] {
			return v
		}
	}
	return value{nil, name}
}

// at returns the value that a name means in a scope.
func (r *readers) at(s *site.Scope, name string) value {
	return r.find(append([]*onnx.Graph{s.Graph}, s.Outer...), name)
}

// addLayer adds the nodes of an attention before its softmax.
func (r *readers) addLayer(g *graph.Graph, c site.Candidate) {
	r.layers[c.Node] = true
	from := c.Node.Inputs
	if c.Core != nil {
		from = c.Core.Softmax.Inputs
	}
	g.Upstream(from, func(v string, n *onnx.Node) []string {
		if n == nil || !g.IsData(v) || g.WeightProduct(n) {
			return nil
		}
		r.layers[g.AsWritten(n)] = true
		return ir.Reads(n)
	})
}

// reach is what the reader of a value does with it.
type reach int

const (
	outside reach = iota // it must not
	ends                 // what it makes may depend on the value
	passes               // the readers of what it makes are looked at, too
)

// walk follows values to all who read them.
type walk struct {
	*readers
	output func(value) bool // it may be an output of the graph
	given  map[value]bool   // by other nodes: they are not followed further
	reader func(value, *onnx.Node) reach
}

// from returns in words the first reader that must not be one, "" where there is none. Sizes may be read.
func (w walk) from(values []value) string {
	slices.SortFunc(values, func(a, b value) int { return cmp.Compare(a.name, b.name) })
	seen := map[value]bool{}
	for len(values) > 0 {
		v := values[len(values)-1]
		values = values[:len(values)-1]
		if seen[v] {
			continue
		}
		seen[v] = true
		if w.outputs[v] && !w.output(v) {
			return fmt.Sprintf("%q is an output of the graph", short.Name(v.name))
		}
		for _, n := range w.of[v] {
			if w.forSizes(n) {
				continue
			}
			switch w.reader(v, n) {
			case outside:
				return fmt.Sprintf("%q is read by %s (%s)", short.Name(v.name), ir.Label(n), short.Name(n.OpType))
			case passes:
				for _, o := range n.Outputs {
					if made := (value{w.holder[n], o}); o != "" && !w.given[made] {
						values = append(values, made)
					}
				}
			}
		}
	}
	return ""
}

// forSizes reports whether a node gives sizes, or what nothing but sizes is made of.
func (r *readers) forSizes(n *onnx.Node) bool {
	if is, known := r.sizes[n]; known {
		return is
	}
	r.sizes[n] = false                                                                    // of a node that reads what it makes: no runtime loads such a model
	is := ir.Standard(n, "Shape", "Size") || r.views[n] == nil && r.whole[r.holder[n]] || // nothing reads what it makes
		!slices.ContainsFunc(n.Outputs, func(o string) bool {
			v := value{r.holder[n], o}
			return r.outputs[v] || slices.ContainsFunc(r.of[v], func(n *onnx.Node) bool { return !r.forSizes(n) })
		})
	r.sizes[n] = is
	return is
}

func never(value) bool { return false }

// intoLayers is a walk from values that no hidden states are in, such as cosines or a mask. Only what attention
// computes before its softmax may depend on them: another layer is changed like this one, or has its own.
func (r *readers) intoLayers(values []value) string {
	return walk{r, never, nil, func(_ value, n *onnx.Node) reach {
		switch view := r.views[n]; {
		case view != nil && !slices.ContainsFunc(n.Outputs, view.Source.IsData):
			return passes
		case r.layers[n]:
			return ends
		}
		return outside
	}}.from(values)
}
