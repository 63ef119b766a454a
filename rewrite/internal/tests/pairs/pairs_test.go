package pairs

import (
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/rope-rewrite/rope-rewrite/internal/decoder"
	"github.com/rope-rewrite/rope-rewrite/internal/testruntime"
	"github.com/rope-rewrite/rope-rewrite/internal/testsample"
	"github.com/rope-rewrite/rope-rewrite/onnx"
	"github.com/rope-rewrite/rope-rewrite/provenance"
	"github.com/rope-rewrite/rope-rewrite/rewrite"
	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/tests/kit"
	"github.com/rope-rewrite/rope-rewrite/rope"
	"github.com/rope-rewrite/rope-rewrite/rope/ref"
	"github.com/rope-rewrite/rope-rewrite/validate/capture"
)

// seed is that of the rows, and more how many rows are drawn behind those that cover all pairs.
const (
	seed = 67
	more = 60
)

// TestPairs runs a row for every pair of settings that can be together, and drawn ones. What each layer of its plain form
// gives (growing cache, the op) is compared with the float64 reference of its methods, and every other form with the plain
// one: fixed buffers and rings, other targets, the fallback, and texts that come in one call and in many.
func TestPairs(t *testing.T) {
	t.Parallel()
	testruntime.Require(t)
	rng := rand.New(rand.NewPCG(seed, seed))
	rows, _ := covering(rng)
	for _, r := range testsample.Of(t, append(rows, drawn(rng, more)...), 6) {
		t.Run(r.String(), func(t *testing.T) {
			t.Parallel()
			check(t, r)
		})
	}
}

// patched rewrites a row's model.
func patched(t *testing.T, r row) (path string, report *rewrite.Report, err error) {
	t.Helper()
	o := r.options()
	path = kit.Model(exports.settings[r[0]].name)
	if o.Earlier.Carried {
		path, _ = before(t, r)
	}
	m := kit.OpenModel(t, path)
	if report, err = kit.Rewrite(t.Context(), m, o); err != nil {
		return "", nil, err
	}
	path = t.TempDir() + "/model.onnx"
	return path, report, m.Save(path, onnx.SaveOptions{})
}

// before is a row's model with the earlier method.
func before(t *testing.T, r row) (path string, report *rewrite.Report) {
	t.Helper()
	return kit.Patch(t, kit.Model(exports.settings[r[0]].name), rewrite.Options{Edits: []rope.Spec{parsed(rope.ScalingAxis, earlier)}})
}

func check(t *testing.T, r row) {
	path, _, err := patched(t, r)
	if err != nil {
		t.Fatalf("it is refused, and no rule says so: %v", err)
	}
	plain, report, err := patched(t, r.like())
	if len(r.like().broken()) > 0 { // nothing is added to the earlier methods
		plain, report = before(t, r)
		err = nil
	}
	if err != nil {
		t.Fatal(err)
	}
	s := text(r)
	layers(t, plain, report, s)
	ways := map[string][]int64{"one call": {tokens}}
	d := kit.Open(t, plain)
	if d.Cached() {
		ways["pieces"], ways["single tokens"] = []int64{20, 41, 11}, append([]int64{tokens - 12}, slices.Repeat([]int64{1}, 12)...)
	}
	whole := kit.Chunked(t, d, s, ways["one call"])
	most := limit(r, whole)
	for way, chunks := range ways {
		want := kit.Chunked(t, d, s, chunks)
		alike := r.has("type: same") && !r.has("scaling: *length=run*") // else what is cached is rounded, or is what an earlier call turned
		if off := apart(s, want, whole); alike && !(off <= most) {
			t.Errorf("%s: off by %.2g from one call", way, off)
		}
		for host, open := range map[string]func(*testing.T, string) *decoder.Decoder{"library": kit.Open, "fallback": kit.OpenPlainly} {
			if off := apart(s, kit.Chunked(t, open(t, path), s, chunks), want); !(off <= most) {
				t.Errorf("%s, by the %s: off by %.2g from the plain form", way, host, off)
			}
		}
	}
}

// limit is how far logits may be apart: rounding as that of TestRings, of 16 bits and of what small caches hold.
func limit(r row, logits []float64) float64 {
	size := slices.Max(logits) - slices.Min(logits)
	switch {
	case r.has("type: int8"):
		return 0.02 * size // a number between two integers may become either
	case r.has("model: *fp16"), r.has("type: bfloat16"):
		return 5e-3 * size
	case r.has("type: float16"):
		return 1e-3 * size
	}
	return 2e-5 * size
}

// text is a batch of two rows, the second with padding on its left where the row's caches take it, with three documents.
func text(r row) decoder.Sequence {
	rng := rand.New(rand.NewPCG(3, 5))
	s := decoder.Sequence{Batch: 2, Length: tokens}
	padding := int64(7)
	if r.has("kv: ring") && r.has("window: first-keys*") || r.has("target: contrib") {
		padding = 0
	}
	for b := range s.Batch {
		for j := range s.Length {
			pad := b * padding
			s.IDs = append(s.IDs, 3+rng.Int64N(100))
			s.Mask = append(s.Mask, min(1, max(0, j-pad+1)))
			s.Positions = append(s.Positions, max(0, j-pad))
			document := int64(0)
			switch {
			case j >= pad+50:
				document = 2
			case j >= pad+4:
				document = 1
			}
			s.Documents = append(s.Documents, document)
		}
	}
	return s
}

// apart is the largest difference of logits of tokens that are no padding.
func apart(s decoder.Sequence, a, b []float64) (most float64) {
	if len(a) != len(b) {
		return math.Inf(1)
	}
	width := len(a) / len(s.Mask)
	for i, real := range s.Mask {
		for j := i * width; real != 0 && j < (i+1)*width; j++ {
			if off := math.Abs(a[j] - b[j]); !(off <= most) {
				most = off
			}
		}
	}
	return most
}

// layers compares what each layer gives with the reference of its methods, in a call without a past and in two with one.
func layers(t *testing.T, path string, report *rewrite.Report, s decoder.Sequence) {
	t.Helper()
	m, err := capture.Open(t.Context(), path, capture.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close()
	calls := []int64{20, 41, 11}
	if d, err := decoder.Look(path); err != nil || !d.Cached() {
		calls = []int64{tokens}
	}
	drawn := slices.ContainsFunc(report.Record.Edits, func(e provenance.Edit) bool { return strings.HasPrefix(e.Given, "randomized") })
	var cache capture.Cache
	start := int64(0)
	for _, length := range calls {
		in := capture.Input{Batch: s.Batch, Length: length, Cache: cache}
		for b := range s.Batch {
			of := func(list []int64, from int64) []int64 { return list[b*s.Length+from : b*s.Length+start+length] }
			in.IDs, in.Positions = append(in.IDs, of(s.IDs, start)...), append(in.Positions, of(s.Positions, start)...)
			in.Mask, in.Documents = append(in.Mask, of(s.Mask, 0)...), append(in.Documents, of(s.Documents, 0)...)
		}
		run, err := m.Run(t.Context(), in)
		if err != nil {
			t.Fatal(err)
		}
		for _, l := range run.Layers {
			if drawn { // the op reads those that were drawn
				if l.Positions = nil; m.TakesPositions() {
					l.Positions = in.Positions
				}
			}
			compare(t, l, wanted(t, report, l), start)
		}
		cache, start = run.Cache, start+length
	}
}

// wanted is the attention of a layer that was measured, with the methods of the report's record.
func wanted(t *testing.T, report *rewrite.Report, l capture.Layer) rope.Attention {
	t.Helper()
	record := report.Record
	at := slices.IndexFunc(record.Sites, func(s provenance.Site) bool { return slices.Contains(s.Layers, l.Layer) })
	a := record.Sites[at].Original
	var specs []rope.Spec
	for _, e := range record.Edits {
		axis := slices.IndexFunc(axes, func(a rope.Axis) bool { return a.String() == e.What })
		if axis < 0 || !slices.Contains(e.Layers, l.Layer) {
			continue
		}
		spec, err := rope.ParseSpec(axes[axis], e.Given)
		if err != nil {
			t.Fatal(err)
		}
		specs = append(specs, spec)
	}
	slices.SortStableFunc(specs, rope.CompareOrder)
	for _, spec := range specs {
		var err error
		if a, _, err = spec.Apply(a, rope.Context{Original: trained}); err != nil {
			t.Fatal(err)
		}
	}
	// How keys stand in the cache and who is padded is the form's; whether angles are exact is no method.
	now := l.Attention
	a.HeadSize, a.Sinks, a.Cache = now.HeadSize, now.Sinks, now.Cache
	a.QueryFactors, a.KeyFactors = now.QueryFactors, now.KeyFactors
	a.Mask.Padding, a.Mask.Bias = now.Mask.Padding, now.Mask.Bias
	a.Encoding.Precision, a.Encoding.ExactAngles = now.Encoding.Precision, now.Encoding.ExactAngles
	return a
}

var axes = []rope.Axis{rope.ScalingAxis, rope.PositionsAxis, rope.MaskAxis}

// compare is the rule of all kernels: an error of at most twice that of a plain implementation in the same precision.
func compare(t *testing.T, l capture.Layer, a rope.Attention, start int64) {
	t.Helper()
	p := l.Problem
	p.Attention = a
	want, err := ref.Run(p)
	if err != nil {
		t.Fatal(err)
	}
	plain, err := ref.RunFloat32(p)
	if err != nil {
		t.Fatal(err)
	}
	size := len(want.Output) / (p.Batch * a.Heads * p.Length)
	var off, by float64
	precision := rope.Float32
	if !slices.ContainsFunc(l.Output, func(x float64) bool { return rope.Float16.Round(x) != x }) {
		precision = rope.Float16
	}
	for i, got := range l.Output {
		token, of := i/size%p.Length, i/(size*p.Length*a.Heads)
		if p.KeyMask != nil && !p.KeyMask[of*(len(p.KeyMask)/p.Batch)+p.Past+token] {
			continue // what padding gives is not defined
		}
		off += (got - want.Output[i]) * (got - want.Output[i])
		rounded := precision.Round(plain.Output[i]) - want.Output[i]
		by += rounded * rounded
	}
	if !(math.Sqrt(off) <= 2*math.Sqrt(by)+1e-7) {
		t.Errorf("layer %d behind %d tokens: off by %.2g from the reference, a plain implementation by %.2g", l.Layer, start, math.Sqrt(off), math.Sqrt(by))
	}
}

// row draws a combination that breaks the rule and no other one.
func (of rule) row(t *testing.T) row {
	t.Helper()
	rng := rand.New(rand.NewPCG(1, 1))
	all := pairs()
	for range 1_000_000 {
		r := draw(rng, all[rng.IntN(len(all))])
		if broken := r.broken(); len(broken) == 1 && broken[0].sentence == of.sentence {
			return r
		}
	}
	t.Fatalf("no combination breaks the rule %q alone", of.sentence)
	return nil
}

// TestRefused tries each rule by every pair of settings that breaks it, the others being the first: it is refused with the
// rule's sentence.
func TestRefused(t *testing.T) {
	t.Parallel()
	testruntime.Require(t)
	var broken []row
	for _, p := range pairs() {
		r := make(row, len(features))
		r[p.f], r[p.g] = p.s, p.t
		if len(r.broken()) > 0 && !slices.ContainsFunc(broken, func(o row) bool { return slices.Equal(o, r) }) {
			broken = append(broken, r)
		}
	}
	for _, of := range rules {
		if !slices.ContainsFunc(broken, func(r row) bool {
			return slices.ContainsFunc(r.broken(), func(b rule) bool { return b.sentence == of.sentence })
		}) {
			broken = append(broken, of.row(t))
		}
	}
	for _, r := range testsample.Of(t, broken, 12) {
		t.Run(r.String(), func(t *testing.T) {
			t.Parallel()
			_, _, err := patched(t, r)
			if err == nil {
				t.Fatal("it is rewritten")
			}
			if !slices.ContainsFunc(r.broken(), func(b rule) bool { return strings.Contains(err.Error(), b.sentence) }) {
				t.Errorf("it is refused by another sentence than the rule's: %v", err)
			}
		})
	}
}
