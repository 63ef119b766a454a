package prove_test

import (
	"context"
	"testing"

	"github.com/rope-rewrite/rope-rewrite/customop"
	"github.com/rope-rewrite/rope-rewrite/internal/engine"
	"github.com/rope-rewrite/rope-rewrite/internal/testruntime"
	"github.com/rope-rewrite/rope-rewrite/onnx"
	"github.com/rope-rewrite/rope-rewrite/rewrite/definition"
	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/prove"
)

// The fallback of a ring, and the op, compute what float64 does with the tokens that are left; a fallback with
// another ring does not.
func TestRingDefinition(t *testing.T) {
	testruntime.Require(t)
	eng, err := engine.NewLocal(engine.Config{Threads: 2})
	if err != nil {
		t.Fatal(err)
	}
	defer eng.Close()
	masked := func(r *customop.RotaryAttention) { r.AttentionMask, r.PositionIDs = "attention_mask", "position_ids" }
	first := func(r *customop.RotaryAttention) { r.FirstKeys, r.FirstKeysShown = 3, 1 }
	raw := func(r *customop.RotaryAttention) { r.Cache = "raw" }
	for name, changes := range map[string][]func(*customop.RotaryAttention){
		"window":             {},
		"mask and positions": {masked},
		"first keys":         {first},
		"masked first keys":  {masked, first},
		"raw":                {raw},
		"raw and masked":     {raw, masked, first},
		"bands": {masked, first, func(r *customop.RotaryAttention) {
			r.BandStarts, r.BandQueryScales, r.BandQueryLimits = []int64{0, 6}, []float32{1, 1}, []float32{0, 8}
		}},
		"raw bands": {masked, raw, first, func(r *customop.RotaryAttention) {
			r.BandStarts, r.BandQueryLimits = []int64{0, 6}, []float32{0, 8}
		}},
		"documents": {masked, func(r *customop.RotaryAttention) { r.DocumentIDs, r.DocumentMask = "document_ids", "anchor" }},
		"slopes":    {func(r *customop.RotaryAttention) { r.DistanceSlopes = []float32{.5, .25, .1, .05} }},
		"int8": {first, func(r *customop.RotaryAttention) {
			r.CacheType = "int8"
			r.PastKeyScale, r.PastValueScale, r.PresentKeyScale, r.PresentValueScale = "past_key_scale", "past_value_scale", "present_key_scale", "present_value_scale"
		}},
		"raw float16": {raw, func(r *customop.RotaryAttention) { r.CacheType = "float16" }},
	} {
		op, n := cachedOp(t, func(r *customop.RotaryAttention) {
			r.Window, r.CacheLength, r.CacheRing = 6, "cache_length", 1
			for _, change := range changes {
				change(r)
			}
		})
		if _, err := prove.Definition(context.Background(), eng, n, op, functionOf(t, n), 18, headSize); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		f := functionOf(t, n)
		for _, n := range f.Nodes {
			if n.Outputs[0] == "row_of_place" {
				n.OpType = "Sub"
			}
		}
		if _, err := prove.Definition(context.Background(), eng, n, op, f, 18, headSize); err == nil {
			t.Errorf("%s: a fallback that stores other rows is proven", name)
		}
	}
}

func functionOf(t *testing.T, n *onnx.Node) *onnx.Function {
	t.Helper()
	m := onnx.New()
	m.RequireOpset("", 18)
	m.RequireOpset(customop.Domain, 1)
	m.Graph.Nodes = []*onnx.Node{n}
	functions, err := definition.Write(m)
	if err != nil {
		t.Fatal(err)
	}
	return functions[0]
}
