package rewrite

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"

	"github.com/rope-rewrite/rope-rewrite/internal/engine"
	"github.com/rope-rewrite/rope-rewrite/onnx"
	"github.com/rope-rewrite/rope-rewrite/rope"
)

// Proof is what a comparison of the original site and the op found.
type Proof struct {
	MaxError      float64 `json:"max_error"`      // of the op against the original in float64
	OriginalError float64 `json:"original_error"` // of the original's own float32
	Cases         int     `json:"cases"`
}

// trial is one set of inputs under which both are run.
type trial struct {
	pt        point
	padding   int   // kind of padding, as padding makes them
	positions int64 // first position; −1 follows the padding as tokenisers do, −2 takes random ones
	magnitude float64
}

// trials are chosen to reach every part of the op: lengths that are multiples
// of nothing, several tiles, decode, chunked prefill, batches, padding on
// either side and with holes, positions up to 100,000 or the table's end.
func trials(l *lifted) []trial {
	last := min(100_000, l.positionLimit)
	list := []trial{
		{pt: point{1, 5, 0}, positions: 0, magnitude: 1},
		{pt: point{2, 7, 4}, padding: 1, positions: -1, magnitude: 1},
		{pt: point{3, 1, 9}, padding: 1, positions: -1, magnitude: 1},
		{pt: point{2, 33, 0}, padding: 3, positions: -2, magnitude: 1},
		{pt: point{1, 8, 3}, positions: last - 7, magnitude: 1},
		{pt: point{2, 70, 131}, padding: 1, positions: -1, magnitude: 1},
		{pt: point{1, 1, 300}, positions: last, magnitude: 1},
		{pt: point{1, 131, 5}, padding: 2, positions: 5, magnitude: 3},
		{pt: point{2, 19, 6}, padding: 4, positions: -2, magnitude: 0.3},
	}
	if w := l.attention.Mask.Window; w > 0 && w < 8192 {
		list = append(list,
			trial{pt: point{1, 3, w + 5}, positions: w + 5, magnitude: 1},
			trial{pt: point{2, min(w, 300) + 7, w}, padding: 1, positions: -1, magnitude: 1})
	}
	if l.position == nil {
		for i := range list {
			list[i].positions = list[i].pt.P // the graph counts by itself
		}
	}
	return list
}

// prove runs the original site, the same in float64, and the lowered op on
// random inputs. The op's error against float64 must be at most twice the
// original's own, which must stay within what float32 allows.
func (l *lifter) prove(ctx context.Context, s *site, lift *lifted) (*Proof, error) {
	nodes, constants, err := lower(s.wiring(lift), lift.attention)
	if err != nil {
		return nil, refuse(s.softmax, "the op that should replace it cannot be written: %v", err)
	}
	return l.compare(ctx, s, lift, nodes, constants)
}

// compare proves lowered nodes against the site.
func (l *lifter) compare(ctx context.Context, s *site, lift *lifted, nodes []*onnx.Node, constants []*onnx.Tensor) (*Proof, error) {
	piece, err := l.graph.source.extract(s.results(), s.cuts())
	if err != nil {
		return nil, refuse(s.softmax, "the site cannot be evaluated by itself: %v", err)
	}
	original, err := l.load(ctx, piece)
	if err != nil {
		return nil, refuse(s.softmax, "the site does not load: %v", err)
	}
	defer original.session.Close()
	definition, err := l.graph.definition.extract(s.results(), s.cuts())
	if err != nil {
		return nil, refuse(s.softmax, "the site's definition cannot be evaluated by itself: %v", err)
	}
	doubleSession, err := l.session(ctx, definition.double(), definition.outputs)
	if err != nil {
		return nil, refuse(s.softmax, "the site does not load in float64: %v", err)
	}
	defer doubleSession.Close()
	double := &loaded{session: doubleSession, piece: definition, table: l.table, elem: onnx.Double}
	op, err := l.loadOp(ctx, s, lift, nodes, constants)
	if err != nil {
		return nil, refuse(s.softmax, "the op that should replace it does not load: %v", err)
	}
	defer op.session.Close()

	proof := &Proof{}
	groups := map[float64][3]resultErrors{} // by the size of the hidden states
	rng := rand.New(rand.NewPCG(7, 8))
	for _, t := range trials(lift) {
		var errs [3]resultErrors
		for range t.draws(lift.attention) {
			feeds, mask := l.trialFeeds(rng, s, lift, t)
			var results [3]map[string]engine.Tensor
			for i, run := range []*loaded{original, double, op} {
				if results[i], err = run.run(ctx, t.pt, run.cast(feeds)); err != nil {
					return nil, refuse(s.softmax, "%s does not run with %v: %v", []string{"the site", "the site in float64", "the op"}[i], t.pt, err)
				}
			}
			for i, name := range s.results() {
				if err := errs[i].add(results[0][name], results[1][name], results[2][name], meaningful(i, lift, t.pt, mask)); err != nil {
					return nil, refuse(s.softmax, "%s with %v: %v", resultNames[i], t.pt, err)
				}
			}
		}
		for i := range s.results() {
			if err := errs[i].judge(apriori(i, lift, t)); err != nil {
				return nil, refuse(s.softmax, "%s with %v: %v", resultNames[i], t.pt, err)
			}
			group := groups[t.magnitude]
			group[i].merge(errs[i])
			groups[t.magnitude] = group
			proof.MaxError = math.Max(proof.MaxError, errs[i].op)
			proof.OriginalError = math.Max(proof.OriginalError, errs[i].original)
		}
		proof.Cases++
	}
	for _, group := range groups {
		for i := range s.results() {
			if err := group[i].judgeLargest(); err != nil {
				return nil, refuse(s.softmax, "%s: %v", resultNames[i], err)
			}
		}
	}
	return proof, nil
}

// draws is how often a trial is repeated with other numbers: the largest error
// of a handful of elements says little about an implementation.
func (t trial) draws(a rope.Attention) int {
	elements := t.pt.B * t.pt.L * int64(a.Heads*a.HeadSize)
	return int(min(max(8192/elements, 1), 32))
}

var resultNames = []string{"output", "present key", "present value"}

// apriori bounds the error of a float32 evaluation of a trial: the rounding of
// the scores carries into the probabilities, the sum over keys adds its own.
func apriori(result int, l *lifted, t trial) float64 {
	a := l.attention
	gain := a.Encoding.EffectiveGain()
	largest := 6 * t.magnitude // of normal deviates
	keys := float64(t.pt.L + t.pt.P)
	switch result {
	case 0:
		norm := 3 * math.Sqrt(float64(a.HeadSize)) * t.magnitude * gain
		score := a.EffectiveScale() * norm * norm
		return float32eps * largest * (2*score*math.Sqrt(float64(a.HeadSize)) + keys + 16)
	case 1:
		return float32eps * largest * gain * 8
	}
	return 0
}

// resultErrors holds the errors of one result against float64: the largest,
// and the sums of their squares.
type resultErrors struct {
	original, op               float64
	originalSquares, opSquares float64
	largest                    float64 // element of the result
	count                      float64
}

func (e *resultErrors) add(original, double, op engine.Tensor, counts func(i int64) bool) error {
	for _, t := range []engine.Tensor{original, op} {
		if !slices.Equal(t.Dims, double.Dims) {
			return fmt.Errorf("its shape is %v, %v was expected", t.Dims, double.Dims)
		}
	}
	x, y, z := original.Values(), double.Values(), op.Values()
	for i := range y {
		if !counts(int64(i)) {
			continue
		}
		if math.IsNaN(x[i]) || math.IsNaN(y[i]) || math.IsNaN(z[i]) {
			return fmt.Errorf("element %d is %g in the original, %g in float64 and %g in the op", i, x[i], y[i], z[i])
		}
		e.original = math.Max(e.original, math.Abs(x[i]-y[i]))
		e.op = math.Max(e.op, math.Abs(z[i]-y[i]))
		e.originalSquares += (x[i] - y[i]) * (x[i] - y[i])
		e.opSquares += (z[i] - y[i]) * (z[i] - y[i])
		e.largest = math.Max(e.largest, math.Abs(y[i]))
		e.count++
	}
	return nil
}

func (e *resultErrors) merge(other resultErrors) {
	e.original = math.Max(e.original, other.original)
	e.op = math.Max(e.op, other.op)
	e.largest = math.Max(e.largest, other.largest)
}

// judge applies the rule to one trial: the op is off by at most twice what the
// original is off by itself, as root mean square (which hardly varies from
// draw to draw), and the original by no more than float32 explains. A quarter
// of a unit in the last place of the largest element is never held against the op.
func (e resultErrors) judge(limit float64) error {
	if e.original > limit {
		return fmt.Errorf("the original itself is off by %.3g from float64, more than the %.3g that float32 explains", e.original, limit)
	}
	if e.count == 0 {
		return nil
	}
	rms := func(squares float64) float64 { return math.Sqrt(squares / e.count) }
	if allowed := math.Max(2*rms(e.originalSquares), e.largest*float32eps/4); !(rms(e.opSquares) <= allowed) {
		return fmt.Errorf("the op is off by %.3g (root mean square) from the original in float64; at most %.3g, twice the original's own error, was expected",
			rms(e.opSquares), allowed)
	}
	return nil
}

// judgeLargest applies the rule to the largest error of several trials, so
// that one wrong element among many is seen.
func (e resultErrors) judgeLargest() error {
	if allowed := math.Max(2*e.original, e.largest*float32eps/2); !(e.op <= allowed) {
		return fmt.Errorf("the op is off by %.3g from the original in float64; at most %.3g, twice the original's own error, was expected", e.op, allowed)
	}
	return nil
}

// meaningful says which elements of a result are compared: all of the caches,
// and of the output the rows that see a key.
func meaningful(result int, l *lifted, pt point, mask []int64) func(i int64) bool {
	if result != 0 {
		return func(int64) bool { return true }
	}
	fit := scoreFit{mask: l.attention.Mask}
	sees := make([]bool, pt.B*pt.L)
	for b := range pt.B {
		for i := range pt.L {
			for j := range pt.L + pt.P {
				sees[b*pt.L+i] = sees[b*pt.L+i] || fit.visible(pt, mask, b, i, j)
			}
		}
	}
	// The output's element → row map, by walking its layout once.
	ly := l.layouts.output
	dims := make([]int64, len(ly.axes))
	for i, a := range ly.axes {
		dims[i] = map[axis]int64{batchAxis: pt.B, headAxis: ly.heads, rowAxis: pt.L, channelAxis: ly.channels,
			mergedAxis: ly.heads * ly.channels, batchHeadAxis: pt.B * ly.heads}[a]
	}
	keep := make([]bool, engine.Elements(dims))
	for b := range pt.B {
		for i := range pt.L {
			for h := range ly.heads {
				for c := range ly.channels {
					keep[ly.index(dims, b, h, i, c)] = sees[b*pt.L+i]
				}
			}
		}
	}
	return func(i int64) bool { return keep[i] }
}

// loadOp loads the lowered op by itself.
func (l *lifter) loadOp(ctx context.Context, s *site, lift *lifted, nodes []*onnx.Node, constants []*onnx.Tensor) (*loaded, error) {
	p := &piece{graph: l.graph, nodes: nodes, consts: constants, cuts: s.cuts(), outputs: s.results()}
	if lift.position != nil {
		p.inputs = append(p.inputs, lift.position)
	}
	if lift.mask != nil {
		p.inputs = append(p.inputs, lift.mask)
	}
	m := p.model(onnx.Float)
	m.RequireOpset(opsDomain, 1)
	session, err := l.session(ctx, m, p.outputs)
	if err != nil {
		return nil, err
	}
	return &loaded{session: session, piece: p, table: l.table, elem: onnx.Float}, nil
}

// trialFeeds makes the inputs of a trial; hidden states are float32 numbers.
func (l *lifter) trialFeeds(rng *rand.Rand, s *site, lift *lifted, t trial) (feeds map[string]engine.Tensor, mask []int64) {
	feeds = map[string]engine.Tensor{}
	for _, c := range s.cuts() {
		dims := evaluate(l.table.dims[c], t.pt)
		x := make([]float32, engine.Elements(dims))
		for i := range x {
			x[i] = float32(t.magnitude * rng.NormFloat64())
		}
		feeds[c] = engine.Float32s(x, dims...)
	}
	mask = padding(rng, t.pt, t.padding)
	total := t.pt.L + t.pt.P
	if lift.mask != nil {
		dims := evaluate(l.table.inputs[lift.mask.Name], t.pt)
		if dims[0] == 1 { // one row of padding for the whole batch
			for b := range t.pt.B {
				copy(mask[b*total:], mask[:total])
			}
		}
		// Roles are checked to be integers when the input is found.
		feeds[lift.mask.Name], _ = engine.Integers(lift.mask.Type, mask[:engine.Elements(dims)], dims...)
	}
	if lift.position != nil {
		dims := evaluate(l.table.inputs[lift.position.Name], t.pt)
		positions := make([]int64, engine.Elements(dims))
		for i := range positions {
			b, row := int64(i)/t.pt.L, int64(i)%t.pt.L
			switch t.positions {
			case -1:
				// The number of real tokens before this one; 1 for padding.
				positions[i] = -1
				for j := range t.pt.P + row + 1 {
					positions[i] += mask[b*total+j]
				}
				if mask[b*total+t.pt.P+row] == 0 {
					positions[i] = 1
				}
				positions[i] = min(positions[i], lift.positionLimit)
			case -2:
				positions[i] = rng.Int64N(min(100_000, lift.positionLimit) + 1)
			default:
				positions[i] = min(max(t.positions, 0)+row, lift.positionLimit) // a table's last row stands for what lies beyond
			}
		}
		feeds[lift.position.Name], _ = engine.Integers(lift.position.Type, positions, dims...)
	}
	return feeds, mask
}

// cast brings the hidden states among feeds into the session's type and keeps
// of the integer inputs those that the piece reads.
func (l *loaded) cast(feeds map[string]engine.Tensor) map[string]engine.Tensor {
	reads := map[string]bool{}
	for _, v := range l.piece.inputs {
		reads[v.Name] = true
	}
	for _, c := range l.piece.cuts {
		reads[c] = true
	}
	out := map[string]engine.Tensor{}
	for name, t := range feeds {
		switch {
		case !reads[name]:
		case t.Type == onnx.Float && l.elem == onnx.Double:
			out[name] = engine.Float64s(t.Values(), t.Dims...)
		default:
			out[name] = t
		}
	}
	return out
}
