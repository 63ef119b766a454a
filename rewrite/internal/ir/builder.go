package ir

import (
	"encoding/binary"
	"fmt"

	"github.com/rope-rewrite/rope-rewrite/onnx"
)

func (b *Builder) Int32(part string, value int32) string {
	name := b.Value(part)
	b.Constants = append(b.Constants, onnx.NewTensor(name, onnx.Int32, []int64{1}, binary.LittleEndian.AppendUint32(nil, uint32(value))))
	return name
}

// Builder makes the nodes around an op.
type Builder struct {
	Stem      string
	Nodes     []*onnx.Node
	Constants []*onnx.Tensor
}

func (b *Builder) Value(part string) string { return fmt.Sprintf("%s/%s", b.Stem, part) }

func (b *Builder) Constant(part string, values ...int64) string {
	name := b.Value(part)
	b.Constants = append(b.Constants, Int64Tensor(name, []int64{int64(len(values))}, values...))
	return name
}

// Scalar is a constant without dimensions.
func (b *Builder) Scalar(part string, x int64) string {
	b.Constants = append(b.Constants, Int64Tensor(b.Value(part), []int64{}, x))
	return b.Value(part)
}

// Size makes a dimension of a value, a scalar.
func (b *Builder) Size(value string, axis int, part string) string {
	return b.Dim(b.Add("Shape", []string{value}, b.Value(part+"_dims")), axis, part)
}

// Dim takes one of a value's dimensions, a scalar.
func (b *Builder) Dim(dims string, axis int, part string) string {
	one := b.Add("Slice", []string{dims, b.Constant(part+"_from", int64(axis)), b.Constant(part+"_to", int64(axis)+1)}, b.Value(part+"_dim"))
	return b.Add("Squeeze", []string{one}, b.Value(part))
}

// Into puts what was made into a graph, in front of a node; with nil at its end,
// from where order puts it in front of its readers.
func (b *Builder) Into(g *onnx.Graph, before *onnx.Node) {
	for _, c := range b.Constants {
		g.AddInitializer(c)
	}
	for _, n := range b.Nodes {
		g.InsertNode(before, n)
	}
}

// Floats makes a constant of an element type.
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

func (b *Builder) Add(op string, inputs []string, output string, attrs ...*onnx.Attribute) string {
	n := onnx.NewNode(op, inputs, []string{output}, attrs...)
	n.Name = output
	b.Nodes = append(b.Nodes, n)
	return output
}

// Int64s returns an integer input as the op wants it.
func (b *Builder) Int64s(v *onnx.ValueInfo) string {
	if v.Type == onnx.Int64 {
		return v.Name
	}
	return b.Add("Cast", []string{v.Name}, b.Value(v.Name+"_int64"), onnx.IntAttr("to", int64(onnx.Int64)))
}
