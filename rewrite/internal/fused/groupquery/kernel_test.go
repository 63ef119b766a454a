package groupquery

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"testing"

	"pgregory.net/rapid"

	"github.com/rope-rewrite/rope-rewrite/internal/engine"
	"github.com/rope-rewrite/rope-rewrite/internal/testruntime"
	"github.com/rope-rewrite/rope-rewrite/onnx"
	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/fused"
)

func TestMain(m *testing.M) {
	testruntime.Examples()
	os.Exit(m.Run())
}

// call is one call of the op: row b holds tokens[b] tokens after it.
type call struct {
	length, capacity, total int64
	tokens                  []int64
}

func (c call) past(b int) int64 {
	if c.length == c.total {
		return 0
	}
	return c.tokens[b] - c.length
}

func drawCall(t *rapid.T) call {
	batch := rapid.IntRange(1, 3).Draw(t, "batch")
	rows := func(least, most int64) []int64 {
		out := make([]int64, batch)
		for b := range out {
			out[b] = rapid.Int64Range(least, most).Draw(t, "tokens")
		}
		out[rapid.IntRange(0, batch-1).Draw(t, "longest")] = most
		return out
	}
	var c call
	spare := rapid.SampledFrom([]int64{0, 0, 9}).Draw(t, "spare")
	switch rapid.SampledFrom([]string{"prompt", "decode", "chunk"}).Draw(t, "kind") {
	case "prompt":
		c.length = rapid.Int64Range(1, 9).Draw(t, "length")
		c.total, c.tokens = c.length, rows(1, c.length)
		c.capacity = 0
		if spare > 0 {
			c.capacity = c.total + spare
		}
	case "decode":
		c.length, c.total = 1, rapid.Int64Range(2, 40).Draw(t, "total")
		c.tokens, c.capacity = rows(1, c.total), c.total-1+spare
	default:
		batch = 1
		c.length = rapid.Int64Range(2, 9).Draw(t, "length")
		past := rapid.Int64Range(1, 31).Draw(t, "past")
		c.total, c.tokens, c.capacity = past+c.length, []int64{past + c.length}, past+spare
		if spare > 0 {
			c.capacity += c.length
		}
	}
	return c
}

// site is a node and the shapes around it.
type site struct {
	node            *onnx.Node
	width, headSize int64
	heads, kvHeads  int64
	rotary          int64
}

const tableRows = 40

func drawSite(t *rapid.T) site {
	kv := rapid.Int64Range(1, 3).Draw(t, "kv heads")
	s := site{headSize: 16 * rapid.Int64Range(1, 2).Draw(t, "head size / 16")}
	heads := kv * rapid.Int64Range(1, 3).Draw(t, "group")
	inputs := []string{"query", "key", "value", "past_key", "past_value", "seqlens_k", "total_sequence_length", "cos", "sin"}
	width := heads * s.headSize
	if rapid.Bool().Draw(t, "packed") {
		inputs[1], inputs[2], width = "", "", (heads+2*kv)*s.headSize
	}
	attrs := []*onnx.Attribute{onnx.IntAttr("num_heads", heads), onnx.IntAttr("kv_num_heads", kv)}
	if rapid.Bool().Draw(t, "do_rotary") {
		s.rotary = s.headSize / rapid.SampledFrom([]int64{1, s.headSize / 16}).Draw(t, "partial")
		attrs = append(attrs, onnx.IntAttr("do_rotary", 1), onnx.IntAttr("rotary_interleaved", rapid.Int64Range(0, 1).Draw(t, "interleaved")))
	} else {
		inputs = inputs[:7]
	}
	switch rapid.SampledFrom([]string{"", "", "head_sink", "smooth_softmax"}).Draw(t, "sinks") {
	case "head_sink":
		for len(inputs) < 11 {
			inputs = append(inputs, "")
		}
		inputs = append(inputs, "sink")
	case "smooth_softmax":
		attrs = append(attrs, onnx.IntAttr("smooth_softmax", 1))
	}
	attrs = append(attrs,
		onnx.IntAttr("local_window_size", rapid.SampledFrom([]int64{-1, 1, 3, 7}).Draw(t, "window")),
		onnx.FloatAttr("softcap", rapid.SampledFrom([]float32{0, 0, 2.5}).Draw(t, "softcap")),
		onnx.FloatAttr("scale", rapid.SampledFrom([]float32{0, 0.3}).Draw(t, "scale")))
	s.node = onnx.NewNode("GroupQueryAttention", inputs, []string{"output", "present_key", "present_value"}, attrs...)
	s.node.Domain = "com.microsoft"
	s.width, s.heads, s.kvHeads = width, heads, kv
	return s
}

// context answers as a graph of float64 hidden states would.
func (s site) context() fused.Context {
	return fused.Context{
		Type:  func(string) onnx.DataType { return onnx.Double },
		Width: func(name string) (int64, bool) { return s.width, name == "query" },
		Constant: func(name string) *onnx.Tensor {
			if name == "cos" || name == "sin" {
				return onnx.NewTensor(name, onnx.Float, []int64{tableRows, s.rotary / 2}, make([]byte, 2*tableRows*s.rotary))
			}
			return nil
		},
	}
}

// feeds are standard normal but for the tables.
func (s site) feeds(c call, seed uint64) map[string]engine.Tensor {
	rng := rand.New(rand.NewPCG(seed, 1))
	random := func(dims ...int64) engine.Tensor {
		x := make([]float32, engine.Elements(dims))
		for i := range x {
			x[i] = float32(rng.NormFloat64())
		}
		return engine.Float32s(x, dims...)
	}
	int32s := func(v ...int64) engine.Tensor {
		t, _ := engine.Integers(onnx.Int32, v, int64(len(v)))
		return t
	}
	batch := int64(len(c.tokens))
	f := map[string]engine.Tensor{
		"past_key":              random(batch, s.kvHeads, c.capacity, s.headSize),
		"past_value":            random(batch, s.kvHeads, c.capacity, s.headSize),
		"total_sequence_length": int32s(c.total),
	}
	if s.node.Inputs[1] == "" {
		f["query"] = random(batch, c.length, (s.heads+2*s.kvHeads)*s.headSize)
	} else {
		f["query"] = random(batch, c.length, s.heads*s.headSize)
		f["key"], f["value"] = random(batch, c.length, s.kvHeads*s.headSize), random(batch, c.length, s.kvHeads*s.headSize)
	}
	if s.node.Inputs[len(s.node.Inputs)-1] == "sink" {
		f["sink"] = random(s.heads)
	}
	last := make([]int64, batch)
	for b, n := range c.tokens {
		last[b] = n - 1
	}
	f["seqlens_k"] = int32s(last...)
	if s.rotary > 0 {
		cos, sin := make([]float32, tableRows*s.rotary/2), make([]float32, tableRows*s.rotary/2)
		for i := range cos {
			position, pair := i/int(s.rotary/2), i%int(s.rotary/2)
			si, co := math.Sincos(float64(position) * math.Pow(100, -float64(pair)*2/float64(s.rotary)))
			cos[i], sin[i] = float32(co), float32(si)
		}
		f["cos"], f["sin"] = engine.Float32s(cos, tableRows, s.rotary/2), engine.Float32s(sin, tableRows, s.rotary/2)
	}
	return f
}

// evaluate runs nodes on feeds, whose floats become elem.
func evaluate(t testruntime.TB, elem onnx.DataType, nodes []*onnx.Node, constants []*onnx.Tensor, feeds map[string]engine.Tensor) map[string]engine.Tensor {
	t.Helper()
	m := onnx.New()
	m.RequireIR(10)
	m.RequireOpset("", 21)
	m.RequireOpset("com.microsoft", 1)
	m.Graph.Name = "test"
	m.Graph.Nodes, m.Graph.Initializers = nodes, constants
	var inputs []string
	typed := map[string]engine.Tensor{}
	for name, f := range feeds {
		if f.Type == onnx.Float && elem == onnx.Double {
			f = engine.Float64s(f.Values(), f.Dims...)
		}
		typed[name] = f
		inputs = append(inputs, name)
		m.Graph.Inputs = append(m.Graph.Inputs, &onnx.ValueInfo{Name: name, Type: f.Type})
	}
	outputs := []string{"output", "present_key", "present_value"}
	for _, name := range outputs {
		m.Graph.Outputs = append(m.Graph.Outputs, &onnx.ValueInfo{Name: name})
	}
	data, err := m.Marshal()
	if err != nil {
		t.Fatal(err)
	}
	eng, err := engine.NewLocal(engine.Config{Threads: 1})
	if err != nil {
		t.Fatal(err)
	}
	session, err := eng.Load(context.Background(), engine.Model{Bytes: data, Inputs: inputs, Outputs: outputs})
	if err != nil {
		t.Fatal(err)
	}
	defer session.Close()
	out, err := session.Run(context.Background(), typed)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// worst compares what carries meaning: the outputs of real tokens, and the
// rows of the present that hold tokens.
func (s site) worst(c call, got, want map[string]engine.Tensor) (float64, error) {
	worst := 0.0
	for _, name := range []string{"output", "present_key", "present_value"} {
		g, w := got[name], want[name]
		if fmt.Sprint(g.Dims) != fmt.Sprint(w.Dims) {
			return 0, fmt.Errorf("%s has the shape %v, %v was expected", name, g.Dims, w.Dims)
		}
		x, y := g.Values(), w.Values()
		for i := range x {
			at := int64(i) / w.Dims[len(w.Dims)-1]
			row := at % w.Dims[len(w.Dims)-2]
			b := int(at / w.Dims[len(w.Dims)-2])
			if name == "output" {
				row += c.past(b)
			} else {
				b /= int(s.kvHeads)
			}
			if row >= c.tokens[b] {
				continue
			}
			if d := math.Abs(x[i] - y[i]); d > worst || math.IsNaN(d) {
				worst = d
			}
		}
	}
	return worst, nil
}

// The written definition in float64 against ONNX Runtime's kernel, and the
// short form for rows without padding against the definition.
func TestAgainstKernel(t *testing.T) {
	testruntime.Require(t)
	rapid.Check(t, func(t *rapid.T) {
		s, c := drawSite(t), drawCall(t)
		feeds := s.feeds(c, rapid.Uint64().Draw(t, "seed"))
		kernel := evaluate(t, onnx.Float, []*onnx.Node{s.node}, nil, feeds)
		definition, err := Adapter().Define(s.node, s.context())
		if err != nil {
			t.Fatal(err)
		}
		written := evaluate(t, onnx.Double, definition.Nodes, definition.Constants, feeds)
		if d, err := s.worst(c, kernel, written); err != nil || !(d < 2e-6) {
			t.Fatalf("%v: the definition differs from the kernel by %g (%v)", c, d, err)
		}
		expansion, err := Adapter().Expand(s.node, s.context())
		if err != nil {
			t.Fatal(err)
		}
		plain := true
		for i, n := range c.tokens {
			plain = plain && n == c.total && c.capacity == c.past(i)
		}
		if !plain {
			return
		}
		short := map[string]engine.Tensor{}
		for name, f := range feeds {
			if name != "seqlens_k" && name != "total_sequence_length" {
				short[name] = f
			}
		}
		if d, err := s.worst(c, evaluate(t, onnx.Double, expansion.Nodes, expansion.Constants, short), written); err != nil || !(d < 1e-13) {
			t.Fatalf("%v: the short form differs from the definition by %g (%v)", c, d, err)
		}
	})
}
