package modeldiff

import (
	"crypto/sha256"
	"fmt"
	"slices"

	"github.com/rope-rewrite/rope-rewrite/customop"
	"github.com/rope-rewrite/rope-rewrite/internal/short"
	"github.com/rope-rewrite/rope-rewrite/onnx"
)

// Outside returns the first place outside the rewritten attention layers in which two rewrites of
// one original do not compute the same, nil where there is none. a and b may be of different versions
// of rope-rewrite: what these wrote, ops and the nodes that prepare their inputs, may differ. What they
// left of the original must be the same, weight by weight. It is known by the names of its values, which
// no version changes.
func Outside(original, a, b *onnx.Model, say func(read int64) error) (*First, error) {
	o := &outside{
		comparison: comparison{models: [2]*onnx.Model{a, b}, digest: digester{say: say, digests: map[*onnx.Tensor][sha256.Size]byte{}}},
		original:   map[string]bool{},
	}
	for g := range original.Graph.AllGraphs() {
		for _, list := range [][]*onnx.ValueInfo{g.Inputs, g.Outputs} {
			for _, v := range list {
				o.original[v.Name] = true
			}
		}
		for _, t := range g.Initializers {
			o.original[t.Name] = true
		}
		for _, n := range g.Nodes {
			for _, v := range n.Outputs {
				o.original[v] = true
			}
		}
	}
	delete(o.original, "")
	first := o.opsets(func(domain string) bool { return domain != customop.Domain })
	if first == nil {
		first = o.graph(a.Graph, b.Graph, [2]map[string]*onnx.Tensor{{}, {}})
	}
	return first, o.err
}

// outside compares what two rewrites left of their original.
type outside struct {
	comparison
	original map[string]bool // names of values
}

// graph compares graphs; weights are those of the graphs around them.
func (o *outside) graph(a, b *onnx.Graph, around [2]map[string]*onnx.Tensor) *First {
	s := scope{weights: around}.inner(a, b)
	for _, list := range [][2][]string{{valueNames(a.Inputs), valueNames(b.Inputs)}, {valueNames(a.Outputs), valueNames(b.Outputs)}} {
		if !slices.Equal(list[0], list[1]) {
			return &First{What: "its inputs or outputs differ"}
		}
	}
	made, kept := makers(a), makers(b)
	for _, y := range b.Nodes {
		x := made[name(y)]
		if x == nil {
			continue // of the version that wrote b
		}
		if first := o.pair(x, y, s); first != nil || o.err != nil {
			return first
		}
	}
	outside := needed(a)
	for _, x := range a.Nodes {
		if o.original[name(x)] && kept[name(x)] == nil && outside[x] {
			return &First{Ops: true, What: fmt.Sprintf("%s is missing", node(x))}
		}
	}
	return nil
}

// name is that of a node's first output.
func name(n *onnx.Node) string {
	for _, v := range n.Outputs {
		if v != "" {
			return v
		}
	}
	return ""
}

// makers are the nodes of a graph by the names of their first outputs.
func makers(g *onnx.Graph) map[string]*onnx.Node {
	by := map[string]*onnx.Node{}
	for _, n := range g.Nodes {
		by[name(n)] = n
	}
	return by
}

// isOp reports whether a node is the attention that a rewrite puts into a model.
func isOp(n *onnx.Node) bool {
	return n.Domain == customop.Domain && opName(n) == customop.RotaryAttentionSpec.Name
}

// opName is the name of an op of the project's domain, of its several ones the first.
func opName(n *onnx.Node) string {
	if spec, known := customop.SpecOf(n.OpType); known {
		return spec.Name
	}
	return n.OpType
}

// queryKeyValue is how many inputs of the op carry hidden states. The others, positions and masks, are
// prepared as each version does.
const queryKeyValue = 3

// needed are the nodes of a graph that its outputs depend on otherwise than through the positions and
// masks of its ops.
func needed(g *onnx.Graph) map[*onnx.Node]bool {
	wanted, list := map[string]bool{}, map[*onnx.Node]bool{}
	for _, v := range g.Outputs {
		wanted[v.Name] = true
	}
	for _, n := range slices.Backward(g.Nodes) {
		if !slices.ContainsFunc(n.Outputs, func(v string) bool { return wanted[v] }) {
			continue
		}
		list[n] = true
		inputs := n.Inputs
		if isOp(n) {
			inputs = inputs[:min(queryKeyValue, len(inputs))]
		}
		for _, v := range inputs {
			wanted[v] = true
		}
		for sub := range n.Subgraphs() {
			for v := range sub.AllNodes() {
				for _, in := range v.Inputs {
					wanted[in] = true
				}
			}
		}
	}
	return list
}

// pair compares two nodes that make values of one name.
func (o *outside) pair(x, y *onnx.Node, s scope) *First {
	if isOp(x) != isOp(y) || !isOp(x) && op(x) != op(y) {
		return &First{What: fmt.Sprintf("%s is in the place of %s", node(y), node(x))}
	}
	for i := range max(len(x.Outputs), len(y.Outputs)) {
		if was, is := at(x.Outputs, i), at(y.Outputs, i); was != is && (o.original[was] || o.original[is]) {
			return &First{What: fmt.Sprintf("%s makes %q as its output %d, not %q", node(y), short.Name(is), i, short.Name(was))}
		}
	}
	inputs := max(len(x.Inputs), len(y.Inputs))
	if isOp(x) {
		inputs = min(inputs, queryKeyValue)
	}
	for i := range inputs {
		if first := o.input(y, i, at(x.Inputs, i), at(y.Inputs, i), s); first != nil {
			return first
		}
	}
	if isOp(x) {
		return nil // what it computes is compared with its record
	}
	return o.attributesOf(x, y, s)
}

func at(list []string, i int) string {
	if i < len(list) {
		return list[i]
	}
	return ""
}

// input compares an input of a node: the same value of the original, the same weight, or in both what
// a rewrite made.
func (o *outside) input(n *onnx.Node, i int, was, is string, s scope) *First {
	x, y := s.weights[0][was], s.weights[1][is]
	switch {
	case x != nil && y != nil:
		if !o.contents(x, y) {
			return &First{What: fmt.Sprintf("%s reads the weight %q, which has different numbers", node(n), short.Name(y.Name))}
		}
	case was != is && (o.original[was] || o.original[is]):
		return &First{What: fmt.Sprintf("%s reads %q as its input %d, which is a different value", node(n), short.Name(is), i)}
	}
	return nil
}

// attributesOf compares attributes; graphs in them as graphs of rewrites.
func (o *outside) attributesOf(x, y *onnx.Node, s scope) *First {
	for _, a := range x.Attributes {
		b := y.Attribute(a.Name)
		if a.Type == onnx.AttrGraph && b != nil && b.Type == onnx.AttrGraph {
			if first := o.graph(a.Graph, b.Graph, s.weights); first != nil {
				return first
			}
			continue
		}
		if b == nil || !o.attribute(a, b, s) {
			return &First{What: fmt.Sprintf("%s differs in %s%s", node(y), short.Name(a.Name), numbers(a, b))}
		}
	}
	for _, b := range y.Attributes {
		if x.Attribute(b.Name) == nil {
			return &First{What: fmt.Sprintf("%s differs in %s", node(y), short.Name(b.Name))}
		}
	}
	return nil
}
