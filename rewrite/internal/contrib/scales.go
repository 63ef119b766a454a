package contrib

import (
	"fmt"
	"math"
	"slices"

	"github.com/rope-rewrite/rope-rewrite/onnx"
	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/ir"
)

// Scales are the fixed scales of a layer's caches of int8. A cache holds its numbers divided by the scale
// and rounded to the nearest whole number from -128 to 127. Each list has one scale, or one for each
// channel of each kv head.
type Scales struct{ Key, Value []float32 }

// Limits of what a cache of int8 holds, in steps of its scale.
const (
	LeastStep    = -128
	GreatestStep = 127
)

// Check refuses scales that do not fit a layer.
func (s Scales) Check(kvHeads, headSize int) error {
	for _, l := range []struct {
		of   string
		list []float32
	}{{"key", s.Key}, {"value", s.Value}} {
		if n := len(l.list); n != 1 && n != kvHeads*headSize {
			return fmt.Errorf("its %s has %d scales: expected one, or %d (%d kv heads of %d channels)", l.of, n, kvHeads*headSize, kvHeads, headSize)
		}
		for _, x := range l.list {
			if !(x > 0) || math.IsInf(float64(x), 0) {
				return fmt.Errorf("its %s has the scale %v: expected a number above 0 that is not infinite", l.of, x)
			}
		}
	}
	return nil
}

// perChannel reports whether a list has a scale for each channel. ONNX Runtime's CPU kernel wants keys and
// values to be alike.
func (s Scales) perChannel() bool { return max(len(s.Key), len(s.Value)) > 1 }

// wide is a list of scales with one for each of so many channels.
func wide(list []float32, channels int) []float32 {
	if len(list) == 1 {
		return slices.Repeat(list, channels)
	}
	return list
}

// scaleInput is the place of k_scale among the inputs; v_scale follows.
const scaleInput = 12

// hold gives a node the scales, as inputs and attributes.
func (s Scales) hold(b *ir.Builder, n *onnx.Node, kvHeads, headSize int64) {
	kind, dims, key, value := "PER_TENSOR", []int64{1}, s.Key, s.Value
	if s.perChannel() {
		kind, dims = "PER_CHANNEL", []int64{1, kvHeads, 1, headSize}
		key, value = wide(key, int(kvHeads*headSize)), wide(value, int(kvHeads*headSize))
	}
	n.Inputs = append(n.Inputs, make([]string, scaleInput-len(n.Inputs))...)
	n.Inputs = append(n.Inputs, b.AddNamedConstant("k_scale", ir.Float32Tensor("", dims, key...)), b.AddNamedConstant("v_scale", ir.Float32Tensor("", dims, value...)))
	n.SetAttribute(onnx.StringAttr("k_quant_type", kind))
	n.SetAttribute(onnx.StringAttr("v_quant_type", kind))
	n.SetAttribute(onnx.IntAttr("kv_cache_bit_width", 8))
}

// ScalesOf are the scales that a node reads from the weights of a graph, nil where its caches have none.
func ScalesOf(g *onnx.Graph, n *onnx.Node) *Scales {
	if n.Domain != Domain || n.OpType != "GroupQueryAttention" || len(n.Inputs) <= scaleInput+1 {
		return nil
	}
	key, value := g.Initializer(n.Inputs[scaleInput]), g.Initializer(n.Inputs[scaleInput+1])
	if key == nil || value == nil {
		return nil
	}
	s, err := &Scales{}, error(nil)
	if s.Key, err = key.Floats(); err == nil {
		s.Value, err = value.Floats()
	}
	if err != nil {
		return nil
	}
	return s
}
