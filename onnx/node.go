package onnx

import (
	"fmt"
	"iter"
	"slices"

	"github.com/rope-rewrite/rope-rewrite/internal/short"
	"github.com/rope-rewrite/rope-rewrite/onnx/onnxpb"
)

// Node is one operation of a graph or function.
//
// Its fields may be read and changed freely: on saving, what differs from the
// file that the node came from is written anew and everything else, unknown
// fields included, is copied from there.
type Node struct {
	Name     string
	OpType   string
	Domain   string   // "" is the standard ONNX domain
	Overload string   // of the function called, where it has several
	Inputs   []string // names of values; "" is an absent optional input
	Outputs  []string // names of values; "" is an absent optional output

	Attributes []*Attribute

	src source
}

// NewNode returns a node of the standard domain; set Domain for another one.
func NewNode(opType string, inputs, outputs []string, attrs ...*Attribute) *Node {
	return &Node{OpType: opType, Inputs: inputs, Outputs: outputs, Attributes: attrs}
}

// Attribute returns the attribute of that name, or nil.
func (n *Node) Attribute(name string) *Attribute {
	for _, a := range n.Attributes {
		if a.Name == name {
			return a
		}
	}
	return nil
}

// SetAttribute adds a to the node, in the place of the attribute that has its
// name if there is one.
func (n *Node) SetAttribute(a *Attribute) {
	for i, old := range n.Attributes {
		if old.Name == a.Name {
			n.Attributes[i] = a
			return
		}
	}
	n.Attributes = append(n.Attributes, a)
}

// valueOf returns the attribute of that name if it holds a value of type t
// itself: in the body of a function it may refer to an attribute of the
// function instead.
func (n *Node) valueOf(name string, t AttributeType) *Attribute {
	if a := n.Attribute(name); a != nil && a.Type == t && a.RefName == "" {
		return a
	}
	return nil
}

// Int returns the integer attribute of that name, or def if the node has none.
func (n *Node) Int(name string, def int64) int64 {
	if a := n.valueOf(name, AttrInt); a != nil {
		return a.Int
	}
	return def
}

// Float returns the float attribute of that name, or def if the node has none.
func (n *Node) Float(name string, def float32) float32 {
	if a := n.valueOf(name, AttrFloat); a != nil {
		return a.Float
	}
	return def
}

// Text returns the string attribute of that name, or def if the node has none.
func (n *Node) Text(name, def string) string {
	if a := n.valueOf(name, AttrString); a != nil {
		return string(a.Bytes)
	}
	return def
}

// Ints returns the integer list of that name, or nil if the node has none.
func (n *Node) Ints(name string) []int64 {
	if a := n.valueOf(name, AttrInts); a != nil {
		return a.Ints
	}
	return nil
}

// Floats returns the float list of that name, or nil if the node has none.
func (n *Node) Floats(name string) []float32 {
	if a := n.valueOf(name, AttrFloats); a != nil {
		return a.Floats
	}
	return nil
}

// Tensor returns the tensor attribute of that name, or nil if the node has none.
func (n *Node) Tensor(name string) *Tensor {
	if a := n.valueOf(name, AttrTensor); a != nil {
		return a.Tensor
	}
	return nil
}

// Graph returns the sub-graph attribute of that name, or nil if the node has
// none.
func (n *Node) Graph(name string) *Graph {
	if a := n.valueOf(name, AttrGraph); a != nil {
		return a.Graph
	}
	return nil
}

// Subgraphs yields the graphs that the node's attributes hold, such as the
// branches of an If, but not the graphs inside them.
func (n *Node) Subgraphs() iter.Seq[*Graph] {
	return func(yield func(*Graph) bool) {
		for _, a := range n.Attributes {
			if a.Graph != nil && !yield(a.Graph) {
				return
			}
			for _, g := range a.Graphs {
				if !yield(g) {
					return
				}
			}
		}
	}
}

// Clone returns a copy that can be changed without changing n. Tensor contents
// are shared, not copied.
func (n *Node) Clone() *Node {
	c := *n
	c.Inputs = append([]string(nil), n.Inputs...)
	c.Outputs = append([]string(nil), n.Outputs...)
	c.Attributes = cloneAll(n.Attributes)
	return &c
}

func (n *Node) origin() source { return n.src }

func (n *Node) original() view {
	o := &Node{src: n.src}
	_ = o.read(&reader{shallow: true}) // read before, so it cannot fail
	return o
}

// asRead leaves nodes with graphs to their fields: these would be encoded once for each
// graph around them.
func (n *Node) asRead() bool {
	o := n.original().(*Node)
	return n.Name == o.Name && n.OpType == o.OpType && n.Domain == o.Domain && n.Overload == o.Overload &&
		slices.Equal(n.Inputs, o.Inputs) && slices.Equal(n.Outputs, o.Outputs) &&
		slices.EqualFunc(n.Attributes, o.Attributes, func(a, was *Attribute) bool {
			if a.Graph != nil || len(a.Graphs) > 0 || !slices.EqualFunc(a.src, was.src, sameSlice) {
				return false
			}
			_, changed := encode(a)
			return !changed
		})
}

func (n *Node) read(r *reader) error {
	var p onnxpb.NodeProto
	err := n.src.decode(&p, nodeSmall, func(rec record) error {
		if rec.num == nodeAttribute {
			n.Attributes = append(n.Attributes, &Attribute{src: source{rec.body}})
		}
		return nil
	})
	n.Name, n.OpType, n.Domain, n.Overload = p.GetName(), p.GetOpType(), p.GetDomain(), p.GetOverload()
	n.Inputs, n.Outputs = p.GetInput(), p.GetOutput()
	if err != nil {
		return err
	}
	return openAttributes(r, n.Attributes)
}

func openAttributes(r *reader, list []*Attribute) error {
	for _, a := range list {
		if err := r.open(a); isLocated(err) {
			return err
		} else if err != nil {
			return fmt.Errorf("attribute %q: %w", short.Name(a.Name), err)
		}
	}
	return nil
}

func (n *Node) fields() []field {
	small := smallFields(&onnxpb.NodeProto{
		Name: text(n.Name), OpType: text(n.OpType), Domain: text(n.Domain), Overload: text(n.Overload),
		Input: n.Inputs, Output: n.Outputs,
	})
	return append(small, childFields(nodeAttribute, n.Attributes...)...)
}
