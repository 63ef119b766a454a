package ir

import (
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"slices"

	"github.com/rope-rewrite/rope-rewrite/onnx"
)

// Builder collects new nodes and constants, and names what they make. Names begin
// with Stem, so that two builders with different stems never clash.
//
// A value has the name that the caller gives it (AddTo), that of the stem and a part
// (AddAs, Constant), or one that the builder makes (Add, Ints): Stem/1, Stem/2 and so
// on, unless ByContent is set.
type Builder struct {
	Stem      string
	Nodes     []*onnx.Node
	Constants []*onnx.Tensor

	// ByContent names values after what computes them: their names hold a hash of
	// it. A node or constant that is there already is not written again.
	ByContent bool

	// Title names a node that is about to be added. nil names it after its first
	// output.
	Title func(b *Builder, n *onnx.Node) string

	numbered int
}

// Untitled leaves nodes without a name.
func Untitled(*Builder, *onnx.Node) string { return "" }

// Value returns the name of the builder's value for a part.
func (b *Builder) Value(part string) string { return fmt.Sprintf("%s/%s", b.Stem, part) }

// Body returns all that was written as nodes alone, the constants first: a function of a
// model has no other place for them.
func (b *Builder) Body() (list []*onnx.Node) {
	for _, t := range b.Constants {
		value := t.Clone()
		value.Name = ""
		n := onnx.NewNode("Constant", nil, []string{t.Name}, onnx.TensorAttr("value", value))
		n.Name = t.Name
		list = append(list, n)
	}
	return append(list, b.Nodes...)
}

// number returns the next name that the builder makes by itself.
func (b *Builder) number() string {
	b.numbered++
	return b.Value(fmt.Sprint(b.numbered))
}

// Add writes a standard node with one output, and returns the output's name, which
// the builder makes.
func (b *Builder) Add(op string, inputs []string, attrs ...*onnx.Attribute) string {
	return b.AddSeveral(1, op, inputs, attrs...)[0]
}

// AddSeveral is Add for a node with several outputs.
func (b *Builder) AddSeveral(count int, op string, inputs []string, attrs ...*onnx.Attribute) []string {
	return b.AddNode(onnx.NewNode(op, inputs, make([]string, count), attrs...))
}

// AddTo writes a standard node that makes the value output, and returns that name.
func (b *Builder) AddTo(output, op string, inputs []string, attrs ...*onnx.Attribute) string {
	b.write(onnx.NewNode(op, inputs, []string{output}, attrs...))
	return output
}

// AddAs is AddTo for the builder's value of a part.
func (b *Builder) AddAs(part, op string, inputs []string, attrs ...*onnx.Attribute) string {
	return b.AddTo(b.Value(part), op, inputs, attrs...)
}

// AddNode writes a node under new names for itself and its outputs, and returns
// those of its outputs.
func (b *Builder) AddNode(n *onnx.Node) []string {
	hash := ""
	if b.ByContent {
		w := sha256.New()
		fmt.Fprintf(w, "%q %q %q", n.Domain, n.OpType, n.Inputs)
		HashAttributes(w, n)
		hash = fmt.Sprintf("%s_%x", n.OpType, w.Sum(nil)[:8])
	}
	for i := range n.Outputs {
		if b.ByContent {
			n.Outputs[i] = b.Value(fmt.Sprintf("%s_%d", hash, i))
		} else {
			n.Outputs[i] = b.number()
		}
	}
	b.write(n)
	return n.Outputs
}

// AddCopy writes a node that does what n does with other inputs and makes the value
// output. n itself is unchanged.
func (b *Builder) AddCopy(output string, n *onnx.Node, inputs []string) {
	c := n.Clone()
	c.Inputs, c.Outputs = inputs, []string{output}
	b.write(c)
}

func (b *Builder) write(n *onnx.Node) {
	if b.ByContent && slices.ContainsFunc(b.Nodes, func(c *onnx.Node) bool { return c.Outputs[0] == n.Outputs[0] }) {
		return
	}
	if b.Title != nil {
		n.Name = b.Title(b, n)
	} else {
		n.Name = n.Outputs[0]
	}
	b.Nodes = append(b.Nodes, n)
}

// AddConstant writes a constant under a name that the builder makes, and returns the
// name.
func (b *Builder) AddConstant(t *onnx.Tensor) string {
	if b.ByContent {
		w := sha256.New()
		HashTensor(w, t)
		return b.AddNamedConstant(fmt.Sprintf("%x", w.Sum(nil)[:8]), t)
	}
	t.Name = b.number()
	b.Constants = append(b.Constants, t)
	return t.Name
}

// AddNamedConstant writes a constant under the name of a part, and returns the name.
func (b *Builder) AddNamedConstant(part string, t *onnx.Tensor) string {
	t.Name = b.Value(part)
	if !b.ByContent || !slices.ContainsFunc(b.Constants, func(c *onnx.Tensor) bool { return c.Name == t.Name }) {
		b.Constants = append(b.Constants, t)
	}
	return t.Name
}

// Ints makes a list of int64 and returns its name, which the builder makes.
func (b *Builder) Ints(values ...int64) string {
	return b.AddConstant(Int64Tensor("", []int64{int64(len(values))}, values...))
}

// Int makes an int64 without dimensions and returns its name, which the builder makes.
func (b *Builder) Int(value int64) string { return b.AddConstant(Int64Tensor("", []int64{}, value)) }

// Float makes a number without dimensions of a floating-point type, and returns its
// name, which the builder makes. Undefined means float32; other types are made
// by a Cast of it.
func (b *Builder) Float(value float64, t onnx.DataType) string {
	c := b.AddConstant(Float32Tensor("", []int64{}, float32(value)))
	if t == onnx.Float || t == onnx.Undefined {
		return c
	}
	return b.Add("Cast", []string{c}, onnx.IntAttr("to", int64(t)))
}

// Constant makes a list of int64 under the name of a part, and returns the name.
func (b *Builder) Constant(part string, values ...int64) string {
	return b.AddNamedConstant(part, Int64Tensor("", []int64{int64(len(values))}, values...))
}

// Scalar makes an int64 without dimensions under the name of a part, and returns the
// name.
func (b *Builder) Scalar(part string, x int64) string {
	return b.AddNamedConstant(part, Int64Tensor("", []int64{}, x))
}

// Int32 makes a list of one int32 under the name of a part, and returns the name.
func (b *Builder) Int32(part string, value int32) string {
	return b.AddNamedConstant(part, onnx.NewTensor("", onnx.Int32, []int64{1}, binary.LittleEndian.AppendUint32(nil, uint32(value))))
}

// Floats makes a list of an element type under the name of a part, and returns the
// name. For 16-bit types it is a float32 constant and a Cast.
func (b *Builder) Floats(part string, t onnx.DataType, values []float64) string {
	list := make([]float32, len(values))
	for i, x := range values {
		list[i] = float32(x)
	}
	c := Float32Tensor("", []int64{int64(len(list))}, list...)
	if !Is16Bit(t) {
		return b.AddNamedConstant(part, c)
	}
	name := b.Value(part)
	b.Nodes = append(b.Nodes, Cast(b.AddNamedConstant(part+"_float", c), name, t))
	return name
}

// Int64s returns an integer input as int64, behind a Cast where it has another type.
func (b *Builder) Int64s(v *onnx.ValueInfo) string {
	if v.Type == onnx.Int64 {
		return v.Name
	}
	return b.AddAs(v.Name+"_int64", "Cast", []string{v.Name}, onnx.IntAttr("to", int64(onnx.Int64)))
}

// Size writes the nodes that give dimension axis of a value, without dimensions of
// its own. The builder makes their names.
func (b *Builder) Size(value string, axis int64) string {
	return b.Add("Gather", []string{b.Add("Shape", []string{value}), b.Int(axis)})
}

// Sizes writes the nodes that give dimensions [from, to) of a value as a list. The
// builder makes their names.
func (b *Builder) Sizes(value string, from, to int64) string {
	return b.Add("Slice", []string{b.Add("Shape", []string{value}), b.Ints(from), b.Ints(to)})
}

// NamedSize writes the nodes that give one dimension of a value, without dimensions
// of its own, under the names of a part.
func (b *Builder) NamedSize(part, value string, axis int) string {
	return b.NamedElement(part, b.AddAs(part+"_dims", "Shape", []string{value}), axis)
}

// NamedElement writes the nodes that give one element of a list, without dimensions
// of its own, under the names of a part.
func (b *Builder) NamedElement(part, list string, at int) string {
	from, to := b.Constant(part+"_from", int64(at)), b.Constant(part+"_to", int64(at)+1)
	one := b.AddAs(part+"_dim", "Slice", []string{list, from, to})
	return b.AddAs(part, "Squeeze", []string{one})
}

// Guarded is a number that can be had only where all elements of a value are 1. Elsewhere
// the run ends: the node that takes element 1 of a list of one has the reason as its name.
// On devices that do not check indices the number is beyond every table, which the kernel
// refuses.
func (b *Builder) Guarded(number, reason, value string) string {
	least := b.Add("ReduceMin", []string{value}, onnx.IntAttr("keepdims", 0))
	wrong := b.Add("Sub", []string{b.Int(1), least})
	title := b.Title
	b.Title = func(*Builder, *onnx.Node) string { return "rope_rewrite: " + reason }
	nothing := b.Add("Gather", []string{b.Ints(0), wrong})
	b.Title = title
	far := b.Add("Mul", []string{wrong, b.Int(1 << 30)})
	return b.Add("Add", []string{b.Add("Add", []string{number, nothing}), far})
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
