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

	// Skipped counts the cases with several rows that the original itself does
	// not run, for the reason SkippedWhy. Each was run with one row instead, and
	// with several rows against float64 alone.
	Skipped    int    `json:"skipped"`
	SkippedWhy string `json:"skipped_why"`

	// PaddedDiffer says that queries of padded tokens that see no key get
	// something else from the op than from the original. The site is then
	// rewritten only if no other token was seen to depend on them.
	PaddedDiffer bool `json:"padded_differ"`
}

// trial is one set of inputs under which both are run.
type trial struct {
	pt        point
	padding   int   // kind of padding, as padding makes them
	positions int64 // first position; −1 follows the padding as tokenisers do, −2 takes random ones
	magnitude float64
	counts    *counts // of a counted cache; nil for others
	reach     int64   // largest position that is fed; 0 is 100,000
	more      int64   // times as many draws, where there are few trials; 0 is 1
}

// trials are chosen to reach every part of the op: lengths that are multiples
// of nothing, several tiles, decode, chunked prefill, batches, padding on
// either side and with holes, positions up to 100,000 or the table's end.
func trials(l *lifted) []trial {
	if l.counted != nil {
		return countedTrials(l)
	}
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
	if !l.layouts.cached {
		list = append(list,
			trial{pt: point{1, 1, 0}, positions: 0, magnitude: 1},
			trial{pt: point{3, 17, 0}, padding: 1, positions: -1, magnitude: 1},
			trial{pt: point{2, 64, 0}, padding: 2, positions: -2, magnitude: 1},
			trial{pt: point{1, 257, 0}, positions: 0, magnitude: 1})
	}
	if w := l.attention.Mask.Window; w > 0 && (w < 8192 && l.layouts.cached || w < 512) {
		list = append(list,
			trial{pt: point{1, 3, w + 5}, positions: w + 5, magnitude: 1},
			trial{pt: point{2, min(w, 300) + 7, w}, padding: 1, positions: -1, magnitude: 1})
	}
	if n := l.attention.Encoding.Reach.Trained; n > 0 && (l.layouts.cached || n < 512) {
		list = append(list,
			trial{pt: point{2, 1, n - 1}, magnitude: 1},
			trial{pt: point{2, 1, n}, magnitude: 1},
			trial{pt: point{1, 6, max(n-3, 0)}, magnitude: 1})
	}
	if l.fixed != (point{}) {
		list = l.atFixed(list)
	}
	for i := range list {
		pt := &list[i].pt
		if !l.layouts.cached {
			pt.L, pt.P = pt.L+pt.P, 0 // all tokens are new
		}
		over := max(pt.L+pt.P-l.tokenLimit, 0)
		fewer := min(over, pt.P)
		pt.P, pt.L = pt.P-fewer, pt.L-(over-fewer)
	}
	if l.angles != rope.Float32 {
		// Angles of 16 bits are soon off by more than a proof could see through.
		for i := range list {
			list[i].reach = coarseReach
			if !l.layouts.cached || l.position == nil {
				list[i].pt.L, list[i].pt.P = min(list[i].pt.L, coarseReach/2), min(list[i].pt.P, coarseReach/2)
			}
		}
	}
	for i := range list {
		list[i] = list[i].smaller(l.attention.Heads)
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
func (l *lifter) prove(ctx context.Context, s *sizedSite, lift *lifted) (*Proof, error) {
	w, err := s.wiring(lift)
	if err != nil {
		return nil, refuse(s.softmax, "the op that should replace it cannot be written: %v", err)
	}
	nodes, constants, err := lower(w, lift.attention)
	if err != nil {
		return nil, refuse(s.softmax, "the op that should replace it cannot be written: %v", err)
	}
	if n := lift.attention.Encoding.Reach.Trained; n > 0 && !slices.ContainsFunc(trials(lift), func(t trial) bool { return t.tokens() > n }) {
		return nil, refuse(s.softmax, "its frequencies change with more than %d tokens, which is more than a proof can hold; %s", n, onceForAll)
	}
	return l.compare(ctx, s, lift, nodes, constants)
}

// tokens is the number of tokens of the longest row after the call.
func (t trial) tokens() int64 {
	if t.counts != nil {
		return t.counts.total
	}
	return t.pt.L + t.pt.P
}

// draws is how often a trial is repeated with other numbers: the largest error
// of a handful of elements says little about an implementation.
func (t trial) draws(a rope.Attention) int {
	elements := t.pt.B * t.pt.L * int64(a.Heads*a.HeadSize)
	most := int64(mostDraws)
	if t.counts != nil { // whose buffers may be large
		most = min(most, max(1<<20/(t.pt.B*max(t.pt.P, t.counts.total)*int64(a.KVHeads*a.HeadSize)), 1))
	}
	draws := min(max(enoughElements/elements, 1), most)
	if draws*elements < 4*enoughElements {
		draws *= max(t.more, 1)
	}
	return int(draws)
}

// A trial is repeated until so many elements are compared, rows that see no key
// not counted, but not more often than that.
const (
	enoughElements = 8192
	mostDraws      = 32
)

// coarseReach is the largest position in the proof of a site whose angles have 16 bits.
const coarseReach = 63

var resultNames = []string{"output", "present key", "present value"}

const presentKey = 1 // among them

// apriori bounds the error of evaluating a trial in a type of the given epsilon: the rounding of
// the scores carries into the probabilities, the sum over keys adds its own.
func apriori(result int, l *lifted, t trial, epsilon float64) float64 {
	a := l.attention
	gain := a.Encoding.EffectiveGain()
	largest := 6 * t.magnitude // of normal deviates
	keys := float64(t.pt.L + t.pt.P)
	switch result {
	case 0:
		norm := 3 * math.Sqrt(float64(a.HeadSize)) * t.magnitude * gain
		score := a.EffectiveScale() * norm * norm
		return epsilon * largest * (2*score*math.Sqrt(float64(a.HeadSize)) + keys + 16)
	case 1:
		return epsilon * largest * gain * (8 + float64(t.reach))
	}
	return 0
}

// loadOp loads the lowered op by itself.
func (l *lifter) loadOp(ctx context.Context, s *sizedSite, lift *lifted, nodes []*onnx.Node, constants []*onnx.Tensor) (*loaded, error) {
	p := &piece{graph: l.graph, nodes: nodes, consts: constants, cuts: s.cuts(), typed: s.counts(), outputs: s.results()}
	if sides := l.graph.source.besides(p); len(sides) > 0 {
		made, err := l.graph.source.extract(sides, nil)
		if err != nil {
			return nil, fmt.Errorf("what its bias is made of cannot be evaluated: %w", err)
		}
		p.nodes, p.inputs, p.sizes = append(made.nodes, p.nodes...), made.inputs, made.sizes
		p.consts = append(slices.Clone(p.consts), made.consts...)
	}
	m := p.model(onnx.Float)
	m.RequireOpset(opsDomain, 1)
	session, err := l.session(ctx, m, p.outputs)
	if err != nil {
		return nil, err
	}
	return &loaded{session: session, piece: p, table: l.table, elem: onnx.Float}, nil
}

// besides lists the values of the graph that a piece's nodes read and nothing in
// the piece gives.
func (g *graph) besides(p *piece) (list []string) {
	given := map[string]bool{}
	for _, v := range p.cuts {
		given[v] = true
	}
	for _, v := range p.typed {
		given[v.Name] = true
	}
	for _, t := range p.consts {
		given[t.Name] = true
	}
	for _, n := range p.nodes {
		for _, v := range n.Inputs {
			if v != "" && !given[v] && (g.producer[v] != nil || g.constants[v] != nil || g.inputs[v] != nil) {
				list = append(list, v)
			}
		}
		for _, v := range n.Outputs {
			given[v] = true
		}
	}
	return unique(list)
}

// trialFeeds makes the inputs of a trial; hidden states are float32 numbers.
func (l *lifter) trialFeeds(rng *rand.Rand, s *sizedSite, lift *lifted, t trial) (feeds map[string]engine.Tensor, mask []int64) {
	feeds = map[string]engine.Tensor{}
	for _, c := range s.cuts() {
		dims := evaluate(l.table.dims[c], t.pt)
		x := make([]float32, engine.Elements(dims))
		for i := range x {
			if l.table.scales[c] {
				x[i] = 0.5 + rng.Float32() // as of norms and temperatures
				continue
			}
			x[i] = float32(t.magnitude * rng.NormFloat64())
		}
		round(x, l.graph.element(c))
		feeds[c] = engine.Float32s(x, dims...)
	}
	t.counts.feed(s, feeds)
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
	for _, v := range lift.others {
		if v != lift.position {
			dims := evaluate(l.table.inputs[v.Name], t.pt)
			// Roles are checked to be integers when the input is found.
			feeds[v.Name], _ = engine.Integers(v.Type, integers(rng, engine.Elements(dims), t.pt), dims...)
		}
	}
	if lift.position != nil {
		dims := evaluate(l.table.inputs[lift.position.Name], t.pt)
		positions := make([]int64, engine.Elements(dims))
		last := min(100_000, lift.positionLimit)
		if t.reach > 0 {
			last = min(last, t.reach)
		}
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
				positions[i] = min(positions[i], last)
			case -2:
				positions[i] = rng.Int64N(last + 1)
			default:
				positions[i] = min(max(t.positions, 0)+row, last) // a table's last row stands for what lies beyond
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
	for _, v := range l.piece.typed {
		reads[v.Name] = true
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
