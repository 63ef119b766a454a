package mutant

import (
	"maps"
	"slices"

	"github.com/rope-rewrite/rope-rewrite/internal/float16"
	"github.com/rope-rewrite/rope-rewrite/internal/signature"
	"github.com/rope-rewrite/rope-rewrite/onnx"
)

// flow is what is known of a model's values by what they are made of.
type flow struct {
	scopes  map[*onnx.Graph]*scope
	control map[*onnx.Node]bool // see follow
}

// scope are the values that the nodes of a graph may read. The branches of an If may have values of the same name.
type scope struct {
	types  map[string]onnx.DataType
	hidden map[string]bool // made of token embeddings, caches or an encoder's states
	asked  map[string]bool // made of a graph's input that is no hidden state, or of a shape
	tokens map[string]bool // made of token ids, as long as they are whole numbers
}

func (s *scope) clone() *scope {
	return &scope{maps.Clone(s.types), maps.Clone(s.hidden), maps.Clone(s.asked), maps.Clone(s.tokens)}
}

// shapeInputs are inputs that say how large an output is and not what is in it, by op.
var shapeInputs = map[string][]int{
	"Reshape": {1}, "Expand": {1}, "Tile": {1}, "Split": {1}, "Squeeze": {1}, "Unsqueeze": {1}, "ConstantOfShape": {0},
	"ReduceMean": {1}, "ReduceMax": {1}, "ReduceSum": {1}, "Pad": {1},
}

// follow finds out what a model's values are made of. Its control nodes are those on the way from padding,
// positions, documents, lengths and shapes to a mask, to angles or to places in a cache: they read no hidden
// state, and what they make is read by a node that does, other than as the shape of something.
func follow(m *onnx.Model) *flow {
	roles := map[string]signature.Role{}
	if s, err := signature.Read(m, nowhere); err == nil {
		for _, in := range s.Inputs {
			roles[in.Name] = in.Role
		}
	}
	values := &scope{map[string]onnx.DataType{}, map[string]bool{}, map[string]bool{}, map[string]bool{}}
	for _, v := range m.Graph.Inputs {
		values.types[v.Name] = v.Type
		switch roles[v.Name] {
		case signature.Past, signature.Memory:
			values.hidden[v.Name] = true
		case signature.Tokens:
			values.tokens[v.Name] = true
		default:
			values.asked[v.Name] = true
		}
	}
	f := &flow{map[*onnx.Graph]*scope{}, map[*onnx.Node]bool{}}
	f.forward(m.Graph, values)
	f.backward(m.Graph, map[string]bool{})
	return f
}

// forward follows values from what they are made of.
func (f *flow) forward(g *onnx.Graph, values *scope) {
	f.scopes[g] = values
	for _, t := range g.Initializers {
		values.types[t.Name] = t.Type
	}
	for _, n := range g.Nodes {
		var hidden, ids, asked bool
		read := func(from *scope, v string) {
			hidden, ids, asked = hidden || from.hidden[v], ids || from.tokens[v], asked || from.asked[v]
		}
		for _, v := range n.Inputs {
			read(values, v)
		}
		for sub := range n.Subgraphs() {
			f.forward(sub, values.clone())
			for _, o := range sub.Outputs {
				read(f.scopes[sub], o.Name)
			}
		}
		if n.OpType == "Shape" || n.OpType == "Size" {
			hidden, ids, asked = false, false, true
		}
		for i, o := range n.Outputs {
			t := float16.OutputType(n, i, values.types)
			values.types[o] = t
			values.asked[o] = asked || ids
			values.hidden[o] = hidden || ids && isFloat(t)
			values.tokens[o] = ids && !values.hidden[o]
		}
	}
}

// backward follows values from who reads them, and notes control nodes. wanted are values that a hidden
// state is made of, other than as the shape of something.
func (f *flow) backward(g *onnx.Graph, wanted map[string]bool) {
	values := f.scopes[g]
	for _, n := range slices.Backward(g.Nodes) {
		is := func(set map[string]bool) bool {
			return slices.ContainsFunc(n.Outputs, func(v string) bool { return set[v] })
		}
		hidden, read := is(values.hidden), is(wanted)
		for sub := range n.Subgraphs() {
			inside := map[string]bool{}
			for _, o := range sub.Outputs {
				inside[o.Name] = read && !f.scopes[sub].hidden[o.Name]
			}
			f.backward(sub, inside)
			for v := range inside {
				if _, outside := values.types[v]; outside && inside[v] {
					wanted[v] = true
				}
			}
		}
		f.control[n] = !hidden && read && is(values.asked)
		if !hidden && !read {
			continue
		}
		for i, v := range n.Inputs {
			if !values.hidden[v] && !slices.Contains(shapeInputs[n.OpType], i) {
				wanted[v] = true
			}
		}
	}
}

func isFloat(t onnx.DataType) bool { return t == onnx.Float || t == onnx.Float16 || t == onnx.Double }

func isInteger(t onnx.DataType) bool { return t == onnx.Int32 || t == onnx.Int64 }
