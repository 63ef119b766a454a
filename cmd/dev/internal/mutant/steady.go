package mutant

import (
	"context"
	"encoding/binary"
	"fmt"
	"math"
	"slices"

	"github.com/rope-rewrite/rope-rewrite/onnx"
)

// unsteady says why a model's logits say nothing of a rewrite that is off by so much; "" where they do.
func (j *Judge) unsteady(ctx context.Context, m *onnx.Model, want Logits, off float64) (string, error) {
	// What ONNX Runtime's optimizations change, or save from failing, says nothing of the rewriter.
	other, err := Run(ctx, j.Engine, m, !j.Optimized)
	if err != nil {
		return err.Error(), ctx.Err()
	}
	if own := want.Off(other); own > off/10 {
		return fmt.Sprintf("it differs from itself by %.2g of the range, the rewritten model by %.2g", own, off), nil
	}
	if err := j.withoutNaN(ctx, m); err != nil {
		return "its attention input is NaN or infinite: " + err.Error(), ctx.Err()
	}
	moved, err := j.lastBits(ctx, m)
	if err != nil {
		return err.Error(), ctx.Err()
	}
	if own := want.Off(moved); own > off/10 {
		return fmt.Sprintf("it moves by %.2g of the range when the last bits of its weights are flipped, the rewritten model is off by %.2g", own, off), nil
	}
	return "", nil
}

// lastBits returns a model's logits with the last bit of each weight flipped, and of the scales of weights of few bits:
// a model that divides by numbers near zero, or rounds its states to integers, makes much of any rounding.
func (j *Judge) lastBits(ctx context.Context, m *onnx.Model) (Logits, error) {
	m = m.Clone()
	for i, t := range m.Graph.Initializers {
		raw, err := t.Bytes()
		if err != nil {
			return nil, err
		}
		if t.Type != onnx.Float || len(t.Dims) == 0 {
			continue
		}
		raw = slices.Clone(raw)
		for k := 0; k < len(raw); k += 4 {
			if x := float64(math.Float32frombits(binary.LittleEndian.Uint32(raw[k:]))); x != 0 && !math.IsInf(x, 0) && !math.IsNaN(x) {
				raw[k] ^= 1
			}
		}
		m.Graph.Initializers[i] = onnx.NewTensor(t.Name, t.Type, t.Dims, raw)
	}
	return Run(ctx, j.Engine, m, j.Optimized)
}

// withoutNaN is an error when a model's attention layers are given NaN, which some
// exports turn into zeros: then its logits are divided by 0.
func (j *Judge) withoutNaN(ctx context.Context, m *onnx.Model) error {
	m = m.Clone()
	var given []string
	for _, n := range m.Graph.Nodes {
		switch n.OpType {
		case "Softmax":
			given = append(given, n.Inputs[0])
		case "Attention", "MultiHeadAttention", "GroupQueryAttention":
			for _, v := range n.Inputs[:min(3, len(n.Inputs))] {
				if v != "" { // packed with the one before it
					given = append(given, v)
				}
			}
		}
	}
	one := onnx.NewTensor("guard/one", onnx.Float, nil, binary.LittleEndian.AppendUint32(nil, math.Float32bits(1)))
	m.Graph.AddInitializer(one)
	left := one.Name
	node := func(op, out string, inputs []string, attrs ...*onnx.Attribute) string {
		m.Graph.InsertNode(nil, onnx.NewNode(op, inputs, []string{out}, attrs...))
		return out
	}
	for i, v := range given {
		part := func(p string) string { return fmt.Sprintf("guard/%d/%s", i, p) }
		wrong := node("Cast", part("float"), []string{node("IsNaN", part("wrong"), []string{v})}, onnx.IntAttr("to", int64(onnx.Float)))
		any := node("ReduceMax", part("any"), []string{wrong}, onnx.IntAttr("keepdims", 0))
		left = node("Mul", part("left"), []string{left, node("Sub", part("none"), []string{one.Name, any})})
	}
	for _, o := range m.Graph.Outputs {
		if len(o.Shape) == 3 {
			o.Name = node("Div", "guard/"+o.Name, []string{o.Name, left})
		}
	}
	_, err := Run(ctx, j.Engine, m, j.Optimized)
	return err
}
