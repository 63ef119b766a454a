package groupquery

import (
	"encoding/binary"
	"fmt"
	"math"

	"github.com/rope-rewrite/rope-rewrite/onnx"
)

// builder collects nodes and constants whose names begin with stem.
type builder struct {
	stem      string
	elem      onnx.DataType // of float constants: Float, or Double
	nodes     []*onnx.Node
	constants []*onnx.Tensor
	made      map[string]bool
}

func (b *builder) value(part string) string { return b.stem + "/" + part }

func (b *builder) node(opType string, inputs, outputs []string, attrs ...*onnx.Attribute) {
	n := onnx.NewNode(opType, inputs, outputs, attrs...)
	n.Name = outputs[0]
	b.nodes = append(b.nodes, n)
}

func (b *builder) make(opType string, inputs []string, output string, attrs ...*onnx.Attribute) {
	b.node(opType, inputs, []string{output}, attrs...)
}

func (b *builder) add(opType string, inputs []string, part string, attrs ...*onnx.Attribute) string {
	out := b.value(part)
	b.make(opType, inputs, out, attrs...)
	return out
}

// constant returns a constant named by what it holds, made on first use.
func (b *builder) constant(t onnx.DataType, dims []int64, raw []byte) string {
	name := fmt.Sprintf("%s/constant_%v%d_%x", b.stem, t, dims, raw)
	if b.made == nil {
		b.made = map[string]bool{}
	}
	if !b.made[name] {
		b.made[name] = true
		b.constants = append(b.constants, onnx.NewTensor(name, t, dims, raw))
	}
	return name
}

func (b *builder) list(values ...int64) string {
	raw := []byte{}
	for _, v := range values {
		raw = binary.LittleEndian.AppendUint64(raw, uint64(v))
	}
	return b.constant(onnx.Int64, []int64{int64(len(values))}, raw)
}

func (b *builder) scalar(v int64) string {
	return b.constant(onnx.Int64, []int64{}, binary.LittleEndian.AppendUint64(nil, uint64(v)))
}

func (b *builder) float(v float32) string {
	if b.elem == onnx.Double {
		return b.constant(onnx.Double, []int64{}, binary.LittleEndian.AppendUint64(nil, math.Float64bits(float64(v))))
	}
	return b.constant(onnx.Float, []int64{}, binary.LittleEndian.AppendUint32(nil, math.Float32bits(v)))
}

// size is one dimension of a value, as a scalar.
func (b *builder) size(value string, axis int64, part string) string {
	shape := b.add("Shape", []string{value}, part+"_shape")
	return b.add("Gather", []string{shape, b.scalar(axis)}, part, onnx.IntAttr("axis", 0))
}

func (b *builder) int64(value, part string) string {
	return b.add("Cast", []string{value}, part, onnx.IntAttr("to", int64(onnx.Int64)))
}
