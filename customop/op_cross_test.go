package customop_test

import (
	"math/rand/v2"
	"testing"

	"github.com/rope-rewrite/rope-rewrite/customop"
	"github.com/rope-rewrite/rope-rewrite/onnx"
	"github.com/rope-rewrite/rope-rewrite/rope"
	"github.com/rope-rewrite/rope-rewrite/rope/ref"
)

// cross is a call whose keys are those of another text.
func cross(heads, kvHeads, headSize, batch, length, keys int) ref.Problem {
	p := problem(rope.Attention{Heads: heads, KVHeads: kvHeads, HeadSize: headSize, Cross: true}, batch, length, 0)
	p.Keys = keys
	return p
}

// ofKeys is a problem with a mask of its keys, which hides those that hidden says.
func ofKeys(p ref.Problem, hidden func(row, key int) bool) ref.Problem {
	p.Attention.Mask.Padding = true
	for b := range p.Batch {
		for j := range p.Keys {
			p.KeyMask = append(p.KeyMask, !hidden(b, j))
		}
	}
	return p
}

// Cross-attention: queries and keys of any two numbers, masked and biased, from the library and
// from the fallback.
func TestCrossAttention(t *testing.T) {
	biased := cross(4, 2, 16, 2, 7, 40)
	biased.Bias = normal(rand.New(rand.NewPCG(3, 3)), 2*4*7*40)
	biased.BiasBeforeSoftcap = normal(rand.New(rand.NewPCG(4, 4)), 2*4*7*40)
	biased.Attention.Softcap, biased.Attention.Sinks = 5, []float64{1, -2, 0, 3}
	factored := cross(4, 2, 8, 1, 5, 12)
	factored.Attention.Scale = 0.3
	for c := range 8 {
		factored.Attention.QueryFactors = append(factored.Attention.QueryFactors, 0.5+float64(c)/8)
		factored.Attention.KeyFactors = append(factored.Attention.KeyFactors, 1.5-float64(c)/8)
	}
	valued := cross(4, 2, 24, 3, 9, 50)
	valued.ValueSize = 40
	for name, p := range map[string]ref.Problem{
		"one query":        cross(4, 4, 64, 1, 1, 301),
		"one key":          cross(4, 2, 16, 2, 9, 1),
		"fewer keys":       cross(9, 3, 64, 3, 131, 17),
		"more keys":        cross(6, 1, 64, 1, 17, 700),
		"as many":          cross(4, 2, 64, 2, 33, 33),
		"long":             cross(2, 1, 32, 1, 3, 4097),
		"masked":           ofKeys(cross(4, 2, 16, 3, 5, 33), func(row, key int) bool { return key >= 33-10*row }),
		"a row of nothing": ofKeys(cross(4, 2, 16, 2, 5, 33), func(row, _ int) bool { return row == 1 }),
		"bias, cap, sinks": biased,
		"factors":          factored,
		"value size":       valued,
	} {
		t.Run(name, func(t *testing.T) {
			for _, flat := range []bool{false, true} {
				settle(t, p, flat)
			}
		})
	}
}

// Another text without a token gives zeros.
func TestCrossAttentionToNothing(t *testing.T) {
	for _, flat := range []bool{false, true} {
		solve(t, filled(cross(4, 2, 16, 2, 9, 0), 1), flat)
	}
}

// What counts tokens cannot go with keys that are none of them.
func TestSessionRefusesCross(t *testing.T) {
	setCross := func(n *onnx.Node) {
		n.SetAttribute(onnx.IntAttr("cross", 1))
		n.SetAttribute(onnx.IntAttr("causal", 0))
		dropping("frequencies")(n)
	}
	and := func(change func(*onnx.Node)) func(*onnx.Node) {
		return func(n *onnx.Node) {
			setCross(n)
			change(n)
		}
	}
	refuseNodes(t, map[string]damage{
		"cross of two":       {setting(onnx.IntAttr("cross", 2)), []string{"cross", "2"}},
		"cross, causal":      {and(setting(onnx.IntAttr("causal", 1))), []string{"cross", "causal 0"}},
		"cross, window":      {and(setting(onnx.IntAttr("window", 4))), []string{"cross", "window"}},
		"cross, frequencies": {and(setting(onnx.FloatsAttr("frequencies", 1))), []string{"cross", "frequencies"}},
		"cross, raw":         {and(setting(onnx.StringAttr("cache", "raw"))), []string{"cross", "raw cache"}},
		"cross, temperature": {and(setting(onnx.FloatsAttr("temperature", 1, 1, 1, 1))), []string{"cross", "temperature"}},
		"cross, positions":   {and(reading(5, "position_ids")), []string{"cross", "position_ids"}},
		"cross, documents":   {and(reading(9, "document_ids")), []string{"cross", "document_ids"}},
		"cross, past": {and(func(n *onnx.Node) {
			reading(3, "past_key")(n)
			reading(4, "past_value")(n)
		}), []string{"cross", "past_key"}},
	})
	node := customop.RotaryAttention{Query: "q", Key: "k", Value: "v", Output: "y", NumHeads: 1, KVNumHeads: 1, Cross: 1}
	if _, err := node.Node("good"); err != nil {
		t.Error(err)
	}
	for name, change := range map[string]func(*customop.RotaryAttention){
		"causal":      func(r *customop.RotaryAttention) { r.Causal = 1 },
		"window":      func(r *customop.RotaryAttention) { r.Window = 4 },
		"frequencies": func(r *customop.RotaryAttention) { r.Frequencies = []float32{1} },
		"raw":         func(r *customop.RotaryAttention) { r.Cache = "raw" },
		"temperature": func(r *customop.RotaryAttention) { r.Temperature = []float32{1, 1, 1, 1} },
		"past":        func(r *customop.RotaryAttention) { r.PastKey, r.PastValue = "pk", "pv" },
		"positions":   func(r *customop.RotaryAttention) { r.PositionIDs = "p" },
		"documents":   func(r *customop.RotaryAttention) { r.DocumentIDs = "d" },
	} {
		bad := node
		if change(&bad); bad.Cross == 1 {
			if _, err := bad.Node("bad"); err == nil {
				t.Errorf("%s: the node was written", name)
			}
		}
	}
}

// Keys, values and masks of other numbers than each other.
func TestRunRefusesCross(t *testing.T) {
	p := filled(ofKeys(cross(4, 2, 8, 2, 5, 7), func(int, int) bool { return false }), 1)
	for _, c := range []badInput{
		{"value", zeros(2, 2, 5, 8), []string{"value [2, 2, 5, 8]", "key [2, 2, 7, 8]"}},
		{"key", zeros(1, 2, 7, 8), []string{"key [1, 2, 7, 8]", "query [2, 4, 5, 8]"}},
		{"attention_mask", integers(ones(10), 2, 5), []string{"attention_mask [2, 5]", "[2, 7]", "length of key"}},
	} {
		refuseInput(t, p, c)
	}
}
