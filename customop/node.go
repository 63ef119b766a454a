package customop

import (
	"fmt"

	"github.com/rope-rewrite/rope-rewrite/internal/short"
)

// Node is an ONNX node by its parts, independent of any file format.
type Node struct {
	Name, OpType, Domain string
	Inputs, Outputs      []string // in the specification's order; "" is an absent one in the middle
	Attributes           []NodeAttribute
}

// Kind says which field of a NodeAttribute holds the value.
type Kind uint8

// The kinds of attribute values, named after ONNX's.
const (
	Int Kind = iota + 1
	Float
	Text
	Ints
	Floats
)

// NodeAttribute is one attribute of a node; the field of its Kind is set.
type NodeAttribute struct {
	Name   string
	Kind   Kind
	Int    int64
	Float  float32
	Text   string
	Ints   []int64
	Floats []float32
}

// Attribute returns the attribute with a name, and whether the node has it.
func (n Node) Attribute(name string) (NodeAttribute, bool) {
	for _, a := range n.Attributes {
		if a.Name == name {
			return a, true
		}
	}
	return NodeAttribute{}, false
}

// builder collects what a generated Node method hands over, keeps the first
// error, and notes the newest version that anything used asks for.
type builder struct {
	name, opType    string
	inputs, outputs []string
	attributes      []NodeAttribute
	version         int
	err             error
}

func (b *builder) fail(err error) {
	if b.err == nil && err != nil {
		b.err = fmt.Errorf("node %q (%s): %w", short.Name(b.name), b.opType, err)
	}
}

func (b *builder) use(since int) { b.version = max(b.version, since) }

func (b *builder) input(slot, tensor string, optional bool, since int) {
	b.inputs = append(b.inputs, b.slot("input", slot, tensor, optional, since))
}

func (b *builder) output(slot, tensor string, optional bool, since int) {
	b.outputs = append(b.outputs, b.slot("output", slot, tensor, optional, since))
}

func (b *builder) slot(kind, slot, tensor string, optional bool, since int) string {
	if tensor == "" && !optional {
		b.fail(fmt.Errorf("the %s %s has no name", kind, slot))
	}
	if tensor != "" {
		b.use(since)
	}
	return tensor
}

func (b *builder) required(a NodeAttribute, since int) {
	b.use(since)
	b.attributes = append(b.attributes, a)
}

func (b *builder) optional(a NodeAttribute, isDefault bool, since int) {
	if !isDefault {
		b.required(a, since)
	}
}

func (b *builder) node() (Node, error) {
	if b.err != nil {
		return Node{}, b.err
	}
	version := NodeAttribute{Name: "spec_version", Kind: Int, Int: int64(b.version)}
	return Node{
		Name: b.name, OpType: b.opType, Domain: Domain,
		Inputs: trimmed(b.inputs), Outputs: trimmed(b.outputs),
		Attributes: append([]NodeAttribute{version}, b.attributes...),
	}, nil
}

// trimmed drops the absent names at the end, as ONNX writes them.
func trimmed(names []string) []string {
	for len(names) > 0 && names[len(names)-1] == "" {
		names = names[:len(names)-1]
	}
	return names
}
