package drift

import (
	"context"
	"fmt"
	"math"

	"github.com/rope-rewrite/rope-rewrite/customop"
	"github.com/rope-rewrite/rope-rewrite/internal/engine"
	"github.com/rope-rewrite/rope-rewrite/onnx"
	"github.com/rope-rewrite/rope-rewrite/rewrite"
	"github.com/rope-rewrite/rope-rewrite/validate/capture"
)

// OpDrift is what the op itself makes of a shift: the mean |change| of the logarithm of the
// softmax's denominator, over all layers and heads.
type OpDrift struct {
	Type      string  `json:"type"`      // of the op's tensors and cache
	Precision string  `json:"precision"` // its attribute: exact or fast
	Cache     string  `json:"cache"`     // its attribute: rotated or raw
	Shift     int64   `json:"shift"`
	Prompt    float64 `json:"prompt"` // of all tokens but the last, in one call
	Next      float64 `json:"next"`   // of the last one, which reads the others from the cache
}

// variant is a way in which the op can run.
type variant struct {
	element          onnx.DataType
	precision, cache string
}

func variants() []variant {
	list := []variant{{onnx.Float, "exact", "rotated"}, {onnx.Float, "fast", "rotated"}}
	for _, t := range []onnx.DataType{onnx.BFloat16, onnx.Float16} {
		list = append(list, variant{t, "exact", "rotated"}, variant{t, "fast", "rotated"}, variant{t, "exact", "raw"})
	}
	return list
}

// typeName is a type's name in the words of Arithmetic.
func typeName(t onnx.DataType) string {
	if t == onnx.Float {
		return string(Float32)
	}
	return t.String()
}

// opGraph is a graph that runs an op in all variants: on the first tokens, then on the last.
type opGraph struct {
	graph   *onnx.Graph
	outputs []string
}

func (g *opGraph) node(op string, in, out string, attributes ...*onnx.Attribute) string {
	g.graph.Nodes = append(g.graph.Nodes, onnx.NewNode(op, []string{in}, []string{out}, attributes...))
	return out
}

// variant adds the op in one variant. Call a is the prompt, b the next token.
func (g *opGraph) variant(base customop.RotaryAttention, v variant, name string) error {
	op := customop.RotaryAttention{
		NumHeads: base.NumHeads, KVNumHeads: base.KVNumHeads, Scale: base.Scale, Softcap: base.Softcap,
		Frequencies: base.Frequencies, Gain: base.Gain, RotaryLayout: base.RotaryLayout, RotaryOffset: base.RotaryOffset,
		ExactAngles: base.ExactAngles, Causal: base.Causal, Window: base.Window, Temperature: base.Temperature,
		TrainedLength: base.TrainedLength, LongFrequencies: base.LongFrequencies, DynamicNtk: base.DynamicNtk, DynamicLinear: base.DynamicLinear,
		Precision: v.precision, Cache: v.cache,
	}
	for _, call := range []string{"a", "b"} {
		to := onnx.IntAttr("to", int64(v.element))
		stem := name + call
		op.Query = g.node("Cast", "query_"+call, stem+"query", to)
		op.Key = g.node("Cast", "key_"+call, stem+"key", to)
		op.Value = g.node("Cast", "value_"+call, stem+"value", to)
		op.PositionIDs = "positions_" + call
		op.PastKey, op.PastValue = op.PresentKey, op.PresentValue
		op.Output, op.PresentKey, op.PresentValue, op.LogSumExp = stem+"output", stem+"present_key", stem+"present_value", stem+"lse"
		n, err := rewrite.NewNode(op, stem)
		if err != nil {
			return err
		}
		g.graph.Nodes = append(g.graph.Nodes, n)
		g.graph.AddOutput(&onnx.ValueInfo{Name: op.LogSumExp, Type: onnx.Float})
		g.outputs = append(g.outputs, op.LogSumExp)
	}
	return nil
}

var opInputs = []string{"query_a", "key_a", "value_a", "positions_a", "query_b", "key_b", "value_b", "positions_b"}

// runOp adds the drift of a layer's op to list, one entry for each variant and shift, in that
// order.
func runOp(ctx context.Context, eng engine.Engine, op customop.RotaryAttention, l capture.Layer, shifts []int64, list []OpDrift) error {
	m := onnx.New()
	m.RequireIR(8)
	m.RequireOpset("", 17)
	m.RequireOpset(customop.Domain, 1)
	g := &opGraph{graph: m.Graph}
	for _, name := range opInputs {
		t := onnx.Float
		if name == "positions_a" || name == "positions_b" {
			t = onnx.Int64
		}
		m.Graph.AddInput(&onnx.ValueInfo{Name: name, Type: t})
	}
	for i, v := range variants() {
		if err := g.variant(op, v, fmt.Sprintf("v%d", i)); err != nil {
			return err
		}
	}
	data, err := m.Marshal()
	if err != nil {
		return err
	}
	session, err := eng.Load(ctx, engine.Model{Bytes: data, Inputs: opInputs, Outputs: g.outputs, Library: true})
	if err != nil {
		return err
	}
	defer session.Close()
	still, err := session.Run(ctx, feeds(l, 0))
	if err != nil {
		return err
	}
	for s, shift := range shifts {
		moved, err := session.Run(ctx, feeds(l, shift))
		if err != nil {
			return err
		}
		for v := range variants() {
			at := &list[v*len(shifts)+s]
			at.Prompt += change(still, moved, g.outputs[2*v])
			at.Next += change(still, moved, g.outputs[2*v+1])
		}
	}
	return nil
}

// feeds are the op's inputs: the tokens but the last, and the last.
func feeds(l capture.Layer, shift int64) map[string]engine.Tensor {
	a := l.Attention
	out := map[string]engine.Tensor{}
	for _, x := range []struct {
		name        string
		values      []float64
		heads, size int
	}{{"query", l.Query, a.Heads, a.HeadSize}, {"key", l.Key, a.KVHeads, a.HeadSize}, {"value", l.Value, a.KVHeads, l.ValueSize}} {
		var first, last []float32
		for i, y := range x.values {
			if i/x.size%l.Length == l.Length-1 {
				last = append(last, float32(y))
			} else {
				first = append(first, float32(y))
			}
		}
		out[x.name+"_a"] = engine.Float32s(first, 1, int64(x.heads), int64(l.Length-1), int64(x.size))
		out[x.name+"_b"] = engine.Float32s(last, 1, int64(x.heads), 1, int64(x.size))
	}
	positions := make([]int64, l.Length)
	for i, at := range l.Positions {
		positions[i] = at + shift
	}
	out["positions_a"] = engine.Int64s(positions[:l.Length-1], 1, int64(l.Length-1))
	out["positions_b"] = engine.Int64s(positions[l.Length-1:], 1, 1)
	return out
}

// change is the mean |difference| of an output.
func change(a, b map[string]engine.Tensor, name string) (sum float64) {
	x, y := a[name].Values(), b[name].Values()
	for i := range x {
		sum += math.Abs(x[i] - y[i])
	}
	return sum / float64(len(x))
}
