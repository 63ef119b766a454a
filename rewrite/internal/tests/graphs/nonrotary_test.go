package graphs_test

import (
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/rope-rewrite/rope-rewrite/internal/testruntime"
	"github.com/rope-rewrite/rope-rewrite/onnx"
	"github.com/rope-rewrite/rope-rewrite/rewrite"
	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/dim"
	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/graph"
	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/ir"
	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/measure"
	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/site"
	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/tests/kit"
)

// attend is a graph of one attention whose query goes through a change.
func attend(t *testing.T, change func(m *onnx.Model, add func(op string, inputs ...string) string) (query string)) *graph.Graph {
	t.Helper()
	m := onnx.New()
	m.RequireOpset("", 18)
	g := m.Graph
	dims := func(names ...string) (shape []onnx.Dim) {
		for _, n := range names {
			shape = append(shape, onnx.Dim{Param: n})
		}
		return shape
	}
	g.Inputs = []*onnx.ValueInfo{
		{Name: "hidden", Type: onnx.Float, HasShape: true, Shape: dims("b", "l", "h")},
		{Name: "cosines", Type: onnx.Float, HasShape: true, Shape: dims("l", "h")},
		{Name: "places", Type: onnx.Int64, HasShape: true, Shape: dims("b", "l")},
	}
	g.Outputs = []*onnx.ValueInfo{{Name: "out", Type: onnx.Float}}
	g.Initializers = []*onnx.Tensor{
		ir.Float32Tensor("weight", []int64{2, 2}, 1, 2, 3, 4), ir.Float32Tensor("table", []int64{3, 2}, 1, 2, 3, 4, 5, 6),
		ir.Float32Tensor("half", []int64{}, 0.5), ir.Int64Tensor("one", []int64{}, 1), ir.Int64Tensor("zero", []int64{}, 0),
	}
	count := 0
	add := func(op string, inputs ...string) string {
		count++
		g.Nodes = append(g.Nodes, onnx.NewNode(op, inputs, []string{fmt.Sprint("v", count)}))
		return fmt.Sprint("v", count)
	}
	key := add("Transpose", add("MatMul", "hidden", "weight"))
	value := add("MatMul", "hidden", "weight")
	query := change(m, add)
	g.Nodes = append(g.Nodes, onnx.NewNode("MatMul", []string{add("Softmax", add("MatMul", query, key)), value}, []string{"out"}))
	graph, err := graph.New(m)
	if err != nil {
		t.Fatal(err)
	}
	return graph
}

// TestStill: only what is the same for every position leaves an attention still.
func TestStill(t *testing.T) {
	type adder = func(string, ...string) string
	along := func(add adder) string { // 0 … length − 1, as numbers
		return add("Cast", add("Range", "zero", add("Gather", add("Shape", "hidden"), "one"), "one"))
	}
	for _, c := range []struct {
		name   string
		still  bool
		change func(add adder, q string) string
	}{
		{"nothing", true, func(add adder, q string) string { return q }},
		{"a scale", true, func(add adder, q string) string { return add("Mul", q, "half") }},
		{"a scale from the head's size", true, func(add adder, q string) string {
			return add("Div", q, add("Sqrt", add("Cast", add("Gather", add("Shape", q), "one"))))
		}},
		{"a norm", true, func(add adder, q string) string {
			return add("Mul", q, add("Reciprocal", add("Sqrt", add("ReduceMean", add("Mul", q, q)))))
		}},
		{"quantised for weights", true, func(add adder, q string) string {
			return add("Mul", add("MatMul", add("DynamicQuantizeLinear", "hidden"), "weight"), "half")
		}},
		{"quantised after a table", false, func(add adder, q string) string {
			return add("DynamicQuantizeLinear", add("Mul", q, add("Gather", "table", "places")))
		}},
		{"a constant table", false, func(add adder, q string) string { return add("Mul", q, "table") }},
		{"cosines of a constant table", false, func(add adder, q string) string { return add("Mul", q, add("Cos", "table")) }},
		{"rows of a table", false, func(add adder, q string) string { return add("Mul", q, add("Gather", "table", "places")) }},
		{"a table added", false, func(add adder, q string) string { return add("Add", q, add("Gather", "table", "places")) }},
		{"cosines of a count", false, func(add adder, q string) string { return add("Mul", q, add("Cos", along(add))) }},
		{"a count", false, func(add adder, q string) string { return add("Mul", q, along(add)) }},
		{"a graph input", false, func(add adder, q string) string { return add("Mul", q, "cosines") }},
		{"a turned graph input", false, func(add adder, q string) string { return add("Mul", q, add("Cos", "cosines")) }},
		{"rows of a graph input", false, func(add adder, q string) string { return add("Mul", q, add("Gather", "cosines", "places")) }},
		{"rows of a graph input, twice each", false, func(add adder, q string) string {
			rows := add("Gather", "cosines", "places")
			return add("Mul", q, add("Unsqueeze", add("Concat", rows, rows), "one"))
		}},
		{"picked rows of a cache", true, func(add adder, q string) string {
			return add("Mul", add("Concat", add("Gather", "cosines", "places"), q), "half")
		}},
		{"a rotation op", false, func(add adder, q string) string { return add("RotaryEmbedding", q, "places", "table", "table") }},
	} {
		t.Run(c.name, func(t *testing.T) {
			g := attend(t, func(_ *onnx.Model, add func(string, ...string) string) string {
				return c.change(add, add("MatMul", "hidden", "weight"))
			})
			found := site.Find(g)
			if len(found) != 1 || found[0].Core == nil {
				t.Fatalf("%d candidates: %+v", len(found), found)
			}
			if got := site.PositionIndependent(g, *found[0].Core); got != c.still {
				t.Errorf("still is %v, %v was expected", got, c.still)
			}
		})
	}
}

// TestWeightedAttention: attention that multiplies by its own weights cannot be
// turned by anything but itself, which no CPU runs.
func TestWeightedAttention(t *testing.T) {
	testruntime.Require(t)
	for _, c := range []struct {
		name, op string
		attrs    []*onnx.Attribute
		none     string
		kept     string
	}{
		{name: "fused by ONNX Runtime", op: "Attention", none: "its 1 attention layers rotate neither query nor key, its positions are learned (a table of 40 rows"},
		{name: "rotary", op: "Attention", attrs: []*onnx.Attribute{onnx.IntAttr("do_rotary", 1)}, kept: "does not run on the CPU"},
		{name: "quantised and rotary", op: "QAttention", attrs: []*onnx.Attribute{onnx.IntAttr("do_rotary", 1)}, kept: "silently ignores on the CPU"},
		{name: "blocks", op: "SparseAttention", kept: "only if past and present keys are one buffer"},
		{name: "beam search", op: "DecoderMaskedMultiHeadAttention", kept: "takes only one token per call"},
		{name: "pages", op: "PagedAttention", kept: "does not run PagedAttention on the CPU"},
		{name: "packed query, key and value", op: "PackedMultiHeadAttention", kept: "does not run PackedMultiHeadAttention on the CPU"},
	} {
		m := onnx.New()
		m.RequireIR(8)
		m.RequireOpset("", 17)
		m.RequireOpset("com.microsoft", 1)
		g := m.Graph
		shape := []onnx.Dim{{Param: "b"}, {Param: "l"}}
		g.Inputs = []*onnx.ValueInfo{onnx.NewValueInfo("ids", onnx.Int64, shape...), onnx.NewValueInfo("places", onnx.Int64, shape...)}
		g.Outputs = []*onnx.ValueInfo{{Name: "out", Type: onnx.Float}}
		rng := rand.New(rand.NewPCG(1, 1))
		random := func(name string, dims ...int64) {
			values := make([]float32, dims[0]*dims[1])
			for i := range values {
				values[i] = float32(rng.NormFloat64())
			}
			g.Initializers = append(g.Initializers, ir.Float32Tensor(name, dims, values...))
		}
		random("tokens", 50, 8)
		random("positions", 40, 8)
		random("weights", 8, 24)
		attention := onnx.NewNode(c.op, []string{"hidden", "weights", ""}, []string{"out"}, append(c.attrs, onnx.IntAttr("num_heads", 2))...)
		attention.Domain = "com.microsoft"
		g.Nodes = []*onnx.Node{
			onnx.NewNode("Gather", []string{"tokens", "ids"}, []string{"token"}), onnx.NewNode("Gather", []string{"positions", "places"}, []string{"position"}),
			onnx.NewNode("Add", []string{"token", "position"}, []string{"hidden"}), attention,
		}
		report, err := kit.Rewrite(t.Context(), m, rewrite.Options{AllowUnchanged: true})
		switch {
		case c.none != "" && (!errors.Is(err, rewrite.ErrNoAttention) || !strings.Contains(err.Error(), c.none)):
			t.Errorf("%s: error %v lacks %q", c.name, err, c.none)
		case c.kept != "" && (err != nil || len(report.Sites) != 1 || !strings.Contains(report.Sites[0].Reason, c.kept)):
			t.Errorf("%s: error %v, sites %+v lack %q", c.name, err, report.Sites, c.kept)
		}
	}
}

// TestNameBias: biases are named by their values.
func TestNameBias(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	table := make([]float64, 100)
	for i := range table {
		table[i] = rng.NormFloat64()
	}
	hidden := math.Inf(-1)
	for _, c := range []struct {
		want string
		bias func(h, i, j int) float64
	}{
		{"", func(h, i, j int) float64 { return 0 }},
		{"", func(h, i, j int) float64 { return float64(i) }}, // one constant per query
		{"", func(h, i, j int) float64 { return []float64{0, hidden}[dim.OneIf(j > i)] }},
		{"ALiBi", func(h, i, j int) float64 { return float64(j-i) / float64(int(2)<<h) }},
		{"ALiBi", func(h, i, j int) float64 { return float64(j) / float64(int(2)<<h) }}, // the same to a softmax
		{"relative biases on the scores, a table of 17 distances or more", func(h, i, j int) float64 { return table[min(j-i+20, 40-h)] }},
		{"of an unknown kind", func(h, i, j int) float64 { return table[(7*i+3*j+h)%100] }},
		{"of an unknown kind", func(h, i, j int) float64 { return table[j] }},
	} {
		var values []float64
		for h := range 2 {
			for i := range 9 {
				for j := range 9 {
					values = append(values, c.bias(h, i, j))
				}
			}
		}
		if got := measure.NameBias(values, 9, 9); !strings.Contains(got, c.want) || (got == "") != (c.want == "") {
			t.Errorf("%q was expected, it is %q", c.want, got)
		}
	}
}

// TestSinusoidal tells a table of sines from a learned one.
func TestSinusoidal(t *testing.T) {
	var sines, learned []float32
	rng := rand.New(rand.NewPCG(3, 4))
	for p := range 50 {
		for c := range 8 {
			angle := float64(p) * math.Pow(10000, -float64(c/2)/4)
			sines = append(sines, float32(3*math.Sin(angle+math.Pi/2*float64(c%2))))
			learned = append(learned, float32(rng.NormFloat64()))
		}
	}
	if !measure.Sinusoidal(ir.Float32Tensor("t", []int64{50, 8}, sines...)) {
		t.Error("a table of sines is taken for a learned one")
	}
	if measure.Sinusoidal(ir.Float32Tensor("t", []int64{50, 8}, learned...)) {
		t.Error("a learned table is taken for sines")
	}
	sines[203] += 0.1
	if measure.Sinusoidal(ir.Float32Tensor("t", []int64{50, 8}, sines...)) {
		t.Error("a table with one wrong entry is taken for sines")
	}
}
