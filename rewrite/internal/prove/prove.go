package prove

import (
	"context"
	"fmt"
	"math"
	"slices"

	"github.com/rope-rewrite/rope-rewrite/customop"
	"github.com/rope-rewrite/rope-rewrite/onnx"
	"github.com/rope-rewrite/rope-rewrite/provenance"
	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/eval"
	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/graph"
	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/ir"
	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/lower"
	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/measure"
	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/rotation"
	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/site"
)

// Proof says how the op compared with the original on random inputs.
type Proof = provenance.Proof

// Site tests on random inputs that the op computes what the site does. The op's error
// against the site in float64 must be at most twice the error of the original itself,
// which in turn must be no more than its arithmetic explains. It returns a graph.Refusal
// where that is not so, or where something does not run.
func Site(ctx context.Context, ev *eval.Evaluator, s *site.Sized, measured *measure.Measured) (*Proof, error) {
	binding, err := lower.Bind(s, measured)
	if err != nil {
		return nil, graph.Refuse(s.Softmax, "the op that should replace it cannot be written: %v", err)
	}
	nodes, constants, err := lower.Nodes(binding, measured.Attention, lower.ExtraInputs{})
	if err != nil {
		return nil, graph.Refuse(s.Softmax, "the op that should replace it cannot be written: %v", err)
	}
	if n := measured.Attention.Encoding.LengthDependent.Trained; n > 0 && !slices.ContainsFunc(trials(measured), func(t trial) bool { return t.reach(measured) > n }) {
		return nil, graph.Refuse(s.Softmax, "its frequencies change beyond %d tokens, which is too long to verify; this looks like %s", n, rotation.OnceForAll)
	}
	return Compare(ctx, ev, s, measured, nodes, constants)
}

// The results of a site, an attention's in the order of site.Site.Results.
const (
	output = iota
	presentKey
	presentValue
	paddedOutput // the rows of the output that are PaddedWithoutKeys, judged apart from the others
	rotatedQuery // of a rotation without its attention
	rotatedKey
	resultKinds // how many these are
)

var resultNames = []string{output: "output", presentKey: "present key", presentValue: "present value", rotatedQuery: "rotated query", rotatedKey: "rotated key"}

// kindsOf returns the kinds of a site's results, in their order.
func kindsOf(s *site.Sized) []int {
	if s.Alone > 0 {
		return []int{rotatedQuery, rotatedKey}
	}
	return []int{output, presentKey, presentValue}[:len(s.Results())]
}

// What a bound of rounding errors counts with.
const (
	largestNormal   = 6  // a normal random number is larger once in 5·10⁸ draws
	longestVector   = 3  // a vector of normal random numbers is hardly longer than its typical length times this
	outputRoundings = 16 // roundings of an output other than those of its sums
	keyRoundings    = 8  // roundings of a rotated key other than that of its angle
)

// apriori bounds the error of a result that is computed in a type of the given epsilon.
// The rounding of scores carries over to the probabilities, and the sum over keys adds
// its own. The angle of a rotation is rounded in proportion to the position.
func apriori(result int, m *measure.Measured, t trial, epsilon float64) float64 {
	a := m.Attention
	gain := a.Encoding.EffectiveGain()
	queries, keys := gain*largestFactor(a.QueryFactors), gain*largestFactor(a.KeyFactors)
	magnitude := t.magnitude
	if m.QueryNorms != nil || m.KeyNorms != nil {
		magnitude = math.Max(magnitude, 1) // a norm makes small numbers large
	}
	largest := largestNormal * magnitude
	count := float64(t.pt.Keys())
	switch result {
	case output:
		norm := longestVector * math.Sqrt(float64(a.HeadSize)) * magnitude
		score := a.EffectiveScale() * norm * queries * norm * keys
		return epsilon * largest * (2*score*math.Sqrt(float64(a.HeadSize)) + count + outputRoundings)
	case rotatedQuery:
		return epsilon * largest * gain * math.Abs(m.Rotated.Query) * (keyRoundings + float64(t.largestPosition))
	case rotatedKey:
		keys *= math.Abs(m.Rotated.Key)
		fallthrough
	case presentKey:
		return epsilon * largest * keys * (keyRoundings + float64(t.largestPosition))
	}
	return 0
}

// largestFactor is the largest of the factors behind a rotation, 1 without.
func largestFactor(list []float64) float64 {
	if list == nil {
		return 1
	}
	return max(slices.Max(list), -slices.Min(list))
}

// loadOp loads the nodes of the op as a model of their own.
func loadOp(ctx context.Context, ev *eval.Evaluator, s *site.Sized, measured *measure.Measured, nodes []*onnx.Node, constants []*onnx.Tensor) (*eval.Loaded, error) {
	p := &eval.Piece{Graph: ev.Graph, Nodes: nodes, Consts: constants, Boundaries: s.Boundaries(), Typed: s.TrackedLengths(), Outputs: s.Results()}
	if free := freeInputs(ev.Graph.Source, p); len(free) > 0 {
		made, err := eval.Extract(ev.Graph.Source, free, nil)
		if err != nil {
			return nil, fmt.Errorf("what its bias is made of cannot be evaluated: %w", err)
		}
		p.Nodes, p.Inputs, p.Sizes = append(made.Nodes, p.Nodes...), made.Inputs, made.Sizes
		p.Consts = append(slices.Clone(p.Consts), made.Consts...)
	}
	m := p.Model(onnx.Float)
	m.RequireOpset(customop.Domain, 1)
	session, err := ev.Session(ctx, m, p.Outputs)
	if err != nil {
		return nil, err
	}
	return &eval.Loaded{Session: session, Piece: p, Table: ev.Table, Elem: onnx.Float}, nil
}

// freeInputs lists the values of the graph that the nodes of a piece read and that
// neither the piece nor what is fed to it gives.
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
