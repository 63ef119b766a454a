package prove_test

import (
	"context"
	"math"
	"testing"

	"github.com/rope-rewrite/rope-rewrite/customop"
	"github.com/rope-rewrite/rope-rewrite/internal/engine"
	"github.com/rope-rewrite/rope-rewrite/internal/testruntime"
	"github.com/rope-rewrite/rope-rewrite/onnx"
	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/contrib"
	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/ir"
	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/prove"
)

const headSize = 32

// cachedOp is an op with a growing cache, after a change.
func cachedOp(t *testing.T, change func(*customop.RotaryAttention)) (customop.RotaryAttention, *onnx.Node) {
	t.Helper()
	r := customop.RotaryAttention{
		Query: "query", Key: "key", Value: "value", PastKey: "past_key", PastValue: "past_value",
		Output: "output", PresentKey: "present_key", PresentValue: "present_value",
		NumHeads: 4, KVNumHeads: 2, Gain: 1, Causal: 1,
	}
	for i := range headSize / 2 {
		r.Frequencies = append(r.Frequencies, float32(math.Pow(10000, -float64(i)/(headSize/2))))
	}
	change(&r)
	n, err := r.Node("attention")
	if err != nil {
		t.Fatal(err)
	}
	return r, ir.FromCustom(n)
}

// GroupQueryAttention is proven for every kind of op that it is written for, and nodes that
// compute something else are not.
func TestContrib(t *testing.T) {
	testruntime.Require(t)
	eng, err := engine.NewLocal(engine.Config{Threads: 1})
	if err != nil {
		t.Fatal(err)
	}
	defer eng.Close()
	growing := func(*customop.RotaryAttention) {}
	for name, change := range map[string]func(*customop.RotaryAttention){
		"growing cache":      growing,
		"mask and positions": func(r *customop.RotaryAttention) { r.AttentionMask, r.PositionIDs = "attention_mask", "position_ids" },
		"without a cache": func(r *customop.RotaryAttention) {
			r.PastKey, r.PastValue, r.PresentKey, r.PresentValue = "", "", "", ""
		},
		"a cache that counts":   func(r *customop.RotaryAttention) { r.CacheLength, r.TotalLength = "cache_length", "total_length" },
		"window":                func(r *customop.RotaryAttention) { r.Window = 6 },
		"half of the channels":  func(r *customop.RotaryAttention) { r.Frequencies = r.Frequencies[:8] },
		"no rotation":           func(r *customop.RotaryAttention) { r.Frequencies = nil },
		"interleaved":           func(r *customop.RotaryAttention) { r.RotaryLayout = "interleaved" },
		"pairs that turn back":  func(r *customop.RotaryAttention) { r.Frequencies[3] *= -1 },
		"gain, scale and exact": func(r *customop.RotaryAttention) { r.Gain, r.Scale, r.ExactAngles = 1.3, 0.11, 1 },
		"softcap":               func(r *customop.RotaryAttention) { r.Softcap = 5 },
		"sinks":                 func(r *customop.RotaryAttention) { r.SinkLogits = "sink_logits" },
		"all keys for all queries": func(r *customop.RotaryAttention) {
			r.Causal, r.PastKey, r.PastValue, r.PresentKey, r.PresentValue = 0, "", "", "", ""
		},
	} {
		op, n := cachedOp(t, change)
		if err := contrib.Refused(op, contrib.Node{}, 0); err != nil {
			t.Errorf("%s: refused: %v", name, err)
			continue
		}
		if _, err := proveContrib(eng, n, op, func(*onnx.Model) {}); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	for name, wrong := range map[string]func(n *onnx.Node){
		"another scale":  func(n *onnx.Node) { n.SetAttribute(onnx.FloatAttr("scale", 0.18)) },
		"another window": func(n *onnx.Node) { n.SetAttribute(onnx.IntAttr("local_window_size", 5)) },
		"another layout": func(n *onnx.Node) { n.SetAttribute(onnx.IntAttr("rotary_interleaved", 1)) },
		"no rotation":    func(n *onnx.Node) { n.SetAttribute(onnx.IntAttr("do_rotary", 0)) },
		"swapped tables": func(n *onnx.Node) { n.Inputs[7], n.Inputs[8] = n.Inputs[8], n.Inputs[7] },
	} {
		op, n := cachedOp(t, func(r *customop.RotaryAttention) { r.Window = 6 })
		_, err := proveContrib(eng, n, op, func(m *onnx.Model) {
			for n := range m.Graph.AllNodes() {
				if n.OpType == "GroupQueryAttention" {
					wrong(n)
				}
			}
		})
		if err == nil {
			t.Errorf("%s: proven", name)
		}
	}
}

func proveContrib(eng engine.Engine, n *onnx.Node, op customop.RotaryAttention, change func(*onnx.Model)) (float64, error) {
	return prove.Contrib(context.Background(), eng, n, op, nil, 17, headSize, func(m *onnx.Model, rows int64) error {
		err := contrib.Replace(m, map[*onnx.Node]contrib.Node{m.Graph.Nodes[0]: {Element: onnx.Float, HeadSize: headSize, Rows: rows}}, 0)
		change(m)
		return err
	})
}
