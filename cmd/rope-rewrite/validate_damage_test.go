package main

import (
	"encoding/binary"
	"math"
	"slices"
	"strings"

	"github.com/rope-rewrite/rope-rewrite/onnx"
	"github.com/rope-rewrite/rope-rewrite/provenance"
	"github.com/rope-rewrite/rope-rewrite/rewrite/definition"
	"github.com/rope-rewrite/rope-rewrite/rope"
	"github.com/rope-rewrite/rope-rewrite/validate"
)

// nodes are those of an op.
func nodes(m *onnx.Model, opType string) (list []*onnx.Node) {
	for n := range m.Graph.AllNodes() {
		if n.OpType == opType || strings.HasPrefix(n.OpType, opType+"_") {
			list = append(list, n)
		}
	}
	return list
}

// op changes the op of layer 1.
func op(change func(*onnx.Node)) func(*onnx.Model) {
	return func(m *onnx.Model) { change(nodes(m, "RotaryAttention")[1]) }
}

// by multiplies an attribute.
func by(name string, factor float32) func(*onnx.Model) {
	return op(func(n *onnx.Node) {
		switch a := n.Attribute(name); a.Type {
		case onnx.AttrInt:
			n.SetAttribute(onnx.IntAttr(name, int64(float32(a.Int)*factor)))
		case onnx.AttrFloat:
			n.SetAttribute(onnx.FloatAttr(name, a.Float*factor))
		default:
			f := slices.Clone(a.Floats)
			f[len(f)-1] *= factor
			n.SetAttribute(onnx.FloatsAttr(name, f...))
		}
	})
}

// weight changes the k-th of the large weights, in the order in which nodes read them; a negative k
// counts from the last.
func weight(k int, change func([]float32)) func(*onnx.Model) {
	return func(m *onnx.Model) {
		var list []*onnx.Tensor
		for _, n := range m.Graph.Nodes {
			for _, in := range n.Inputs {
				if t := m.Graph.Initializer(in); t != nil && t.Type == onnx.Float && t.Len() >= 64 && !slices.Contains(list, t) {
					list = append(list, t)
				}
			}
		}
		if k < 0 {
			k += len(list)
		}
		old := list[k]
		values, _ := old.Float64s()
		numbers := make([]float32, len(values))
		for i, x := range values {
			numbers[i] = float32(x)
		}
		change(numbers)
		var raw []byte
		for _, x := range numbers {
			raw = binary.LittleEndian.AppendUint32(raw, math.Float32bits(x))
		}
		m.Graph.Initializers[slices.Index(m.Graph.Initializers, old)] = onnx.NewTensor(old.Name, onnx.Float, old.Dims, raw)
	}
}

func scaled(by float32) func([]float32) {
	return func(list []float32) {
		for i := range list {
			list[i] *= by
		}
	}
}

func one(list []float32) { list[len(list)/2] += 0.01 }

// record changes what the model's record says.
func record(change func(*provenance.Record)) func(*onnx.Model) {
	return func(m *onnx.Model) {
		r, err := provenance.Read(m)
		if err != nil {
			panic(err)
		}
		change(r)
		if err := provenance.Write(m, r); err != nil {
			panic(err)
		}
	}
}

// given changes the first method of a record.
func given(text, name string, value float64) func(*onnx.Model) {
	return record(func(r *provenance.Record) {
		e := &r.Edits[0]
		e.Given = text
		for i := range e.Settings {
			if e.Settings[i].Name == name {
				e.Settings[i].Value = rope.Number(value)
			}
		}
	})
}

// older says in a model's record that another version wrote it.
var older = record(func(r *provenance.Record) { r.Tool = "0.0.1" })

// lastPlace changes one number by one unit in the last place.
func lastPlace(list []float32) {
	i := len(list) / 2
	list[i] = math.Float32frombits(math.Float32bits(list[i]) ^ 1)
}

func then(changes ...func(*onnx.Model)) func(*onnx.Model) {
	return func(m *onnx.Model) {
		for _, change := range changes {
			change(m)
		}
	}
}

// exchange exchanges the places of the first two cache outputs.
func exchange(m *onnx.Model) { o := m.Graph.Outputs; o[1], o[2] = o[2], o[1] }

// adds puts a sum in the place of the fallback's last product.
func adds(m *onnx.Model) {
	for _, n := range slices.Backward(definition.Of(m)[0].Nodes) {
		if n.OpType == "Mul" {
			n.OpType = "Add"
			return
		}
	}
	panic("no product")
}

// place is the first place that a report names.
func place(r *validate.Report) string {
	switch {
	case r.Fallback != nil && r.Fallback.Differs:
		return r.Fallback.Why
	case r.Rebuilt != nil && r.Rebuilt.First != nil:
		return r.Rebuilt.First.String()
	}
	return ""
}
