package customop_test

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/rope-rewrite/rope-rewrite/customop"
	"github.com/rope-rewrite/rope-rewrite/internal/testruntime"
	"github.com/rope-rewrite/rope-rewrite/internal/testsample"
	"github.com/rope-rewrite/rope-rewrite/onnx"
	"github.com/rope-rewrite/rope-rewrite/rope"
	"github.com/rope-rewrite/rope-rewrite/rope/ref"
)

// fixed is one call with a cache of fixed capacity. Each row is a problem of its
// own, of batch 1 and with its own past; what they share are attention, length,
// value size, and whether there are positions and a mask.
type fixed struct {
	rows     []ref.Problem
	capacity int
	total    int // total_length; 0 means that the node has no such input
	wider    int // columns of attention_mask that no row reaches
}

// fixedRows are rows of one shape with these pasts.
func fixedRows(p ref.Problem, pasts ...int) []ref.Problem {
	var rows []ref.Problem
	for _, past := range pasts {
		row := p
		row.Batch, row.Past = 1, past
		rows = append(rows, row)
	}
	return rows
}

// fill gives every row random tensors.
func (f fixed) fill(seed uint64) fixed {
	f.rows = slices.Clone(f.rows)
	for b, p := range f.rows {
		f.rows[b] = filled(p, seed*100+uint64(b))
	}
	return f
}

func (f fixed) maxPast() int {
	return slices.MaxFunc(f.rows, func(a, b ref.Problem) int { return a.Past - b.Past }).Past
}

func (f fixed) presentRows() int { return max(f.capacity, f.total) }

func (f fixed) node(t tester) *onnx.Node {
	t.Helper()
	p := f.rows[0]
	p.Past = 1 // so that the node has a past whatever this row's
	node := nodeOf(t, p)
	for len(node.Inputs) < 13 {
		node.Inputs = append(node.Inputs, "")
	}
	node.Inputs[8] = "cache_length"
	if f.total > 0 {
		node.Inputs[12] = "total_length"
	}
	for node.Inputs[len(node.Inputs)-1] == "" {
		node.Inputs = node.Inputs[:len(node.Inputs)-1]
	}
	node.SetAttribute(onnx.IntAttr("spec_version", customop.SpecVersion))
	return node
}

// feeds stacks the rows. What stands in the buffers behind the tokens is NaN,
// and what stands in the mask behind them is random: neither may matter.
func (f fixed) feeds(flat bool) feeds {
	r := rand.New(rand.NewPCG(1, 2))
	in := feeds{}
	stack := func(name string, x tensor) {
		if _, ok := in[name]; !ok {
			in[name] = tensor{dims: slices.Clone(x.dims), typ: x.typ}
			in[name].dims[0] = 0
		}
		all := in[name]
		all.dims[0]++
		all.floats = append(all.floats, x.floats...)
		all.integers = append(all.integers, x.integers...)
		in[name] = all
	}
	var lengths []int64
	width := f.maxPast() + f.rows[0].Length + f.wider
	for _, p := range f.rows {
		lengths = append(lengths, int64(p.Past))
		row := feedsOf(p, flat)
		for _, name := range []string{"query", "key", "value", "position_ids"} {
			if x, ok := row[name]; ok {
				stack(name, x)
			}
		}
		stack("past_key", roomy(p.PastKey, p.Attention.KVHeads, p.Past, f.capacity, p.Attention.HeadSize))
		stack("past_value", roomy(p.PastValue, p.Attention.KVHeads, p.Past, f.capacity, p.ValueSize))
		if mask, ok := row["attention_mask"]; ok {
			for len(mask.integers) < width {
				mask.integers = append(mask.integers, r.Int64N(2))
			}
			stack("attention_mask", integers(mask.integers, 1, int64(width)))
		}
		if ids, ok := row["document_ids"]; ok {
			for len(ids.integers) < width {
				ids.integers = append(ids.integers, r.Int64N(9)-6)
			}
			stack("document_ids", integers(ids.integers, 1, int64(width)))
		}
		for _, name := range []string{"attention_bias", "bias_before_softcap"} {
			if bias, ok := row[name]; ok {
				stack(name, widened(bias, width))
			}
		}
		if sinks, ok := row["sink_logits"]; ok {
			in["sink_logits"] = sinks
		}
	}
	in["cache_length"] = integers32(lengths, int64(len(lengths)))
	if f.total > 0 {
		in["total_length"] = integers32([]int64{int64(f.total)}, 1)
	}
	return in
}

// widened puts NaN behind the rows of a bias [1, heads, length, total].
func widened(bias tensor, width int) tensor {
	total := int(bias.dims[3])
	wide := floats(nil, bias.dims[0], bias.dims[1], bias.dims[2], int64(width))
	for i := 0; i < len(bias.floats); i += total {
		wide.floats = append(wide.floats, bias.floats[i:i+total]...)
		for range width - total {
			wide.floats = append(wide.floats, float32(math.NaN()))
		}
	}
	return wide
}

// roomy puts [heads, past, size] into a buffer [1, heads, capacity, size] of NaN.
func roomy(values []float64, heads, past, capacity, size int) tensor {
	buffer := floats(make([]float32, heads*capacity*size), 1, int64(heads), int64(capacity), int64(size))
	for i := range buffer.floats {
		buffer.floats[i] = float32(math.NaN())
	}
	for h := range heads {
		copy(buffer.floats[h*capacity*size:], float32s(values[h*past*size:][:past*size]))
	}
	return buffer
}

// row is one batch row of a tensor.
func (x tensor) row(b int) tensor {
	size := len(x.floats) / int(x.dims[0])
	return floats(x.floats[b*size:][:size], append([]int64{1}, x.dims[1:]...)...)
}

// judgeRows adds the outputs of one call to a judge, row by row, and checks
// the rows behind the tokens with `rest`.
func (f fixed) judgeRows(t tester, j *judge, flat bool, got map[string]tensor, solutions [][2]ref.Result, rest func(float32) bool) {
	t.Helper()
	present := int64(f.presentRows())
	for b, p := range f.rows {
		row := map[string]tensor{"output": got["output"].row(b), "log_sum_exp": got["log_sum_exp"].row(b)}
		for _, name := range []string{"present_key", "present_value"} {
			x := got[name].row(b)
			if x.dims[2] != present {
				t.Fatalf("%s has shape %v, want %d rows", name, got[name].dims, present)
			}
			total, size := p.Past+p.Length, int(x.dims[3])
			for _, v := range rows(x.floats, int(present), size, total, int(present)) {
				if !rest(v) {
					t.Fatalf("%s of row %d holds %g behind its %d tokens", name, b, v, total)
				}
			}
			row[name] = floats(rows(x.floats, int(present), size, 0, total), 1, x.dims[1], int64(total), x.dims[3])
		}
		j.against(t, p, flat, row, solutions[b][0], solutions[b][1])
	}
}

// solved is the solution of each row, and that of a plain implementation.
func (f fixed) solved(t tester) (list [][2]ref.Result) {
	t.Helper()
	for _, p := range f.rows {
		want, plain := solved(t, p)
		list = append(list, [2]ref.Result{want, plain})
	}
	return list
}

func isZero(v float32) bool { return v == 0 }
func isNaN(v float32) bool  { return math.IsNaN(float64(v)) }

func (f fixed) settle(t tester, flat bool) {
	t.Helper()
	in := f.fill(0).feeds(flat)
	settled(t, 1+4096/max(1, len(in["query"].floats)), flat, func() *onnx.Node { return f.node(t) }, nil, typesOf(in), func(seed uint64, run func(feeds, func(*judge, string, map[string]tensor))) {
		f := f.fill(seed)
		solutions := f.solved(t)
		run(f.feeds(flat), func(j *judge, way string, got map[string]tensor) {
			rest := isZero
			if way != byLibrary { // a body copies what stood there
				rest = func(float32) bool { return true }
			}
			f.judgeRows(t, j, flat, got, solutions, rest)
		})
	})
}

func TestFixedCacheAgainstReference(t *testing.T) {
	const last = 131071
	llama := attention(4, 2, 64)
	banded := with(llama, func(a *rope.Attention) { a.Bands = stringBands(40, 9) })
	windowed := with(llama, func(a *rope.Attention) { a.Mask.Window = 7 })
	both := with(llama, func(a *rope.Attention) { a.Mask.Causal = false })
	decode, chunk := problem(llama, 1, 1, 0), problem(llama, 1, 29, 0)
	odd := problem(attention(9, 3, 10), 1, 5, 0)
	odd.ValueSize = 23
	holed := func(rows []ref.Problem) []ref.Problem {
		for b, p := range rows {
			rows[b] = holes(p, uint64(b))
		}
		return rows
	}
	far := fixedRows(chunk, 40, 7)
	far[0], far[1] = from(far[0], last-28), from(far[1], 60000)
	paddedRows := func(rows []ref.Problem, padding ...int) []ref.Problem {
		for b, p := range rows {
			rows[b] = leftPadded(p, padding[b])
		}
		return rows
	}
	padded := paddedRows(fixedRows(problem(banded, 1, 3, 0), 90, 31), 13, 0)
	streaming := problem(with(windowed, func(a *rope.Attention) { a.Mask.FirstKeys = 4 }), 1, 29, 0)
	documented := func(rows []ref.Problem) []ref.Problem {
		for b, p := range rows {
			p.Bias = biases(p, uint64(b), 6)
			rows[b] = scattered(p, uint64(b), 9, -1, 0, 1, 2)
		}
		return rows
	}
	rules := with(llama, func(a *rope.Attention) {
		a.Mask = rope.Mask{Causal: true, Documents: rope.AnchorDocument, Restart: true, Start: 1}
		a.Sinks, a.Softcap = []float64{1, 2, 3, 4}, 5
	})
	for name, f := range testsample.OfMap(t, map[string]fixed{
		"documents":          {rows: documented(fixedRows(problem(rules, 1, 29, 0), 50, 3, 0)), capacity: 80},
		"documents, decode":  {rows: documented(fixedRows(problem(rules, 1, 1, 0), 50, 600)), capacity: 640, wider: 9},
		"first keys":         {rows: fixedRows(streaming, 90, 3), capacity: 131},
		"first keys, padded": {rows: paddedRows(fixedRows(streaming, 90, 60, 3), 13, 70, 0), capacity: 131},
		"first keys, holes":  {rows: holed(fixedRows(streaming, 90, 3, 50)), capacity: 131, wider: 7},
		"decode":             {rows: fixedRows(decode, 301, 0, 17), capacity: 400},
		"one row":            {rows: fixedRows(decode, 33), capacity: 64},
		"long decode":        {rows: fixedRows(decode, 4097, 600), capacity: 5000},
		"equal rows":         {rows: fixedRows(decode, 33, 33), capacity: 64},
		"empty":              {rows: fixedRows(chunk, 0, 0), capacity: 64},
		"full":               {rows: fixedRows(chunk, 71, 40), capacity: 100},
		"full decode":        {rows: fixedRows(decode, 99), capacity: 100},
		"chunk":              {rows: fixedRows(chunk, 50, 3, 128), capacity: 200},
		"long chunk":         {rows: fixedRows(problem(llama, 1, 300, 0), 50, 300), capacity: 601},
		"total":              {rows: fixedRows(chunk, 50, 3), capacity: 60, total: 79},
		"total below":        {rows: fixedRows(decode, 50, 3), capacity: 60, total: 51},
		"both ways":          {rows: fixedRows(problem(both, 1, 29, 0), 50, 3, 0), capacity: 80},
		"bands":              {rows: fixedRows(problem(banded, 1, 29, 0), 90, 3, 45), capacity: 131},
		"bands decode":       {rows: fixedRows(problem(banded, 1, 1, 0), 90, 3, 45), capacity: 131},
		"window":             {rows: fixedRows(problem(windowed, 1, 29, 0), 90, 3), capacity: 131},
		"window decode":      {rows: fixedRows(problem(windowed, 1, 1, 0), 90, 3), capacity: 131},
		"far":                {rows: far, capacity: 70},
		"left padding":       {rows: padded, capacity: 93, wider: 5},
		"mask, as wide":      {rows: holed(fixedRows(chunk, 50, 3, 0)), capacity: 80},
		"mask, wide":         {rows: holed(fixedRows(decode, 50, 3, 0)), capacity: 80, wider: 1},
		"mask over capacity": {rows: holed(fixedRows(chunk, 50, 3, 0)), capacity: 80, wider: 77},
		"odd sizes":          {rows: fixedRows(odd, 11, 2), capacity: 19},
	}, 9) {
		t.Run(name, func(t *testing.T) {
			f.settle(t, false)
			f.settle(t, true)
		})
	}
}

func TestFixedCacheAnywhere(t *testing.T) {
	testruntime.Require(t)
	rapid.Check(t, func(t *rapid.T) {
		p := drawn(t)
		if rapid.Bool().Draw(t, "raw") {
			p = rawly(t, p)
		}
		p.Positions, p.KeyMask = nil, nil
		documents, bias, before := p.Documents != nil, p.Bias != nil, p.BiasBeforeSoftcap != nil
		p.Documents, p.Bias, p.BiasBeforeSoftcap = nil, nil, nil
		f := fixed{wider: rapid.IntRange(0, 9).Draw(t, "wider")}
		masked, placed := rapid.Bool().Draw(t, "masked"), rapid.Bool().Draw(t, "placed")
		for range rapid.IntRange(1, 3).Draw(t, "rows") {
			row := fixedRows(p, rapid.IntRange(0, 70).Draw(t, "row past"))[0]
			if placed {
				row = from(row, rapid.Int64Range(0, 131000).Draw(t, "first"))
			}
			if masked {
				row = holes(row, rapid.Uint64().Draw(t, "mask seed"))
			}
			if documents {
				row = scattered(row, rapid.Uint64().Draw(t, "document seed"), 5, -1, 0, 1, 2)
			}
			if bias {
				row.Bias = biases(row, rapid.Uint64().Draw(t, "bias seed"), 5)
			}
			if before {
				row.BiasBeforeSoftcap = biases(row, rapid.Uint64().Draw(t, "bias seed"), 5)
			}
			f.rows = append(f.rows, row)
		}
		f.capacity = f.maxPast() + p.Length + rapid.IntRange(0, 9).Draw(t, "room")
		if rapid.Bool().Draw(t, "total length") {
			f.total = f.maxPast() + p.Length + rapid.IntRange(0, 20).Draw(t, "total")
			f.capacity = rapid.IntRange(f.maxPast(), f.capacity).Draw(t, "capacity")
			f.total = max(f.total, 1)
		}
		f.settle(t, rapid.Bool().Draw(t, "flat"))
	})
}
