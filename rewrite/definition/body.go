package definition

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/rope-rewrite/rope-rewrite/customop"
	"github.com/rope-rewrite/rope-rewrite/onnx"
	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/ir"
)

// body is a function's body that is being written. Its methods write nodes and return the names of
// the values that these make.
type body struct {
	*group
	opset int64
	b     ir.Builder
	made  map[string]int    // how often a name was given
	refs  map[string]string // attribute → the value that holds it
	same  map[string]string // what a node computes → the value that holds it

	names names
	sizes sizes
	shift string // position − index of a row's real tokens [batch or 1, 1], int64; see positionShift
	freqs string // frequencies of this call, float32
}

// names are the function's inputs as the specification calls them, "" for absent ones.
type names struct {
	query, key, value, pastKey, pastValue, positions, mask, bias, cacheLength, documents, sinks, early, total string
	keyScale, valueScale                                                                                      string
}

// oldestOpset is the first that has all operators with the inputs that bodies use.
const oldestOpset = 13

// castLike is the first operator set with CastLike, which a body for all element types needs.
const castLike = 15

// newBody returns an empty body for a group.
func newBody(g *group, opset int64) *body {
	w := &body{group: g, opset: opset, made: map[string]int{}, refs: map[string]string{}, same: map[string]string{}}
	if g.rotary.format != "" {
		return w // whose inputs rotary names
	}
	for i, to := range []*string{&w.names.query, &w.names.key, &w.names.value, &w.names.pastKey, &w.names.pastValue, &w.names.positions, &w.names.mask,
		&w.names.bias, &w.names.cacheLength, &w.names.documents, &w.names.sinks, &w.names.early, &w.names.total, &w.names.keyScale, &w.names.valueScale} {
		name := customop.RotaryAttentionSpec.Inputs[i].Name
		w.made[name] = 1
		if g.given(i) {
			*to = name
		}
	}
	for _, o := range customop.RotaryAttentionSpec.Outputs {
		w.made[o.Name] = 1
	}
	return w
}

// op writes a node and returns the name of its output, which begins with part. What a node
// computes already is not written again.
func (w *body) op(part, kind string, inputs []string, attrs ...*onnx.Attribute) string {
	key := kind + " " + strings.Join(inputs, " ")
	for _, a := range attrs {
		key += " " + attributeText(a)
	}
	if w.same[key] == "" {
		w.same[key] = w.b.AddTo(w.name(part), kind, inputs, attrs...)
	}
	return w.same[key]
}

// result writes the node that makes an output of the function.
func (w *body) result(name, kind string, inputs []string, attrs ...*onnx.Attribute) string {
	return w.b.AddTo(name, kind, inputs, attrs...)
}

// name returns a name that no value has: part, part_2, part_3 and so on.
func (w *body) name(part string) string {
	w.made[part]++
	if n := w.made[part]; n > 1 {
		return fmt.Sprintf("%s_%d", part, n)
	}
	return part
}

// constant writes a constant once under a name that says its value.
func (w *body) constant(name string, t func() *onnx.Tensor) string {
	if w.made[name] == 0 {
		w.made[name] = 1
		c := t()
		c.Name = name
		w.b.Constants = append(w.b.Constants, c)
	}
	return name
}

// ints is a constant list of int64.
func (w *body) ints(values ...int64) string {
	return w.constant("ints"+said(values), func() *onnx.Tensor {
		return ir.Int64Tensor("", []int64{int64(len(values))}, values...)
	})
}

// int is a constant int64 without dimensions.
func (w *body) int(value int64) string {
	return w.constant("int"+said([]int64{value}), func() *onnx.Tensor { return ir.Int64Tensor("", []int64{}, value) })
}

// said writes numbers as a part of a name.
func said(values []int64) string {
	text := ""
	for _, v := range values {
		if v == math.MaxInt64 {
			text += "_end"
			continue
		}
		text += "_" + strings.Replace(fmt.Sprint(v), "-", "minus_", 1)
	}
	return text
}

// number is a constant of a floating-point type without dimensions.
func (w *body) number(name string, t onnx.DataType, value float64) string {
	return w.constant(name, func() *onnx.Tensor { return ir.FloatTensor("", t, []int64{}, value) })
}

// attribute is the value of an attribute of the node: without dimensions for a number, a
// list for a list.
func (w *body) attribute(name string) string {
	if v := w.refs[name]; v != "" {
		return v
	}
	kind := specified(name).Type
	types := map[string]onnx.AttributeType{"int": onnx.AttrInt, "float": onnx.AttrFloat, "ints": onnx.AttrInts, "floats": onnx.AttrFloats}
	w.refs[name] = w.op("attribute_"+name, "Constant", nil, &onnx.Attribute{Name: "value_" + kind, Type: types[kind], RefName: name})
	return w.refs[name]
}

// element is one element of a list, without dimensions.
func (w *body) element(part, list string, i int) string {
	return w.op(part, "Gather", []string{list, w.int(int64(i))})
}

// wide is a value in float64.
func (w *body) wide(part, v string) string {
	return w.op(part+"_wide", "Cast", []string{v}, onnx.IntAttr("to", int64(onnx.Double)))
}

// nodes are the nodes that an output of the function depends on, constants first.
func (w *body) nodes(outputs []string) []*onnx.Node {
	all := w.b.Body()
	needed := map[string]bool{}
	for _, o := range outputs {
		needed[o] = true
	}
	var list []*onnx.Node
	for _, n := range slices.Backward(all) {
		if !needed[n.Outputs[0]] {
			continue
		}
		list = append(list, n)
		for _, v := range n.Inputs {
			needed[v] = true
		}
	}
	slices.Reverse(list)
	return list
}

// float is a value in float32.
func (w *body) float(part, v string) string {
	return w.op(part+"_float", "Cast", []string{v}, onnx.IntAttr("to", int64(onnx.Float)))
}

// element32 is a value of the node's element type in float32.
func (w *body) element32(part, v string) string {
	if w.opset < castLike { // the element type is float32
		return v
	}
	return w.float(part, v)
}

// like is a value in the element type of the query.
func (w *body) like(v string) (kind string, inputs []string) {
	if w.opset < castLike {
		return "Identity", []string{v}
	}
	return "CastLike", []string{v, w.names.query}
}

// narrow is a float32 value in the node's element type.
func (w *body) narrow(part, v string) string {
	if w.opset < castLike {
		return v
	}
	kind, inputs := w.like(v)
	return w.op(part, kind, inputs)
}

// size is dimension axis of a value, as a list of one.
func (w *body) size(part, v string, axis int64) string {
	return w.op(part, "Gather", []string{w.op(part+"_shape", "Shape", []string{v}), w.ints(axis)})
}

// slice takes [from, to) of an axis.
func (w *body) slice(part, v, from, to string, axis int64) string {
	return w.op(part, "Slice", []string{v, from, to, w.ints(axis)})
}

// unsqueeze gives a value dimensions of one.
func (w *body) unsqueeze(part, v string, axes ...int64) string {
	return w.op(part, "Unsqueeze", []string{v, w.ints(axes...)})
}

// scalar takes the dimension of a list of one away.
func (w *body) scalar(part, v string) string {
	return w.op(part+"_number", "Squeeze", []string{v, w.ints(0)})
}

// joined is lists, one behind the other.
func (w *body) joined(part string, lists ...string) string {
	return w.op(part, "Concat", lists, onnx.IntAttr("axis", 0))
}

// largest takes the largest along an axis, which stays with one element.
func (w *body) largest(part, v string, axis int64) string {
	if w.opset < 18 {
		return w.op(part, "ReduceMax", []string{v}, onnx.IntsAttr("axes", axis))
	}
	return w.op(part, "ReduceMax", []string{v, w.ints(axis)})
}

// total takes the sum along an axis.
func (w *body) total(part, v string, axis, keep int64) string {
	return w.op(part, "ReduceSum", []string{v, w.ints(axis)}, onnx.IntAttr("keepdims", keep))
}

// both is the conditions of a list together.
func (w *body) both(part string, list ...string) string {
	out := list[0]
	for _, v := range list[1:] {
		out = w.op(part, "And", []string{out, v})
	}
	return out
}

// specified is an attribute as the specification has it.
func specified(name string) customop.Attribute {
	for _, a := range customop.RotaryAttentionSpec.Attributes {
		if a.Name == name {
			return a
		}
	}
	return customop.Attribute{}
}
