package customop_test

import (
	"math"
	"math/rand/v2"
	"slices"

	"github.com/rope-rewrite/rope-rewrite/customop"
	"github.com/rope-rewrite/rope-rewrite/onnx"
	"github.com/rope-rewrite/rope-rewrite/rope"
	"github.com/rope-rewrite/rope-rewrite/rope/ref"
)

// frequencies are θ^(−2x/n) as float32, as the attribute holds them.
func frequencies(rotaryDim int, theta float64) []float64 {
	list := make([]float64, rotaryDim/2)
	for x := range list {
		list[x] = float64(float32(math.Pow(theta, -2*float64(x)/float64(rotaryDim))))
	}
	return list
}

// normal fills with numbers of a normal distribution that float32 holds.
func normal(r *rand.Rand, n int) []float64 {
	values := make([]float64, n)
	for i := range values {
		values[i] = float64(float32(r.NormFloat64()))
	}
	return values
}

// filled gives a problem random tensors of its sizes.
func filled(p ref.Problem, seed uint64) ref.Problem {
	r := rand.New(rand.NewPCG(seed, 7))
	a := p.Attention
	if p.ValueSize == 0 {
		p.ValueSize = a.HeadSize
	}
	p.Query = normal(r, p.Batch*a.Heads*p.Length*a.HeadSize)
	p.Key = normal(r, p.Batch*a.KVHeads*newKeys(p)*a.HeadSize)
	p.Value = normal(r, p.Batch*a.KVHeads*newKeys(p)*p.ValueSize)
	p.PastKey = normal(r, p.Batch*a.KVHeads*p.Past*a.HeadSize)
	p.PastValue = normal(r, p.Batch*a.KVHeads*p.Past*p.ValueSize)
	return p
}

// newKeys is how many rows key and value have.
func newKeys(p ref.Problem) int {
	if p.Attention.Cross {
		return p.Keys
	}
	return p.Length
}

// nodeOf writes the problem's attention as a node with all present outputs.
func nodeOf(t tester, p ref.Problem) *onnx.Node {
	t.Helper()
	a := p.Attention
	r := customop.RotaryAttention{
		Query: "query", Key: "key", Value: "value",
		Output: "output", PresentKey: "present_key", PresentValue: "present_value", LogSumExp: "log_sum_exp",
		NumHeads: int64(a.Heads), KVNumHeads: int64(a.KVHeads), Scale: float32(a.Scale),
		Gain: float32(a.Encoding.Gain), RotaryOffset: int64(a.Encoding.Offset),
		Window: a.Mask.Window, FirstKeys: a.Mask.FirstKeys, Softcap: float32(a.Softcap),
	}
	for _, f := range a.Encoding.Frequencies {
		r.Frequencies = append(r.Frequencies, float32(f))
	}
	if a.Encoding.Layout == rope.Interleaved {
		r.RotaryLayout = "interleaved"
	}
	if a.Encoding.ExactAngles {
		r.ExactAngles = 1
	}
	if a.Mask.Causal {
		r.Causal = 1
	}
	if a.Cross {
		r.Cross = 1
	}
	if a.Cache == rope.Raw {
		r.Cache = "raw"
	}
	for _, axis := range a.Encoding.Axes {
		r.PositionAxes = append(r.PositionAxes, int64(axis))
	}
	r.QueryFactors, r.KeyFactors = float32s(a.QueryFactors), float32s(a.KeyFactors)
	setDistances(&r, a.Distance)
	setPositionMap(&r, a)
	setInputs(&r, p)
	node, err := r.Node("attention 3")
	if err != nil {
		t.Fatal(err)
	}
	return toONNX(node)
}

// setDistances sets what heads add by distance.
func setDistances(r *customop.RotaryAttention, d rope.Distance) {
	r.DistanceSlopes, r.DistanceStarts = float32s(d.Slopes), d.Starts
	for _, bucket := range d.Biases {
		r.DistanceBiases = append(r.DistanceBiases, float32s(bucket)...)
	}
	if d.Shown {
		r.DistanceShown = 1
	}
}

// setPositionMap sets what depends on how far a key lies, or how long a call is.
func setPositionMap(r *customop.RotaryAttention, a rope.Attention) {
	for _, b := range a.Bands {
		r.BandStarts = append(r.BandStarts, b.Start)
		r.BandQueryScales = append(r.BandQueryScales, float32(b.QueryScale))
		r.BandQueryOffsets = append(r.BandQueryOffsets, float32(b.QueryOffset))
		r.BandKeyScales = append(r.BandKeyScales, float32(b.KeyScale))
		r.BandQueryLimits = append(r.BandQueryLimits, float32(b.QueryLimit))
		r.BandGroups = append(r.BandGroups, max(1, b.Group))
	}
	r.BandChunk = a.Chunk
	if t := a.Temperature; t != (rope.Temperature{}) {
		r.Temperature = []float32{float32(t.Offset), float32(t.Slope), float32(t.Start), float32(max(1, t.Group))}
	}
	reach := a.Encoding.LengthDependent
	r.TrainedLength, r.DynamicNtk = reach.Trained, float32(reach.NTK)
	if reach.Linear {
		r.DynamicLinear = 1
	}
	for _, f := range reach.Long {
		r.LongFrequencies = append(r.LongFrequencies, float32(f))
	}
}

// setInputs names the optional inputs that a problem has, and sets what belongs
// to them.
func setInputs(r *customop.RotaryAttention, p ref.Problem) {
	a := p.Attention
	if p.Past > 0 {
		r.PastKey, r.PastValue = "past_key", "past_value"
	}
	if p.Positions != nil {
		r.PositionIDs = "position_ids"
	}
	if p.KeyMask != nil {
		r.AttentionMask = "attention_mask"
		if a.Mask.FirstKeys > 0 {
			r.FirstKeysShown = 1
		}
	}
	if p.Bias != nil {
		r.AttentionBias = "attention_bias"
	}
	if p.BiasBeforeSoftcap != nil {
		r.BiasBeforeSoftcap = "bias_before_softcap"
	}
	if a.Sinks != nil {
		r.SinkLogits = "sink_logits"
	}
	if p.Documents != nil {
		r.DocumentIDs = "document_ids"
		r.DocumentStart = a.Mask.Start
		if a.Mask.Documents == rope.AnchorDocument {
			r.DocumentMask = "anchor"
		}
		if a.Mask.Restart {
			r.DocumentRestart = 1
		}
	}
}

// feedsOf writes the problem's tensors; flat merges heads and channels (rank 3).
func feedsOf(p ref.Problem, flat bool) feeds {
	a := p.Attention
	batch, length, past, fresh := int64(p.Batch), int64(p.Length), int64(p.Past), int64(newKeys(p))
	heads, kv, size, vSize := int64(a.Heads), int64(a.KVHeads), int64(a.HeadSize), int64(p.ValueSize)
	in := feeds{
		"query": floats(float32s(p.Query), batch, heads, length, size),
		"key":   floats(float32s(p.Key), batch, kv, fresh, size),
		"value": floats(float32s(p.Value), batch, kv, fresh, vSize),
	}
	if flat {
		for _, name := range []string{"query", "key", "value"} {
			in[name] = mergeHeads(in[name])
		}
	}
	if p.Past > 0 {
		in["past_key"] = floats(float32s(p.PastKey), batch, kv, past, size)
		in["past_value"] = floats(float32s(p.PastValue), batch, kv, past, vSize)
	}
	if p.Positions != nil {
		dims := []int64{batch, length}
		if a.Encoding.Axes != nil {
			dims = []int64{int64(len(p.Positions)) / (batch * length), batch, length}
		}
		in["position_ids"] = integers(slices.Clone(p.Positions), dims...)
	}
	if p.KeyMask != nil {
		mask := make([]int64, len(p.KeyMask))
		for i, real := range p.KeyMask {
			if real {
				mask[i] = 1
			}
		}
		in["attention_mask"] = integers(mask, batch, past+fresh)
	}
	if p.Bias != nil {
		in["attention_bias"] = floats(float32s(p.Bias), batch, heads, length, past+fresh)
	}
	if p.BiasBeforeSoftcap != nil {
		in["bias_before_softcap"] = floats(float32s(p.BiasBeforeSoftcap), batch, heads, length, past+fresh)
	}
	if a.Sinks != nil {
		in["sink_logits"] = floats(float32s(a.Sinks), heads)
	}
	if p.Documents != nil {
		in["document_ids"] = integers(slices.Clone(p.Documents), batch, past+length)
	}
	return in
}

// mergeHeads turns [B, H, L, D] into [B, L, H·D].
func mergeHeads(x tensor) tensor {
	b, h, l, d := x.dims[0], x.dims[1], x.dims[2], x.dims[3]
	merged := make([]float32, len(x.floats))
	for i := range b * h * l {
		batch, head, row := i/(h*l), i/l%h, i%l
		copy(merged[((batch*l+row)*h+head)*d:][:d], x.floats[i*d:][:d])
	}
	return floats(merged, b, l, h*d)
}

func float32s(values []float64) []float32 {
	list := make([]float32, len(values))
	for i, v := range values {
		list[i] = float32(v)
	}
	return list
}

// solve runs the problem through the op, compares all outputs with the float64
// reference, and returns them.
func solve(t tester, p ref.Problem, flat bool) map[string]tensor {
	t.Helper()
	got := outputsOf(t, p, flat)
	compare(t, p, flat, got)
	return got
}

// outputsOf runs the problem through the op.
func outputsOf(t tester, p ref.Problem, flat bool) map[string]tensor {
	t.Helper()
	in := feedsOf(p, flat)
	s, err := newSession(t, nodeOf(t, p), typesOf(in), 2)
	if err != nil {
		t.Fatal(err)
	}
	got, err := s.run(in)
	if err != nil {
		t.Fatal(err)
	}
	return got
}

// settle judges the op on a problem's shape, computed by the library and by the
// fallback, with as many random fillings as that takes: the largest error of few numbers
// is a matter of luck, on both sides, so what seems wrong is judged by sixteen times as
// many, and again.
func settle(t tester, p ref.Problem, flat bool) {
	t.Helper()
	first := filled(p, 0)
	const numbers = 4096
	settled(t, 1+numbers/max(1, len(first.Query)), flat, func() *onnx.Node { return nodeOf(t, p) }, nil, typesOf(feedsOf(first, flat)), func(seed uint64, run func(feeds, func(*judge, string, map[string]tensor))) {
		p := filled(p, seed)
		want, plain := solved(t, p)
		run(feedsOf(p, flat), func(j *judge, _ string, got map[string]tensor) { j.against(t, p, flat, got, want, plain) })
	})
}

// settled runs an op, computed in every way, until each judge is satisfied. node returns
// the op, around puts nodes around it (nil for none), and add fills the inputs for a seed,
// has them run, and judges what comes.
func settled(t tester, runs int, flat bool, node func() *onnx.Node, around func(*onnx.Node) []*onnx.Node, types map[string]onnx.DataType,
	add func(seed uint64, run func(feeds, func(*judge, string, map[string]tensor)))) {
	t.Helper()
	judges, sessions := map[string]*judge{}, map[string]opSession{}
	for way, open := range ways(flat) {
		nodes := []*onnx.Node{node()}
		if around != nil {
			nodes = around(nodes[0])
		}
		s, err := open(t, nodes, types, 2)
		if err != nil {
			t.Fatalf("%s: %v", way, err)
		}
		judges[way], sessions[way] = &judge{}, s
	}
	seed := 0
	for range 3 {
		for ; seed < runs; seed++ {
			add(uint64(seed), func(in feeds, judged func(*judge, string, map[string]tensor)) {
				for way, s := range sessions {
					got, err := s.run(in)
					if err != nil {
						t.Fatalf("%s: %v", way, err)
					}
					judged(judges[way], way, got)
				}
			})
		}
		for way, j := range judges {
			if j.holds() {
				delete(sessions, way)
			}
		}
		if len(sessions) == 0 {
			return
		}
		runs *= 16
	}
	for way, j := range judges {
		if !j.holds() {
			t.Errorf("computed by %s:", way)
			j.verdict(t)
		}
	}
}

// solved is the problem's solution in float64, and in plain float32.
func solved(t tester, p ref.Problem) (want, plain ref.Result) {
	t.Helper()
	want, err := ref.Run(p)
	if err != nil {
		t.Fatal(err)
	}
	if plain, err = ref.RunFloat32(p); err != nil {
		t.Fatal(err)
	}
	return want, plain
}

// compare judges the outputs of one run.
func compare(t tester, p ref.Problem, flat bool, got map[string]tensor) {
	t.Helper()
	var j judge
	j.add(t, p, flat, got)
	j.verdict(t)
}

// judge compares outputs with the float64 reference: their error may be twice
// that of the plain float32 implementation. It pools runs, because the largest
// error of a handful of numbers is a matter of luck.
type judge struct{ output, presentKey, presentValue, logSumExp pool }

func (j *judge) add(t tester, p ref.Problem, flat bool, got map[string]tensor) {
	t.Helper()
	want, plain := solved(t, p)
	j.against(t, p, flat, got, want, plain)
}

// against judges a run by the problem's solution and that of a plain implementation.
func (j *judge) against(t tester, p ref.Problem, flat bool, got map[string]tensor, want, plain ref.Result) {
	t.Helper()
	a := p.Attention
	batch, kv, total := int64(p.Batch), int64(a.KVHeads), int64(p.Past+newKeys(p))
	output := got["output"]
	if flat {
		output = splitHeads(output, int64(a.Heads))
	}
	j.output.add(t, "output", output, want.Output, plain.Output, batch, int64(a.Heads), int64(p.Length), int64(p.ValueSize))
	j.presentKey.add(t, "present_key", got["present_key"], want.PresentKey, plain.PresentKey, batch, kv, total, int64(a.HeadSize))
	j.presentValue.add(t, "present_value", got["present_value"], want.PresentValue, plain.PresentValue, batch, kv, total, int64(p.ValueSize))
	if sums, ok := got["log_sum_exp"]; ok {
		j.logSumExp.add(t, "log_sum_exp", sums, want.LogSumExp, plain.LogSumExp, batch, int64(a.Heads), int64(p.Length))
	}
}

func (j *judge) holds() bool {
	return j.output.holds() && j.presentKey.holds() && j.presentValue.holds() && j.logSumExp.holds()
}

func (j *judge) verdict(t tester) {
	t.Helper()
	j.output.verdict(t, "output")
	j.presentKey.verdict(t, "present_key")
	j.presentValue.verdict(t, "present_value")
	j.logSumExp.verdict(t, "log_sum_exp")
}

// splitHeads turns [B, L, H·D] into [B, H, L, D]; other ranks stay, for the
// comparison of shapes to see.
func splitHeads(x tensor, heads int64) tensor {
	if len(x.dims) != 3 {
		return x
	}
	b, l, d := x.dims[0], x.dims[1], x.dims[2]/heads
	split := make([]float32, len(x.floats))
	for i := range b * heads * l {
		batch, head, row := i/(heads*l), i/l%heads, i%l
		copy(split[i*d:][:d], x.floats[((batch*l+row)*heads+head)*d:][:d])
	}
	return floats(split, b, heads, l, d)
}

// within judges one output by itself.
func within(t tester, name string, got tensor, want, plain []float64, dims ...int64) {
	t.Helper()
	var p pool
	p.add(t, name, got, want, plain, dims...)
	p.verdict(t, name)
}

// pool holds the largest errors of one output over all runs, and where the
// op's stands.
type pool struct {
	err, plainErr, largest float64
	got, want              float64
}

func (p *pool) add(t tester, name string, got tensor, want, plain []float64, dims ...int64) {
	t.Helper()
	if !slices.Equal(got.dims, dims) {
		t.Fatalf("%s has shape %v, want %v", name, got.dims, dims)
	}
	for i, w := range want {
		g := float64(got.floats[i])
		if math.IsNaN(g) || math.IsInf(g, 0) != math.IsInf(w, 0) {
			t.Fatalf("%s[%d] is %g, want %g", name, i, g, w)
		}
		if g == w { // infinities have no difference
			continue
		}
		if e := math.Abs(g - w); e > p.err {
			p.err, p.got, p.want = e, g, w
		}
		p.plainErr = max(p.plainErr, math.Abs(plain[i]-w))
		p.largest = max(p.largest, math.Abs(w))
	}
}

// limit is twice the error of the plain implementation. Where that one is exact
// (a single visible key), it counts as one rounding of the largest result.
func (p *pool) limit() float64 { return 2 * max(p.plainErr, p.largest*0x1p-24) }

func (p *pool) holds() bool { return p.err <= p.limit() }

func (p *pool) verdict(t tester, name string) {
	t.Helper()
	if !p.holds() {
		t.Errorf("%s differs by %.3g from the float64 reference (%g instead of %g); a plain float32 implementation differs by %.3g, so %.3g is allowed",
			name, p.err, p.got, p.want, p.plainErr, p.limit())
	}
}
