package fused

import (
	"encoding/binary"
	"fmt"
	"math"
	"slices"

	"github.com/rope-rewrite/rope-rewrite/onnx"
)

// Builder collects the nodes of an expansion.
type Builder struct {
	of    *onnx.Node
	stem  string
	count int
	out   Expansion
}

// NewBuilder starts the expansion of a node. The names that it makes begin with
// that of the node's first output.
func NewBuilder(n *onnx.Node) *Builder {
	stem := "absent"
	if i := slices.IndexFunc(n.Outputs, func(o string) bool { return o != "" }); i >= 0 {
		stem = n.Outputs[i]
	}
	return &Builder{of: n, stem: stem + "/rope-rewrite/" + n.OpType}
}

// Expansion returns what was collected.
func (b *Builder) Expansion() *Expansion { return &b.out }

func (b *Builder) fresh() string {
	b.count++
	return fmt.Sprintf("%s/%d", b.stem, b.count)
}

// Add appends a standard node with one output and returns the output's name.
func (b *Builder) Add(op string, inputs []string, attrs ...*onnx.Attribute) string {
	return b.AddTo(b.fresh(), op, inputs, attrs...)
}

// AddTo appends a standard node that makes the given value, and returns it.
func (b *Builder) AddTo(output, op string, inputs []string, attrs ...*onnx.Attribute) string {
	b.append(op, inputs, []string{output}, attrs)
	return output
}

// AddSeveral appends a standard node with several outputs.
func (b *Builder) AddSeveral(count int, op string, inputs []string, attrs ...*onnx.Attribute) []string {
	outputs := make([]string, count)
	for i := range outputs {
		outputs[i] = b.fresh()
	}
	b.append(op, inputs, outputs, attrs)
	return outputs
}

func (b *Builder) append(op string, inputs, outputs []string, attrs []*onnx.Attribute) {
	n := onnx.NewNode(op, inputs, outputs, attrs...)
	name := b.of.Name
	if name == "" {
		name = fmt.Sprintf("%s making %q", b.of.OpType, b.stem)
	}
	// What people are told of the node names the one that they know.
	n.Name = fmt.Sprintf("%s (its %s %d)", name, op, len(b.out.Nodes)+1)
	b.out.Nodes = append(b.out.Nodes, n)
}

// Ints returns a constant list.
func (b *Builder) Ints(values ...int64) string {
	return b.ints([]int64{int64(len(values))}, values)
}

// Int returns a constant without dimensions.
func (b *Builder) Int(value int64) string { return b.ints([]int64{}, []int64{value}) }

func (b *Builder) ints(dims, values []int64) string {
	raw := []byte{}
	for _, v := range values {
		raw = binary.LittleEndian.AppendUint64(raw, uint64(v))
	}
	return b.constant(onnx.Int64, dims, raw)
}

// Float returns a constant without dimensions of a floating-point type;
// Undefined stands for float32.
func (b *Builder) Float(value float64, t onnx.DataType) string {
	c := b.constant(onnx.Float, []int64{}, binary.LittleEndian.AppendUint32(nil, math.Float32bits(float32(value))))
	if t == onnx.Float || t == onnx.Undefined {
		return c
	}
	return b.Add("Cast", []string{c}, onnx.IntAttr("to", int64(t)))
}

func (b *Builder) constant(t onnx.DataType, dims []int64, raw []byte) string {
	name := b.fresh()
	b.out.Constants = append(b.out.Constants, onnx.NewTensor(name, t, dims, raw))
	return name
}

// Size returns dimension axis of a value, without dimensions of its own.
func (b *Builder) Size(value string, axis int64) string {
	return b.Add("Gather", []string{b.Add("Shape", []string{value}), b.Int(axis)})
}

// Sizes returns dimensions [from, to) of a value as a list.
func (b *Builder) Sizes(value string, from, to int64) string {
	return b.Add("Slice", []string{b.Add("Shape", []string{value}), b.Ints(from), b.Ints(to)})
}
