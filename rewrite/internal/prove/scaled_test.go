package prove_test

import (
	"context"
	"strings"
	"testing"

	"github.com/rope-rewrite/rope-rewrite/customop"
	"github.com/rope-rewrite/rope-rewrite/internal/engine"
	"github.com/rope-rewrite/rope-rewrite/internal/testruntime"
	"github.com/rope-rewrite/rope-rewrite/onnx"
	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/contrib"
	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/prove"
)

// GroupQueryAttention with caches of int8 is proven against float64 that rounds with the same scales, and
// nodes with other scales, or another rounding, are not.
func TestContribScaled(t *testing.T) {
	testruntime.Require(t)
	eng, err := engine.NewLocal(engine.Config{Threads: 1})
	if err != nil {
		t.Fatal(err)
	}
	defer eng.Close()
	one := contrib.Scales{Key: []float32{0.03}, Value: []float32{0.011}}
	each := contrib.Scales{Value: []float32{7}}
	for i := range 2 * headSize {
		each.Key = append(each.Key, 0.001*float32(10+i%7))
	}
	growing := func(*customop.RotaryAttention) {}
	fixed := func(r *customop.RotaryAttention) { r.CacheLength = "cache_length" }
	prove := func(scales contrib.Scales, change func(*customop.RotaryAttention), spoil func(*onnx.Node, *onnx.Model)) error {
		op, n := cachedOp(t, change)
		_, err := prove.Contrib(context.Background(), eng, n, op, &scales, 17, headSize, func(m *onnx.Model, rows int64) error {
			of := contrib.Node{Element: onnx.Float, HeadSize: headSize, Rows: rows, Scales: &scales}
			if err := contrib.Refused(op, of, 0); err != nil {
				return err
			}
			err := contrib.Replace(m, map[*onnx.Node]contrib.Node{m.Graph.Nodes[0]: of}, 0)
			for n := range m.Graph.AllNodes() {
				if n.OpType == "GroupQueryAttention" {
					spoil(n, m)
				}
			}
			return err
		})
		return err
	}
	for name, c := range map[string]struct {
		scales contrib.Scales
		change func(*customop.RotaryAttention)
	}{
		"growing":     {one, growing},
		"per channel": {each, growing},
		"fixed": {one, func(r *customop.RotaryAttention) {
			fixed(r)
			r.AttentionMask, r.PositionIDs = "attention_mask", "position_ids"
		}},
		"counted": {one, func(r *customop.RotaryAttention) { r.CacheLength, r.TotalLength = "cache_length", "total_length" }},
		"window":  {each, func(r *customop.RotaryAttention) { fixed(r); r.Window = 6 }},
		"sinks":   {one, func(r *customop.RotaryAttention) { r.SinkLogits = "sink_logits" }},
		"softcap": {one, func(r *customop.RotaryAttention) { r.Softcap = 5 }},
	} {
		if err := prove(c.scales, c.change, func(*onnx.Node, *onnx.Model) {}); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	for name, c := range map[string]struct {
		scales contrib.Scales
		spoil  func(*onnx.Node, *onnx.Model)
		want   string
	}{
		"swapped scales": {one, func(n *onnx.Node, _ *onnx.Model) { n.Inputs[12], n.Inputs[13] = n.Inputs[13], n.Inputs[12] }, "steps of a scale"},
		"another scale of a channel": {each, func(n *onnx.Node, m *onnx.Model) {
			b, err := m.Graph.Initializer(n.Inputs[12]).Bytes()
			if err != nil {
				t.Fatal(err)
			}
			copy(b[4*40:4*41], b[4*41:4*42])
		}, "steps of a scale"},
		"another scale of scores": {one, func(n *onnx.Node, _ *onnx.Model) { n.SetAttribute(onnx.FloatAttr("scale", 0.18)) }, "in output"},
	} {
		if err := prove(c.scales, growing, c.spoil); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: the error is %v", name, err)
		}
	}
}
