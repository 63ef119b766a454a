package customop_test

import (
	"encoding/json"
	"math/rand/v2"
	"os"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/rope-rewrite/rope-rewrite/customop"
	"github.com/rope-rewrite/rope-rewrite/internal/testsample"
	"github.com/rope-rewrite/rope-rewrite/onnx"
	"github.com/rope-rewrite/rope-rewrite/rope"
	"github.com/rope-rewrite/rope-rewrite/rope/ref"
)

// rotation is one call of Rotary: how, and the shapes of query and key (nil: no key).
type rotation struct {
	rope.Rotary
	query, key []int
}

// turning is a rotation of tensors [batch, length, heads, size] in another format.
func turning(format string, batch, length, queryHeads, keyHeads, size int, change ...func(*rotation)) rotation {
	shape := func(heads int) []int {
		switch format {
		case "sbhd":
			return []int{length, batch, heads, size}
		case "bhsd":
			return []int{batch, heads, length, size}
		case "thd":
			return []int{batch * length, heads, size}
		}
		return []int{batch, length, heads, size}
	}
	r := rotation{Rotary: rope.Rotary{TensorFormat: format}, query: shape(queryHeads)}
	r.Encoding.Frequencies = attention(1, 1, size).Encoding.Frequencies
	if keyHeads > 0 {
		r.key = shape(keyHeads)
	}
	if format == "thd" {
		r.CuSeqlens = []int32{0, 0, int32(batch*length) / 3, int32(batch * length)}
	}
	for _, c := range change {
		c(&r)
	}
	return r
}

func float32List(values []float64) (list []float32) {
	for _, v := range values {
		list = append(list, float32(v))
	}
	return list
}

func int64List[N int | int32](values []N) (list []int64) {
	for _, v := range values {
		list = append(list, int64(v))
	}
	return list
}

// op is the node's values.
func (r rotation) op() customop.Rotary {
	e := r.Encoding
	op := customop.Rotary{
		Query: "query", RotatedQuery: "rotated_query", TensorFormat: r.TensorFormat,
		Frequencies: float32List(e.Frequencies), Gain: float32(e.Gain), RotaryOffset: int64(e.Offset),
		PositionAxes:  int64List(e.Axes),
		TrainedLength: e.LengthDependent.Trained, LongFrequencies: float32List(e.LengthDependent.Long), DynamicNtk: float32(e.LengthDependent.NTK),
	}
	for flag, to := range map[*int64]bool{&op.Interleaved: e.Layout == rope.Interleaved, &op.Inverse: r.Inverse, &op.ExactAngles: e.ExactAngles, &op.DynamicLinear: e.LengthDependent.Linear} {
		if to {
			*flag = 1
		}
	}
	for name, given := range map[*string]bool{&op.Key: r.key != nil, &op.PositionIDs: r.PositionIDs != nil, &op.CuSeqlens: r.CuSeqlens != nil, &op.SeqlenOffsets: r.SeqlenOffsets != nil, &op.MaxSeqlen: r.MaxSeqlen > 0} {
		if given {
			*name = map[*string]string{&op.Key: "key", &op.PositionIDs: "position_ids", &op.CuSeqlens: "cu_seqlens", &op.SeqlenOffsets: "seqlen_offsets", &op.MaxSeqlen: "max_seqlen"}[name]
		}
	}
	if r.key != nil {
		op.RotatedKey = "rotated_key"
	}
	return op
}

func (r rotation) node(t tester) *onnx.Node {
	t.Helper()
	n, err := r.op().Node("rotary 3")
	if err != nil {
		t.Fatal(err)
	}
	return toONNX(n)
}

// numbers are drawn tensors, query and key.
func (r rotation) numbers(seed uint64) [2][]float64 {
	random := rand.New(rand.NewPCG(seed, 5))
	draw := func(shape []int) []float64 {
		if shape == nil {
			return nil
		}
		list := make([]float64, product(int64List(shape)))
		for i := range list {
			list[i] = float64(float32(random.NormFloat64()))
		}
		return list
	}
	return [2][]float64{draw(r.query), draw(r.key)}
}

func (r rotation) feeds(x [2][]float64) feeds {
	in := feeds{"query": floats(float32List(x[0]), int64List(r.query)...)}
	if r.key != nil {
		in["key"] = floats(float32List(x[1]), int64List(r.key)...)
	}
	if r.PositionIDs != nil {
		length, _ := r.tokens()
		dims := []int64{int64(len(r.PositionIDs)) / length, length}
		if r.TensorFormat == "thd" {
			dims = dims[1:]
		}
		if r.Encoding.Axes != nil {
			axes := int64(slices.Max(r.Encoding.Axes)) + 1
			dims = []int64{axes, int64(len(r.PositionIDs)) / (axes * length), length}
			if r.TensorFormat == "thd" {
				dims = []int64{axes, length}
			}
		}
		in["position_ids"] = integers(slices.Clone(r.PositionIDs), dims...)
	}
	if r.CuSeqlens != nil {
		in["cu_seqlens"] = integers32(int64List(r.CuSeqlens), int64(len(r.CuSeqlens)))
	}
	if r.SeqlenOffsets != nil {
		in["seqlen_offsets"] = integers32(int64List(r.SeqlenOffsets), int64(len(r.SeqlenOffsets)))
	}
	if r.MaxSeqlen > 0 {
		in["max_seqlen"] = integers32([]int64{r.MaxSeqlen}, 1)
	}
	return in
}

// tokens are the length and the batch of the query.
func (r rotation) tokens() (length, batch int64) {
	switch r.TensorFormat {
	case "sbhd":
		return int64(r.query[0]), int64(r.query[1])
	case "bhsd":
		return int64(r.query[2]), int64(r.query[0])
	case "thd":
		return int64(r.query[0]), 1
	}
	return int64(r.query[1]), int64(r.query[0])
}

// solved are query and key rotated in float64, and in plain float32.
func (r rotation) solved(t tester, x [2][]float64) (want, plain [2][]float64) {
	t.Helper()
	for i, shape := range [][]int{r.query, r.key} {
		if shape == nil {
			continue
		}
		var err error
		if want[i], err = ref.Rotary(x[i], shape, r.Rotary); err != nil {
			t.Fatal(err)
		}
		if plain[i], err = ref.RotaryFloat32(x[i], shape, r.Rotary); err != nil {
			t.Fatal(err)
		}
	}
	return want, plain
}

// judged compares the outputs of a run with float64.
func (r rotation) judged(t tester, got map[string]tensor, want, plain [2][]float64) {
	t.Helper()
	for i, shape := range [][]int{r.query, r.key} {
		if shape != nil {
			name := customop.RotarySpec.Outputs[i].Name
			within(t, name, got[name], want[i], plain[i], int64List(shape)...)
		}
	}
}

// settleRotary runs a rotation in every way that computes it.
func settleRotary(t tester, r rotation) {
	t.Helper()
	x := r.numbers(1)
	want, plain := r.solved(t, x)
	in := r.feeds(x)
	for way, open := range ways(false) {
		s, err := open(t, []*onnx.Node{r.node(t)}, typesOf(in), 2)
		if err != nil {
			t.Fatalf("%s: %v", way, err)
		}
		got, err := s.run(in)
		if err != nil {
			t.Fatalf("%s: %v", way, err)
		}
		r.judged(t, got, want, plain)
	}
}

func rotations() map[string]rotation {
	const last = 131071
	interleaved := func(r *rotation) { r.Encoding.Layout = rope.Interleaved }
	partial := func(pairs, offset int) func(*rotation) {
		return func(r *rotation) {
			r.Encoding.Frequencies, r.Encoding.Offset = r.Encoding.Frequencies[:pairs], offset
		}
	}
	offsets := func(list ...int32) func(*rotation) { return func(r *rotation) { r.SeqlenOffsets = list } }
	positions := func(rows int) func(*rotation) {
		return func(r *rotation) {
			length, _ := r.tokens()
			r.CuSeqlens = nil
			for i := range int64(rows) * length {
				r.PositionIDs = append(r.PositionIDs, (i*37+11)%300+last-299)
			}
		}
	}
	axes := func(rows int) func(*rotation) {
		return func(r *rotation) {
			r.Encoding.Axes = make([]int, len(r.Encoding.Frequencies))
			for i := range r.Encoding.Axes {
				r.Encoding.Axes[i] = i % 3
			}
			positions(3 * rows)(r)
		}
	}
	long := func(l rope.LengthDependent) func(*rotation) {
		return func(r *rotation) { r.Encoding.LengthDependent = l }
	}
	cases := map[string]rotation{
		"key alone of one head": turning("bhsd", 1, 33, 1, 0, 64),
		"negative positions":    turning("bshd", 1, 3, 2, 1, 8, func(r *rotation) { r.PositionIDs = []int64{-2, 0, -1} }),
		"long frequencies":      turning("bshd", 2, 33, 2, 1, 16, long(rope.LengthDependent{Trained: 32, Long: []float64{1, 0.5, 0.25, 0.125, 0.0625, 0.03125, 0.015625, 0.0078125}})),
		"not long":              turning("bshd", 2, 32, 2, 1, 16, long(rope.LengthDependent{Trained: 32, NTK: 2})),
		"ntk":                   turning("sbhd", 2, 33, 2, 1, 16, offsets(0, 9), long(rope.LengthDependent{Trained: 32, NTK: 2})),
		"linear, by caller": turning("thd", 1, 30, 2, 1, 16, long(rope.LengthDependent{Trained: 32, Linear: true}), func(r *rotation) {
			r.MaxSeqlen = 80
		}),
		"no tokens":             turning("bshd", 2, 0, 2, 1, 16),
		"no rows":               turning("sbhd", 0, 3, 2, 1, 16, offsets(7)),
		"no packed tokens":      turning("thd", 1, 0, 2, 1, 16, offsets(7)),
		"no key heads":          turning("bhsd", 1, 3, 2, 1, 16, func(r *rotation) { r.key[1] = 0 }),
		"two sequences of none": turning("thd", 1, 5, 2, 1, 16, func(r *rotation) { r.CuSeqlens = []int32{0, 0, 5, 5} }, offsets(4, 7, 9)),
	}
	for _, format := range []string{"bshd", "sbhd", "bhsd", "thd"} {
		rows := 3
		if format == "thd" {
			rows = 1
		}
		for name, changes := range map[string][]func(*rotation){
			"half":                 nil,
			"interleaved":          {interleaved},
			"partial":              {partial(9, 6), positions(1)},
			"partial, interleaved": {partial(9, 6), interleaved, positions(1)},
			"inverse":              {func(r *rotation) { r.Inverse = true }, positions(rows)},
			"inverse, interleaved": {func(r *rotation) { r.Inverse, r.Encoding.Gain = true, 1.25 }, interleaved, positions(1)},
			"gain, exact":          {func(r *rotation) { r.Encoding.Gain, r.Encoding.ExactAngles = 1.25, true }, positions(rows)},
			"offsets":              {offsets(5, last-90, 0)},
			"one offset":           {offsets(last - 300), interleaved},
			"axes":                 {axes(1)},
			"axes of rows":         {axes(rows), interleaved, partial(31, 1), func(r *rotation) { r.Encoding.Axes = r.Encoding.Axes[:31] }},
		} {
			cases[format+" "+name] = turning(format, 3, 37, 5, 2, 64, changes...)
			cases[format+" "+name+", one head"] = turning(format, 3, 7, 1, 0, 64, changes...)
		}
	}
	return cases
}

func TestRotaryAgainstReference(t *testing.T) {
	for name, r := range testsample.OfMap(t, rotations(), 40) {
		t.Run(name, func(t *testing.T) { settleRotary(t, r) })
	}
}

// The kernel, the fallback and the Go function of drawn sizes.
func TestRotaryProperty(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		format := rapid.SampledFrom([]string{"bshd", "sbhd", "bhsd", "thd"}).Draw(t, "format")
		size := 2 * rapid.IntRange(1, 40).Draw(t, "half the size")
		r := turning(format, rapid.IntRange(1, 3).Draw(t, "batch"), rapid.IntRange(1, 40).Draw(t, "length"), rapid.IntRange(1, 4).Draw(t, "heads"), rapid.IntRange(0, 2).Draw(t, "key heads"), size)
		pairs := rapid.IntRange(1, size/2).Draw(t, "pairs")
		r.Encoding.Frequencies = r.Encoding.Frequencies[:pairs]
		r.Encoding.Offset = rapid.IntRange(0, size-2*pairs).Draw(t, "offset")
		r.Encoding.Layout = rapid.SampledFrom([]rope.Layout{rope.Half, rope.Interleaved}).Draw(t, "layout")
		r.Inverse = rapid.Bool().Draw(t, "inverse")
		settleRotary(t, r)
		x := r.numbers(1)
		want, plain := r.solved(t, x)
		got, err := rope.ApplyRotary(float32List(x[0]), r.query, r.Rotary)
		if err != nil {
			t.Fatal(err)
		}
		within(t, "ApplyRotary", floats(got, int64(len(got))), want[0], plain[0], int64(len(got)))
	})
}

// In 16 bits the rotation is computed in float32 and rounded once.
func TestRotaryHalfPrecision(t *testing.T) {
	for name, r := range testsample.OfMap(t, rotations(), 12) {
		t.Run(name, func(t *testing.T) {
			for _, h := range []halfType{float16, bfloat16} {
				x := r.numbers(2)
				for i := range x {
					x[i] = h.rounded(x[i])
				}
				want, plain := r.solved(t, x)
				for i := range plain {
					plain[i] = h.rounded(plain[i])
				}
				in := r.feeds(x)
				for way, open := range ways(false) {
					s, err := open(t, h.casts(r.node(t)), typesOf(in), 1)
					if err != nil {
						t.Fatalf("%s: %v", way, err)
					}
					got, err := s.run(in)
					if err != nil {
						t.Fatalf("%s: %v", way, err)
					}
					r.judged(t, got, want, plain)
				}
			}
		})
	}
}

// What transformers and NumPy compute (rope/testdata/make_rotary.py).
func TestRotaryGoldens(t *testing.T) {
	data, err := os.ReadFile("../rope/testdata/rotary.json")
	if err != nil {
		t.Fatal(err)
	}
	var cases []struct {
		Name          string
		Shape         []int
		X, Want       []float64
		InvFreq       []float64 `json:"inv_freq"`
		TensorFormat  string    `json:"tensor_format"`
		Interleaved   bool
		Offset        int
		Gain          float64
		Inverse       bool
		Exact         bool
		Axes          []int
		PositionIDs   []int64 `json:"position_ids"`
		CuSeqlens     []int32 `json:"cu_seqlens"`
		SeqlenOffsets []int32 `json:"seqlen_offsets"`
		CPSize        int     `json:"cp_size"`
	}
	if err := json.Unmarshal(data, &cases); err != nil {
		t.Fatal(err)
	}
	for _, c := range cases {
		if c.CPSize > 0 {
			continue // of ranks, which the op does not know
		}
		t.Run(c.Name, func(t *testing.T) {
			r := rotation{query: c.Shape, Rotary: rope.Rotary{
				Encoding:     rope.Encoding{Gain: c.Gain, Axes: c.Axes, Offset: c.Offset, ExactAngles: c.Exact},
				TensorFormat: c.TensorFormat, Inverse: c.Inverse, PositionIDs: c.PositionIDs, CuSeqlens: c.CuSeqlens, SeqlenOffsets: c.SeqlenOffsets,
			}}
			if c.Interleaved {
				r.Encoding.Layout = rope.Interleaved
			}
			for _, omega := range c.InvFreq {
				r.Encoding.Frequencies = append(r.Encoding.Frequencies, float64(float32(omega)))
			}
			for i, x := range c.X {
				c.X[i] = float64(float32(x))
			}
			in := r.feeds([2][]float64{c.X, nil})
			_, plain := r.solved(t, [2][]float64{c.X, nil})
			for way, open := range ways(false) {
				s, err := open(t, []*onnx.Node{r.node(t)}, typesOf(in), 1)
				if err != nil {
					t.Fatalf("%s: %v", way, err)
				}
				got, err := s.run(in)
				if err != nil {
					t.Fatalf("%s: %v", way, err)
				}
				within(t, way, got["rotated_query"], c.Want, plain[0], int64List(c.Shape)...)
			}
		})
	}
}
