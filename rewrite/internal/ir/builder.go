package ir

import (
	"encoding/binary"
	"fmt"

	"github.com/rope-rewrite/rope-rewrite/onnx"
)

// Builder collects new nodes and constants. The values that they make are named
// Stem/part, so that two builders with different stems never clash.
type Builder struct {
	Stem      string
	Nodes     []*onnx.Node
	Constants []*onnx.Tensor
}

// Value returns the name of the builder's value for a part.
func (b *Builder) Value(part string) string { return fmt.Sprintf("%s/%s", b.Stem, part) }

// Add writes a node with one output, whose name it returns.
func (b *Builder) Add(op string, inputs []string, output string, attrs ...*onnx.Attribute) string {
	n := onnx.NewNode(op, inputs, []string{output}, attrs...)
	n.Name = output
	b.Nodes = append(b.Nodes, n)
	return output
}

// Constant makes a list of int64 and returns its name.
func (b *Builder) Constant(part string, values ...int64) string {
	name := b.Value(part)
	b.Constants = append(b.Constants, Int64Tensor(name, []int64{int64(len(values))}, values...))
	return name
}

// Scalar makes an int64 without dimensions and returns its name.
func (b *Builder) Scalar(part string, x int64) string {
	b.Constants = append(b.Constants, Int64Tensor(b.Value(part), []int64{}, x))
	return b.Value(part)
}

// Int32 makes a list of one int32 and returns its name.
func (b *Builder) Int32(part string, value int32) string {
	name := b.Value(part)
	b.Constants = append(b.Constants, onnx.NewTensor(name, onnx.Int32, []int64{1}, binary.LittleEndian.AppendUint32(nil, uint32(value))))
	return name
}

// Floats makes a list of an element type and returns its name. For 16-bit types it
// is a float32 constant and a Cast.
func (b *Builder) Floats(part string, t onnx.DataType, values []float64) string {
	name := b.Value(part)
	list := make([]float32, len(values))
	for i, x := range values {
		list[i] = float32(x)
	}
	dims := []int64{int64(len(list))}
	if !Short(t) {
		b.Constants = append(b.Constants, Float32Tensor(name, dims, list...))
		return name
	}
	b.Constants = append(b.Constants, Float32Tensor(name+"_float", dims, list...))
	b.Nodes = append(b.Nodes, Cast(name+"_float", name, t))
	return name
}

// Int64s returns an integer input as int64, behind a Cast where it has another type.
func (b *Builder) Int64s(v *onnx.ValueInfo) string {
	if v.Type == onnx.Int64 {
		return v.Name
	}
	return b.Add("Cast", []string{v.Name}, b.Value(v.Name+"_int64"), onnx.IntAttr("to", int64(onnx.Int64)))
}

// Size writes the nodes that give one dimension of a value as a scalar.
func (b *Builder) Size(value string, axis int, part string) string {
	return b.Dim(b.Add("Shape", []string{value}, b.Value(part+"_dims")), axis, part)
}

// Dim writes the nodes that give one element of a list of dimensions as a scalar.
func (b *Builder) Dim(dims string, axis int, part string) string {
	one := b.Add("Slice", []string{dims, b.Constant(part+"_from", int64(axis)), b.Constant(part+"_to", int64(axis)+1)}, b.Value(part+"_dim"))
	return b.Add("Squeeze", []string{one}, b.Value(part))
}

// Into puts the nodes and constants into a graph, in front of a node. With nil they
// go to its end; Order then moves them in front of their readers.
func (b *Builder) Into(g *onnx.Graph, before *onnx.Node) {
	for _, c := range b.Constants {
		g.AddInitializer(c)
	}
	for _, n := range b.Nodes {
		g.InsertNode(before, n)
	}
}
