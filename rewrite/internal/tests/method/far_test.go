package method_test

import (
	"context"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/rope-rewrite/rope-rewrite/customop"
	"github.com/rope-rewrite/rope-rewrite/internal/engine"
	"github.com/rope-rewrite/rope-rewrite/onnx"
	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/dim"
	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/lower"
	"github.com/rope-rewrite/rope-rewrite/rope"
	"github.com/rope-rewrite/rope-rewrite/rope/ref"
)

// lastPosition is the farthest that is asked of any method.
const lastPosition = 131_071

// far lowers an attention and compares the op with the float64 reference on the
// tokens up to lastPosition: 64 in one call and, with a cache, 8 more. It
// returns the largest error, and that of the plain float32 reference.
func far(t *testing.T, eng engine.Engine, a rope.Attention) (op, plain float64) {
	t.Helper()
	for round := range uint64(8) { // a largest error is known as well as it was sampled
		x, y := farOnce(t, eng, a, round)
		op, plain = max(op, x), max(plain, y)
		if op <= 2*plain || op > 4*plain {
			break
		}
	}
	return op, plain
}

// farOnce is far for one draw of numbers.
func farOnce(t *testing.T, eng engine.Engine, a rope.Attention, seed uint64) (op, plain float64) {
	t.Helper()
	a.Mask.Padding = false
	r := rand.New(rand.NewPCG(5+seed, uint64(len(a.Bands))))
	var past ref.Result
	lengths := []int{64, 8}
	if a.Drawn.Range > 0 {
		lengths = lengths[:1] // whole texts only
	}
	for i, length := range lengths {
		p := ref.Problem{Attention: a, Batch: 1, Length: length}
		if i > 0 {
			p.Past, p.PastKey, p.PastValue = lengths[0], past.PresentKey, past.PresentValue
		}
		random := func(heads int) (list []float64) {
			for range heads * length * a.HeadSize {
				list = append(list, float64(float32(r.NormFloat64())))
			}
			return list
		}
		p.Query, p.Key, p.Value = random(a.Heads), random(a.KVHeads), random(a.KVHeads)
		for l := range length {
			at := int64(lastPosition - lengths[0] - length*min(1, i) + 1 + p.Past + l)
			if a.Drawn.Range > 0 || a.Chunk == 0 && slices.ContainsFunc(a.Bands, func(b rope.Band) bool { return b.QueryLimit > 0 }) {
				at = int64(p.Past + l) // places in a text, which begins at 0
			}
			p.Positions = append(p.Positions, at)
		}
		if a.Mask.Documents != rope.NoDocuments {
			for j := range p.Past + length {
				p.Documents = append(p.Documents, int64(min(j, 1+j/30)))
			}
		}
		want, err := ref.Run(p)
		if err != nil {
			t.Fatal(err)
		}
		single, err := ref.RunFloat32(p)
		if err != nil {
			t.Fatal(err)
		}
		for x, v := range runLowered(t, eng, p) {
			op = max(op, math.Abs(v-want.Output[x]))
			plain = max(plain, math.Abs(single.Output[x]-want.Output[x]))
		}
		past = want
		for x, v := range past.PresentKey { // as a cache holds them
			past.PresentKey[x] = float64(float32(v))
		}
	}
	return op, plain
}

// runLowered computes a problem by the nodes that are written into models.
func runLowered(t *testing.T, eng engine.Engine, p ref.Problem) []float64 {
	t.Helper()
	a := p.Attention
	of := func(heads int) dim.Layout {
		return dim.Layout{Axes: []dim.Axis{dim.BatchAxis, dim.HeadAxis, dim.RowAxis, dim.ChannelAxis}, Heads: int64(heads), Channels: int64(a.HeadSize)}
	}
	floats := func(values []float64, heads, rows int) engine.Tensor {
		list := make([]float32, len(values))
		for i, v := range values {
			list[i] = float32(v)
		}
		return engine.Float32s(list, 1, int64(heads), int64(rows), int64(a.HeadSize))
	}
	positions := &onnx.ValueInfo{Name: "position_ids", Type: onnx.Int64}
	w := lower.Binding{Name: "far", Element: onnx.Float, Query: "query", Key: "key", Value: "value", Output: "output", Position: positions,
		QueryLayout: of(a.Heads), KeyLayout: of(a.KVHeads), ValueLayout: of(a.KVHeads), OutputLayout: of(a.Heads)}
	feeds := map[string]engine.Tensor{
		"query": floats(p.Query, a.Heads, p.Length), "key": floats(p.Key, a.KVHeads, p.Length), "value": floats(p.Value, a.KVHeads, p.Length),
		"position_ids": engine.Int64s(p.Positions, 1, int64(p.Length)),
	}
	if p.Past > 0 {
		w.PastKey, w.PastValue = "past_key", "past_value"
		feeds["past_key"], feeds["past_value"] = floats(p.PastKey, a.KVHeads, p.Past), floats(p.PastValue, a.KVHeads, p.Past)
	}
	var extra lower.ExtraInputs
	if p.Documents != nil {
		extra.Documents = "document_ids"
		feeds["document_ids"] = engine.Int64s(p.Documents, 1, int64(p.Past+p.Length))
	}
	nodes, constants, err := lower.Nodes(w, a, extra)
	if err != nil {
		t.Fatal(err)
	}
	m := onnx.New()
	m.RequireIR(8)
	m.RequireOpset("", 18)
	m.RequireOpset(customop.Domain, 1)
	m.Graph.Name, m.Graph.Nodes, m.Graph.Initializers = "far", nodes, constants
	var names []string
	for name, x := range feeds {
		dims := make([]onnx.Dim, len(x.Dims))
		for i, n := range x.Dims {
			dims[i].Value = n
		}
		m.Graph.AddInput(onnx.NewValueInfo(name, x.Type, dims...))
		names = append(names, name)
	}
	m.Graph.AddOutput(onnx.NewValueInfo("output", onnx.Float, make([]onnx.Dim, 4)...))
	data, err := m.Marshal()
	if err != nil {
		t.Fatal(err)
	}
	session, err := eng.Load(context.Background(), engine.Model{Bytes: data, Inputs: names, Outputs: []string{"output"}, Library: true})
	if err != nil {
		t.Fatal(err)
	}
	defer session.Close()
	results, err := session.Run(context.Background(), feeds)
	if err != nil {
		t.Fatal(err)
	}
	return results["output"].Values()
}
