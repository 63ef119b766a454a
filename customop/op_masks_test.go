package customop_test

import (
	"maps"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/rope-rewrite/rope-rewrite/internal/testsample"
	"github.com/rope-rewrite/rope-rewrite/rope"
	"github.com/rope-rewrite/rope-rewrite/rope/ref"
)

// packed gives the tokens of each row documents of the given lengths, as often
// as they fit, with ids from first on.
func packed(p ref.Problem, first int64, lengths ...int) ref.Problem {
	for range p.Batch {
		id, left, next := first, lengths[0], 1
		for range p.Past + p.Length {
			if left == 0 {
				id, left, next = id+1, lengths[next%len(lengths)], next+1
			}
			p.Documents = append(p.Documents, id)
			left--
		}
	}
	return p
}

// scattered gives every token one of the ids at random, changing it every
// `every` tokens or so.
func scattered(p ref.Problem, seed uint64, every int, ids ...int64) ref.Problem {
	r := rand.New(rand.NewPCG(seed, 2))
	id := ids[0]
	for range p.Batch * (p.Past + p.Length) {
		if r.IntN(every) == 0 {
			id = ids[r.IntN(len(ids))]
		}
		p.Documents = append(p.Documents, id)
	}
	return p
}

func documented(a rope.Attention, rule rope.Documents) rope.Attention {
	a.Mask.Documents = rule
	return a
}

func restarting(a rope.Attention, start int64) rope.Attention {
	a.Mask.Restart, a.Mask.Start = true, start
	return a
}

// biases draws a bias of [B, H, L, P + L]; about one number in `hidden` is −∞.
func biases(p ref.Problem, seed uint64, hidden int) []float64 {
	r := rand.New(rand.NewPCG(seed, 3))
	bias := normal(r, p.Batch*p.Attention.Heads*p.Length*(p.Past+p.Length))
	for i := range bias {
		if hidden > 0 && r.IntN(hidden) == 0 {
			bias[i] = math.Inf(-1)
		}
	}
	return bias
}

// maskCases are the masks and score modifiers of the second specification.
func maskCases() map[string]ref.Problem {
	list := firstKeysCases()
	maps.Copy(list, scoreCases())
	maps.Copy(list, documentCases())
	everything := problem(with(documented(streaming(), rope.AnchorDocument), func(a *rope.Attention) {
		a.Softcap, a.Sinks = 4, sunk().Sinks
	}), 2, 70, 30)
	list["everything"] = scattered(holes(everything, 2), 10, 6, -1, 0, 1, 2)
	maps.Copy(list, biasCases(list["everything"]))
	return list
}

// streaming has a window and first keys.
func streaming() rope.Attention {
	return with(attention(4, 2, 32), func(a *rope.Attention) { a.Mask.Window, a.Mask.FirstKeys = 20, 5 })
}

// capped has a softcap and a scale of its own.
func capped() rope.Attention {
	return with(attention(4, 2, 32), func(a *rope.Attention) { a.Softcap, a.Scale = 3, 0.5 })
}

// sunk has sinks.
func sunk() rope.Attention {
	return with(attention(4, 2, 32), func(a *rope.Attention) { a.Sinks = []float64{0.5, -3, 20, math.Inf(-1)} })
}

func firstKeysCases() map[string]ref.Problem {
	streaming := streaming()
	both := with(streaming, func(a *rope.Attention) { a.Mask.Causal = false })
	return map[string]ref.Problem{
		"first keys":                 problem(streaming, 2, 100, 0),
		"first keys, chunk":          problem(streaming, 2, 33, 70),
		"first keys, decode":         problem(streaming, 2, 1, 300),
		"first keys, long decode":    problem(streaming, 1, 1, 1500),
		"first keys beyond the past": problem(with(streaming, func(a *rope.Attention) { a.Mask.FirstKeys = 300 }), 1, 40, 20),
		"first keys, no window":      problem(with(streaming, func(a *rope.Attention) { a.Mask.Window = 0 }), 1, 40, 20),
		"first keys, padded":         leftPadded(problem(streaming, 3, 60, 0), 0, 3, 17),
		"first keys, padded, chunk":  leftPadded(problem(streaming, 3, 33, 70), 0, 50, 90),
		"first keys, padded, decode": leftPadded(problem(streaming, 3, 1, 300), 0, 13, 299),
		"first keys, padded, long":   leftPadded(problem(streaming, 1, 1, 1500), 700),
		"first keys, padded, bands":  leftPadded(problem(with(streaming, func(a *rope.Attention) { a.Bands = stringBands(11, 3) }), 2, 90, 30), 41, 2),
		"first keys, padded, many":   leftPadded(problem(with(streaming, func(a *rope.Attention) { a.Mask.FirstKeys = 260 }), 2, 400, 0), 30, 300),
		"first keys, all padding":    leftPadded(problem(streaming, 2, 40, 0), 40, 39),
		"first keys, right padded":   rightPadded(problem(streaming, 2, 60, 0), 11, 57),
		"first keys, holes":          holes(problem(streaming, 2, 40, 50), 3),
		"first keys, holes, both":    holes(problem(both, 2, 90, 0), 4),
		"first keys, padded, both":   leftPadded(problem(both, 2, 90, 0), 7, 60),
		"first keys, both ways":      problem(both, 2, 90, 0),
		"first keys, bands":          problem(with(streaming, func(a *rope.Attention) { a.Bands = stringBands(11, 3) }), 2, 90, 30),
		"first keys, long":           problem(with(streaming, func(a *rope.Attention) { a.Mask.FirstKeys = 260 }), 1, 600, 0),
	}
}

func scoreCases() map[string]ref.Problem {
	capped, sunk := capped(), sunk()
	return map[string]ref.Problem{
		"softcap":               problem(capped, 2, 70, 10),
		"softcap, decode":       problem(capped, 2, 1, 200),
		"softcap, tight":        problem(with(capped, func(a *rope.Attention) { a.Softcap = 0.01 }), 1, 70, 10),
		"softcap, loose":        problem(with(capped, func(a *rope.Attention) { a.Softcap = 1000 }), 1, 70, 10),
		"softcap, padded":       leftPadded(problem(capped, 2, 50, 0), 7, 50),
		"softcap, window":       problem(with(capped, func(a *rope.Attention) { a.Mask.Window = 9 }), 1, 70, 10),
		"softcap, other scale":  problem(with(capped, func(a *rope.Attention) { a.Scale = -0.4 }), 1, 70, 10),
		"sinks":                 problem(sunk, 2, 50, 20),
		"sinks, decode":         problem(sunk, 2, 1, 90),
		"sinks, long decode":    problem(sunk, 1, 1, 2000),
		"sinks, nothing to see": leftPadded(problem(sunk, 2, 30, 0), 30, 11),
	}
}

func documentCases() map[string]ref.Problem {
	plain, streaming := attention(4, 2, 32), streaming()
	banded := with(plain, func(a *rope.Attention) { a.Bands = stringBands(40, 9) })
	anchored := with(plain, func(a *rope.Attention) { a.Mask.Window, a.Mask.FirstKeys = 12, 1 })
	intra, anchor := documented(plain, rope.IntraDocument), documented(plain, rope.AnchorDocument)
	return map[string]ref.Problem{
		"packed":                       packed(problem(intra, 2, 300, 0), 1, 70, 31, 1),
		"packed, decode":               packed(problem(intra, 2, 1, 333), 1, 100),
		"packed, long decode":          packed(problem(intra, 1, 1, 2100), 1, 700),
		"packed, chunk":                packed(problem(intra, 2, 60, 100), 0, 45),
		"packed, both ways":            packed(problem(with(intra, func(a *rope.Attention) { a.Mask.Causal = false }), 2, 100, 0), 1, 30),
		"packed, padded":               packed(leftPadded(problem(intra, 2, 90, 0), 13, 88), 1, 30),
		"packed, holes":                packed(holes(problem(intra, 2, 80, 30), 3), 1, 30),
		"packed, window":               packed(problem(with(intra, func(a *rope.Attention) { a.Mask.Window = 12 }), 1, 100, 30), 1, 40),
		"packed, first keys":           packed(problem(documented(streaming, rope.IntraDocument), 1, 100, 30), 1, 40, 3),
		"packed, first keys, padded":   packed(leftPadded(problem(documented(streaming, rope.IntraDocument), 2, 100, 30), 17, 60), 1, 40, 3),
		"packed, bands":                packed(problem(documented(banded, rope.IntraDocument), 2, 120, 0), 1, 90),
		"interleaved":                  scattered(problem(intra, 2, 150, 60), 1, 1, 1, 2, 3),
		"interleaved, many":            scattered(problem(intra, 1, 100, 300), 2, 2, 1, 1<<40, 3, 7, 9, 11, 13, 0, 1<<62),
		"interleaved, decode":          scattered(problem(intra, 3, 1, 500), 3, 3, 1, 2, 3),
		"interleaved, spans":           scattered(problem(intra, 1, 600, 0), 4, 40, 1, 2, 3),
		"interleaved, bands":           scattered(problem(documented(banded, rope.IntraDocument), 1, 100, 50), 4, 8, 1, 2, 3),
		"interleaved, padded":          scattered(leftPadded(problem(intra, 3, 70, 0), 0, 9, 70), 4, 5, 1, 2),
		"interleaved, both ways":       scattered(problem(with(intra, func(a *rope.Attention) { a.Mask.Causal = false }), 1, 70, 9), 4, 3, -1, 0, 1, 2),
		"readers":                      scattered(problem(intra, 2, 90, 40), 5, 10, -1, 1, 2),
		"readers alone":                scattered(problem(intra, 1, 30, 40), 5, 10, -1),
		"anchor":                       scattered(problem(anchor, 2, 90, 40), 6, 10, 0, 1, 2),
		"anchor first":                 packed(problem(anchor, 2, 90, 0), 0, 1, 30),
		"anchor first, window":         packed(leftPadded(problem(documented(anchored, rope.AnchorDocument), 3, 90, 30), 0, 40, 119), 0, 1, 30),
		"anchor first, window, decode": packed(problem(documented(anchored, rope.AnchorDocument), 2, 1, 200), 0, 1, 30),
		"anchor, decode":               packed(problem(anchor, 2, 1, 200), 0, 1, 30),
		"anchor, readers":              scattered(problem(anchor, 3, 100, 20), 7, 4, -1, 0, 1, 2, 3),
		"anchor, readers, window":      scattered(problem(documented(streaming, rope.AnchorDocument), 2, 100, 20), 8, 4, -1, 0, 1, 2),
		"restart":                      packed(problem(restarting(intra, 0), 2, 150, 0), 1, 40, 7),
		"restart, chunk":               packed(problem(restarting(intra, 2), 2, 50, 90), 1, 40, 7),
		"restart, anchor":              packed(problem(restarting(anchor, 1), 2, 90, 0), 0, 1, 30),
		"restart, scattered":           scattered(problem(restarting(anchor, 5), 3, 90, 44), 9, 6, -1, 0, 1, 2),
		"restart, positions":           scattered(from(problem(restarting(anchor, 5), 2, 90, 44), 1000, 131071-89), 9, 6, -1, 0, 1, 2),
		"restart, padded":              scattered(leftPadded(problem(restarting(intra, 1), 3, 60, 0), 0, 11, 59), 9, 9, -1, 0, 1),
		"restart, holes":               scattered(holes(problem(restarting(intra, 1), 2, 60, 30), 5), 9, 9, -1, 0, 1),
		"restart, decode":              packed(problem(restarting(intra, 3), 2, 1, 90), 1, 40, 7),
	}
}

// biasCases are problems with a bias before the softcap, after it or both.
func biasCases(everything ref.Problem) map[string]ref.Problem {
	plain, capped, sunk := attention(4, 2, 32), capped(), sunk()
	list := map[string]ref.Problem{}
	for name, p := range map[string]ref.Problem{
		"bias": problem(plain, 2, 40, 20), "bias, decode": problem(plain, 2, 1, 300), "bias, long decode": problem(sunk, 1, 1, 1100),
		"bias, softcap": problem(capped, 2, 40, 20), "bias, long": problem(capped, 1, 300, 9), "bias, padded": leftPadded(problem(capped, 2, 40, 0), 3, 12),
		"bias, both ways": problem(with(capped, func(a *rope.Attention) { a.Mask.Causal = false }), 1, 40, 20), "bias, everything": everything,
	} {
		p.Bias = biases(p, 1, 0)
		list[name+": after"] = p
		p.BiasBeforeSoftcap = biases(p, 2, 0)
		list[name+": both"] = p
		p.Bias = nil
		list[name+": before"] = p
		p.Bias, p.BiasBeforeSoftcap = biases(p, 3, 4), biases(p, 4, 5)
		list[name+": hiding"] = p
		p.Bias = biases(p, 3, 1)
		list[name+": hiding all"] = p
	}
	return list
}

func TestMasksAgainstReference(t *testing.T) {
	for name, p := range testsample.OfMap(t, maskCases(), 25) {
		t.Run(name, func(t *testing.T) {
			for _, flat := range []bool{false, true} {
				settle(t, p, flat)
			}
		})
	}
}

// A bias of fewer or smaller dimensions counts as often as the scores have them.
func TestBiasBroadcasts(t *testing.T) {
	a := with(attention(4, 2, 32), func(a *rope.Attention) { a.Softcap = 2 })
	const batch, heads, length, total = 2, 4, 20, 30
	for _, dims := range [][]int64{
		{1}, {total}, {length, 1}, {1, total}, {length, total}, {heads, 1, 1}, {heads, length, total}, {1, 1, total},
		{1, 1, 1, total}, {batch, 1, 1, total}, {batch, 1, length, total}, {batch, heads, 1, 1}, {1, heads, 1, total}, {batch, 1, length, 1},
	} {
		small := normal(rand.New(rand.NewPCG(9, uint64(len(dims)))), int(product(dims)))
		padded := append([]int64{1, 1, 1, 1}[len(dims):], dims...)
		var whole []float64
		for i := range int64(batch * heads * length * total) {
			at, size := int64(0), int64(1)
			for d, left := 3, i; d >= 0; d-- {
				full := []int64{batch, heads, length, total}[d]
				at += left % full % padded[d] * size
				left, size = left/full, size*padded[d]
			}
			whole = append(whole, small[at])
		}
		p := problem(a, batch, length, total-length)
		p.Bias, p.BiasBeforeSoftcap = whole, whole
		p = filled(p, 1)
		in := feedsOf(p, false)
		s, err := newSession(t, nodeOf(t, p), typesOf(in), 2)
		if err != nil {
			t.Fatal(err)
		}
		want, err := s.run(in)
		if err != nil {
			t.Fatal(err)
		}
		compare(t, p, false, want)
		in["attention_bias"] = floats(float32s(small), dims...)
		in["bias_before_softcap"] = in["attention_bias"]
		got, err := s.run(in)
		if err != nil {
			t.Fatalf("bias %v: %v", dims, err)
		}
		same(t, want, got)
	}
}

func product(dims []int64) int64 {
	n := int64(1)
	for _, d := range dims {
		n *= d
	}
	return n
}

// Attention over parts of the keys, merged by their log-sum-exp, is attention
// over all of them.
func TestLogSumExpMerges(t *testing.T) {
	plain := with(attention(4, 2, 32), func(a *rope.Attention) { a.Softcap = 5 })
	for name, whole := range map[string]ref.Problem{
		"prefill": holes(problem(plain, 2, 90, 0), 3),
		"decode":  leftPadded(problem(plain, 2, 1, 700), 0, 600),
	} {
		t.Run(name, func(t *testing.T) {
			whole = filled(whole, 1)
			want, err := ref.Run(whole)
			if err != nil {
				t.Fatal(err)
			}
			plain, err := ref.RunFloat32(whole)
			if err != nil {
				t.Fatal(err)
			}
			total, size := whole.Past+whole.Length, whole.ValueSize
			outputs := make([]float64, len(want.Output))
			sums := make([]float64, len(want.LogSumExp))
			for part := range 3 { // each sees every third run of 40 keys
				p := whole
				p.KeyMask = slices.Clone(whole.KeyMask)
				for j := range p.KeyMask {
					p.KeyMask[j] = p.KeyMask[j] && j%total/40%3 == part
				}
				got := solve(t, p, false)
				for i, l := range got["log_sum_exp"].floats {
					weight := math.Exp(float64(l))
					sums[i] += weight
					for x := range size {
						outputs[i*size+x] += weight * float64(got["output"].floats[i*size+x])
					}
				}
			}
			for i, sum := range sums {
				for x := range size {
					if sum > 0 {
						outputs[i*size+x] /= sum
					}
				}
				sums[i] = math.Log(sum)
			}
			b, h, l := int64(whole.Batch), int64(whole.Attention.Heads), int64(whole.Length)
			within(t, "merged output", floats(float32s(outputs), b, h, l, int64(size)), want.Output, plain.Output, b, h, l, int64(size))
			within(t, "merged log_sum_exp", floats(float32s(sums), b, h, l), want.LogSumExp, plain.LogSumExp, b, h, l)
		})
	}
}

// Documents packed into one row give what each gives by itself.
func TestPackedIsSeparate(t *testing.T) {
	const documents, length = 8, 37
	a := restarting(documented(attention(4, 2, 32), rope.IntraDocument), 0)
	whole := filled(packed(problem(a, 1, documents*length, 0), 1, length), 1)
	got := solve(t, whole, false)
	a.Mask = rope.Mask{Causal: true}
	for d := range documents {
		alone := slice(whole, d*length, (d+1)*length)
		alone.Attention, alone.Past, alone.Documents = a, 0, nil
		want, err := ref.Run(alone)
		if err != nil {
			t.Fatal(err)
		}
		plain, err := ref.RunFloat32(alone)
		if err != nil {
			t.Fatal(err)
		}
		part := rows(got["output"].floats, documents*length, 32, d*length, (d+1)*length)
		within(t, "output", floats(part, 1, 4, length, 32), want.Output, plain.Output, 1, 4, length, 32)
	}
}
