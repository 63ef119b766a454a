package prove

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"

	"github.com/rope-rewrite/rope-rewrite/internal/engine"
	"github.com/rope-rewrite/rope-rewrite/onnx"
	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/dim"
	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/eval"
	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/graph"
	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/ir"
	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/lower"
	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/measure"
	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/rotation"
	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/score"
	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/site"
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

// Site runs the original site, the same in float64, and the lowered op on
// random inputs. The op's error against float64 must be at most twice the
// original's own, which must stay within what float32 allows.
func Site(ctx context.Context, l *eval.Evaluator, s *site.Sized, lift *measure.Measured) (*Proof, error) {
	w, err := lower.Bind(s, lift)
	if err != nil {
		return nil, graph.Refuse(s.Softmax, "the op that should replace it cannot be written: %v", err)
	}
	nodes, constants, err := lower.Nodes(w, lift.Attention)
	if err != nil {
		return nil, graph.Refuse(s.Softmax, "the op that should replace it cannot be written: %v", err)
	}
	if n := lift.Attention.Encoding.Reach.Trained; n > 0 && !slices.ContainsFunc(trials(lift), func(t trial) bool { return t.tokens() > n }) {
		return nil, graph.Refuse(s.Softmax, "its frequencies change with more than %d tokens, which is more than a proof can hold; %s", n, rotation.OnceForAll)
	}
	return Compare(ctx, l, s, lift, nodes, constants)
}

var resultNames = []string{"output", "present key", "present value"}

const presentKey = 1 // among them

// apriori bounds the error of evaluating a trial in a type of the given epsilon: the rounding of
// the scores carries into the probabilities, the sum over keys adds its own.
func apriori(result int, l *measure.Measured, t trial, epsilon float64) float64 {
	a := l.Attention
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
func loadOp(ctx context.Context, l *eval.Evaluator, s *site.Sized, lift *measure.Measured, nodes []*onnx.Node, constants []*onnx.Tensor) (*eval.Loaded, error) {
	p := &eval.Piece{Graph: l.Graph, Nodes: nodes, Consts: constants, Boundaries: s.Boundaries(), Typed: s.TrackedLengths(), Outputs: s.Results()}
	if sides := freeInputs(l.Graph.Source, p); len(sides) > 0 {
		made, err := eval.Extract(l.Graph.Source, sides, nil)
		if err != nil {
			return nil, fmt.Errorf("what its bias is made of cannot be evaluated: %w", err)
		}
		p.Nodes, p.Inputs, p.Sizes = append(made.Nodes, p.Nodes...), made.Inputs, made.Sizes
		p.Consts = append(slices.Clone(p.Consts), made.Consts...)
	}
	m := p.Model(onnx.Float)
	m.RequireOpset(graph.OpsDomain, 1)
	session, err := l.Session(ctx, m, p.Outputs)
	if err != nil {
		return nil, err
	}
	return &eval.Loaded{Session: session, Piece: p, Table: l.Table, Elem: onnx.Float}, nil
}

// freeInputs lists the values of the graph that a piece's nodes read and nothing in
// the piece gives.
func freeInputs(g *graph.Graph, p *eval.Piece) (list []string) {
	given := map[string]bool{}
	for _, v := range p.Boundaries {
		given[v] = true
	}
	for _, v := range p.Typed {
		given[v.Name] = true
	}
	for _, t := range p.Consts {
		given[t.Name] = true
	}
	for _, n := range p.Nodes {
		for _, v := range n.Inputs {
			if v != "" && !given[v] && (g.Producer[v] != nil || g.Constants[v] != nil || g.Inputs[v] != nil) {
				list = append(list, v)
			}
		}
		for _, v := range n.Outputs {
			given[v] = true
		}
	}
	return ir.Unique(list)
}

// trialFeeds makes the inputs of a trial; hidden states are float32 numbers.
func trialFeeds(l *eval.Evaluator, rng *rand.Rand, s *site.Sized, lift *measure.Measured, t trial) (feeds map[string]engine.Tensor, mask []int64) {
	feeds = map[string]engine.Tensor{}
	for _, c := range s.Boundaries() {
		dims := dim.Evaluate(l.Table.Dims[c], t.pt)
		x := make([]float32, engine.Elements(dims))
		for i := range x {
			if l.Table.Scales[c] {
				x[i] = 0.5 + rng.Float32() // as of norms and temperatures
				continue
			}
			x[i] = float32(t.magnitude * rng.NormFloat64())
		}
		ir.Round(x, l.Graph.Element(c))
		feeds[c] = engine.Float32s(x, dims...)
	}
	site.Feed(t.lengths, s, feeds)
	mask = eval.Padding(rng, t.pt, t.padding)
	total := t.pt.L + t.pt.P
	if lift.Mask != nil {
		dims := dim.Evaluate(l.Table.Inputs[lift.Mask.Name], t.pt)
		if dims[0] == 1 { // one row of padding for the whole batch
			for b := range t.pt.B {
				copy(mask[b*total:], mask[:total])
			}
		}
		// Roles are checked to be integers when the input is found.
		feeds[lift.Mask.Name], _ = engine.Integers(lift.Mask.Type, mask[:engine.Elements(dims)], dims...)
	}
	for _, v := range lift.Others {
		if v != lift.Position {
			dims := dim.Evaluate(l.Table.Inputs[v.Name], t.pt)
			// Roles are checked to be integers when the input is found.
			feeds[v.Name], _ = engine.Integers(v.Type, score.Integers(rng, engine.Elements(dims), t.pt), dims...)
		}
	}
	if lift.Position != nil {
		dims := dim.Evaluate(l.Table.Inputs[lift.Position.Name], t.pt)
		positions := make([]int64, engine.Elements(dims))
		last := min(100_000, lift.PositionLimit)
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
		feeds[lift.Position.Name], _ = engine.Integers(lift.Position.Type, positions, dims...)
	}
	return feeds, mask
}

// cast brings the hidden states among feeds into the session's type and keeps
// of the integer inputs those that the piece reads.
func cast(l *eval.Loaded, feeds map[string]engine.Tensor) map[string]engine.Tensor {
	reads := map[string]bool{}
	for _, v := range l.Piece.Inputs {
		reads[v.Name] = true
	}
	for _, c := range l.Piece.Boundaries {
		reads[c] = true
	}
	for _, v := range l.Piece.Typed {
		reads[v.Name] = true
	}
	out := map[string]engine.Tensor{}
	for name, t := range feeds {
		switch {
		case !reads[name]:
		case t.Type == onnx.Float && l.Elem == onnx.Double:
			out[name] = engine.Float64s(t.Values(), t.Dims...)
		default:
			out[name] = t
		}
	}
	return out
}
