package drift

import (
	"encoding/binary"
	"fmt"
	"math"
	"slices"

	"github.com/rope-rewrite/rope-rewrite/onnx"
	"github.com/rope-rewrite/rope-rewrite/rewrite"
	"github.com/rope-rewrite/rope-rewrite/rope"
)

// graphTypes are the arithmetics that a whole model runs in, with the type that it rounds rotated queries
// and keys to. (Split has three products, which one attention does not have.)
var graphTypes = map[Arithmetic]onnx.DataType{Float32: onnx.Float, BFloat16: onnx.BFloat16, Float16: onnx.Float16}

// rounder changes the ops of a model: nodes in front of each rotate and round its queries and keys as
// turner does, and the op multiplies them as they are.
type rounder struct {
	graph  *onnx.Graph
	names  onnx.Names
	to     onnx.DataType
	reach  int64             // positions are below
	before *onnx.Node        // where new nodes go
	tables map[string]string // of cosines and sines, by frequencies
}

func newRounder(m *onnx.Model, arithmetic Arithmetic, reach int64) *rounder {
	r := &rounder{graph: m.Graph, names: onnx.Names{}, to: graphTypes[arithmetic], reach: reach, tables: map[string]string{}}
	r.names.Note(m.Graph)
	return r
}

// round changes an op and returns the values that hold its rotated queries and keys.
func (r *rounder) round(op rewrite.Op) (query, key string) {
	r.before = op.Node
	e := op.Attention.Encoding
	cos, sin := r.table(e, "cosines", math.Cos), r.table(e, "sines", math.Sin)
	query = r.rotate(op, op.Node.Inputs[0], op.Attention.Heads, cos, sin)
	key = r.rotate(op, op.Node.Inputs[1], op.Attention.KVHeads, cos, sin)
	op.Node.Inputs[0], op.Node.Inputs[1] = query, key
	op.Node.Attributes = slices.DeleteFunc(op.Node.Attributes, func(a *onnx.Attribute) bool {
		return slices.Contains([]string{"frequencies", "gain", "rotary_layout", "rotary_offset", "exact_angles"}, a.Name)
	})
	return query, key
}

// table is an initializer of a function of the angles at all positions, times the gain.
func (r *rounder) table(e rope.Encoding, what string, of func(float64) float64) string {
	kind := fmt.Sprint(what, e.Frequencies, e.Gain, e.ExactAngles)
	if name := r.tables[kind]; name != "" {
		return name
	}
	var raw []byte
	for position := range r.reach {
		for _, frequency := range e.Frequencies {
			raw = binary.LittleEndian.AppendUint32(raw, math.Float32bits(float32(e.EffectiveGain()*of(angle(e, float64(position), frequency)))))
		}
	}
	name := r.names.Fresh("drift/" + what)
	r.graph.AddInitializer(onnx.NewTensor(name, onnx.Float, []int64{r.reach, int64(len(e.Frequencies))}, raw))
	r.tables[kind] = name
	return name
}

// rotate writes the rotation of queries or keys [batch, heads, length, size] or [batch, length, heads·size]: which of
// them they are is not known before the model runs.
func (r *rounder) rotate(op rewrite.Op, x string, heads int, cos, sin string) string {
	e := op.Attention.Encoding
	n, offset := len(e.Frequencies), int64(e.Offset)
	positions := op.Node.Inputs[positionIDs]

	// What stands between the batch and a head's channels: heads and length, or length and heads.
	shape := r.node("Shape", x)
	apart := r.node("Equal", r.node("Size", shape), r.ints(4))
	length := r.node("Gather", r.node("Shape", positions), r.ints(1))
	count, one := r.ints(int64(heads)), r.ints(1)
	middle := r.node("Where", apart, r.concat(0, count, length), r.concat(0, length, count))
	wide := r.node("Reshape", x, r.concat(0, r.ints(0), middle, r.ints(-1)))
	rows := r.concat(0, r.ints(-1), r.node("Where", apart, r.concat(0, one, length), r.concat(0, length, one)), r.ints(int64(n)))
	c := r.node("Reshape", r.node("Gather", cos, positions), rows)
	s := r.node("Reshape", r.node("Gather", sin, positions), rows)

	// The two channels of each pair, and where they go.
	var first, second, back []int64
	t := turner{encoding: e}
	for i := range n {
		a, b := t.pair(i)
		first, second = append(first, int64(a)), append(second, int64(b))
	}
	back = make([]int64, 2*n)
	for i := range n {
		back[first[i]-offset], back[second[i]-offset] = int64(i), int64(n+i)
	}
	a, b := r.gather(wide, first), r.gather(wide, second)
	turned := r.concat(3,
		r.node("Sub", r.node("Mul", a, c), r.node("Mul", b, s)),
		r.node("Add", r.node("Mul", b, c), r.node("Mul", a, s)))
	turned = r.concat(3, r.slice(wide, 0, offset), r.gather(turned, back), r.slice(wide, offset+2*int64(n), math.MaxInt32))
	if r.to != onnx.Float {
		narrow := r.node("Cast", turned, onnx.IntAttr("to", int64(r.to)))
		turned = r.node("Cast", narrow, onnx.IntAttr("to", int64(onnx.Float)))
	}
	return r.node("Reshape", turned, shape)
}

// node inserts a node and returns its output. Arguments are values, and attributes.
func (r *rounder) node(opType string, arguments ...any) string {
	var inputs []string
	var attributes []*onnx.Attribute
	for _, a := range arguments {
		if name, ok := a.(string); ok {
			inputs = append(inputs, name)
		} else {
			attributes = append(attributes, a.(*onnx.Attribute))
		}
	}
	out := r.names.Fresh("drift/" + opType)
	r.graph.InsertNode(r.before, onnx.NewNode(opType, inputs, []string{out}, attributes...))
	return out
}

// ints is an initializer of numbers [n].
func (r *rounder) ints(list ...int64) string {
	var raw []byte
	for _, x := range list {
		raw = binary.LittleEndian.AppendUint64(raw, uint64(x))
	}
	name := r.names.Fresh("drift/numbers")
	r.graph.AddInitializer(onnx.NewTensor(name, onnx.Int64, []int64{int64(len(list))}, raw))
	return name
}

func (r *rounder) concat(axis int64, parts ...any) string {
	return r.node("Concat", append(parts, onnx.IntAttr("axis", axis))...)
}

func (r *rounder) gather(x string, channels []int64) string {
	return r.node("Gather", x, r.ints(channels...), onnx.IntAttr("axis", 3))
}

func (r *rounder) slice(x string, from, to int64) string {
	return r.node("Slice", x, r.ints(from), r.ints(to), r.ints(3))
}
