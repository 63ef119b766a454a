package measure

import (
	"context"
	"fmt"
	"math"

	"github.com/rope-rewrite/rope-rewrite/onnx"
	"github.com/rope-rewrite/rope-rewrite/rewrite/fused"
	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/dim"
	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/eval"
	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/graph"
	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/ir"
	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/rotation"
	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/score"
	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/site"
	"github.com/rope-rewrite/rope-rewrite/rope"
)

// Measured is what was measured of a site: its meaning as a value, and where the
// op finds positions and padding.
type Measured struct {
	Attention     rope.Attention
	Layouts       *site.Layouts
	Position      *onnx.ValueInfo   // graph input [batch, length]; nil when positions are indices
	Mask          *onnx.ValueInfo   // graph input [batch, past + length]; nil without padding mask
	Others        []*onnx.ValueInfo // integer inputs beside these that the model's own bias is made of
	ScalarBias    bool              // that bias comes out right when scores are one zero
	PositionLimit int64             // the largest position that the original can compute
	Unknown       float64           // relative error that the frequencies may have beyond float32's
	QueryOrder    []int64           // which channel of the query each one that the op turns is; nil when they keep their places
	KeyOrder      []int64
	QueryNorms    []float64 // what the query is multiplied by before the norms behind its rotation are taken
	KeyNorms      []float64
	Angles        rope.Precision      // of the type that angles are computed in
	TokenLimit    int64               // how many tokens, cached ones included, the original can compute
	RotationOnly  bool                // nothing but the encoding was measured
	Static        dim.Point           // the sizes that the original always has, as shapeTable has them
	Latent        *Latent             // how keys are put together of latent states; nil for most
	LengthTracked *fused.CountedCache // what counts the tokens in the cache; nil where it holds nothing else
}

// Rotary reports whether the site turns anything.
func (l *Measured) Rotary() bool { return len(l.Attention.Encoding.Frequencies) > 0 }

// Site measures a site.
func Site(ctx context.Context, l *eval.Evaluator, s *site.Sized) (*Measured, error) {
	if c := s.Key.Cache; c != nil && c.Slots {
		return nil, graph.Refuse(c.Concat, "it writes new keys into a cache of fixed size at places that the call names; a cache that grows was expected. Methods that change frequencies alone are possible with --target onnx; export the model with a growing cache for others (--kv fixed then gives it one of fixed capacity)")
	}
	ly, err := s.Layouts(l.Table)
	if err != nil {
		return nil, err
	}
	if err := unpack(ctx, l, s, ly); err != nil {
		return nil, err
	}
	if err := ly.Check(); err != nil {
		return nil, graph.Refuse(s.ScoresMatMul, "%v", err)
	}
	out := &Measured{Layouts: ly, LengthTracked: s.LengthTracked}
	a := &out.Attention
	a.Heads, a.KVHeads = int(ly.Query.Heads), int(ly.Key.Heads)
	a.HeadSize = int(ly.Query.Channels)

	// Probabilities and values: nothing but the repetition of heads.
	if err := checkProbabilities(ctx, l, s, ly); err != nil {
		return nil, err
	}
	if err := checkValues(ctx, l, s, ly); err != nil {
		return nil, err
	}
	if out.QueryNorms, err = normFactors(ctx, l, s.Query, "query", ly.Query); err != nil {
		return nil, err
	}
	if out.KeyNorms, err = normFactors(ctx, l, s.Key, "key", ly.Key); err != nil {
		return nil, err
	}
	fit, mask, err := measureScores(ctx, l, s, ly)
	if err != nil {
		return nil, err
	}
	a.Mask, a.Softcap, a.Sinks, out.Mask = fit.Mask, fit.Curve.Softcap, fit.Sinks, mask
	out.TokenLimit, out.Others, out.ScalarBias = fit.Tokens, fit.Others, fit.Scalar

	query, position, err := branchRotation(ctx, l, s.Query, s.ScoresMatMul, "query", s.Query.Operand, ly.Query, ly.QueryOperand)
	if err != nil {
		return nil, err
	}
	var key *rotation.Matrix
	var keyPosition *onnx.ValueInfo
	var factor float64
	if s.Key.Shared == nil {
		key, keyPosition, err = branchRotation(ctx, l, s.Key, s.ScoresMatMul, "key", s.Key.Cached(), ly.Key, ly.KeyCached)
	} else {
		key, keyPosition, out.Latent, err = sharedRotation(ctx, l, s, ly)
	}
	if err != nil {
		return nil, err
	}
	if position != nil && keyPosition != nil && position.Name != keyPosition.Name {
		return nil, graph.Refuse(s.ScoresMatMul, "the query is rotated by the input %q, the key by %q", position.Name, keyPosition.Name)
	}
	if out.Latent != nil {
		factor = out.Latent.factor
	} else if factor, err = keyRepeat(ctx, l, s, ly); err != nil {
		return nil, err
	}
	for _, b := range []struct {
		what   string
		branch site.Branch
		matrix *rotation.Matrix
	}{{"query", s.Query, query}, {"key", s.Key, key}} {
		if len(b.matrix.Encoding.Frequencies) > 0 {
			continue
		}
		if n := site.RotatedBefore(l.Graph, b.branch.Boundaries()); n != nil {
			return nil, graph.Refuse(s.ScoresMatMul, "its %s is turned by positions at %s, and what is done to it after that is not linear (a norm, say); the op turns queries and keys last", b.what, ir.Label(n))
		}
	}
	scale, err := joinBranches(s, a, query, key)
	if err != nil {
		return nil, err
	}
	out.Position, out.QueryOrder, out.KeyOrder = position, query.Order, key.Order
	out.Static = l.Table.Static
	out.Unknown = math.Max(query.Unknown, key.Unknown)
	out.PositionLimit, out.Angles = min(query.Limit, key.Limit), query.Angles
	if position == nil && out.Rotary() {
		out.TokenLimit = min(out.TokenLimit, out.PositionLimit+1)
	}
	a.Scale = scale * factor * fit.Curve.Factor
	return out, nil
}

// keyRepeat returns the factor between stored keys and the MatMul's operand.
func keyRepeat(ctx context.Context, l *eval.Evaluator, s *site.Sized, ly *site.Layouts) (float64, error) {
	if s.Key.Cache == nil {
		return 1, nil // the rotation was measured up to the operand
	}
	cached := s.Key.Cache.Present
	loaded, refusal := l.Open(ctx, s.ScoresMatMul, "the way from the key cache to the scores", []string{s.Key.Operand}, []string{cached})
	if refusal != nil {
		return 0, refusal
	}
	defer loaded.Session.Close()
	in, err := dim.LayoutOf(l.Table.Dims[cached], ly.Key.Channels)
	if err != nil {
		return 0, graph.Refuse(s.Key.Cache.Concat, "the key cache has an unexpected shape: %v", err)
	}
	if !in.Canonical() {
		return 0, graph.Refuse(s.Key.Cache.Concat, "the key cache has the shape %v; [batch, heads, past + length, channels] was expected", l.Table.Dims[cached])
	}
	factor, err := repeatFactor(ctx, loaded, cached, s.Key.Operand, in, ly.KeyOperand)
	if err != nil {
		return 0, graph.Refuse(s.ScoresMatMul, "its key operand differs from the cache: %v", err)
	}
	return factor, nil
}

// checkValues checks that the values used are those stored, repeated over the
// heads of a group.
func checkValues(ctx context.Context, l *eval.Evaluator, s *site.Sized, ly *site.Layouts) error {
	for _, v := range []struct {
		what   string
		branch site.Branch
		at     *onnx.Node
		in, to dim.Layout
	}{{"value", s.Value, s.ValueMatMul, ly.Value, ly.ValueUsed}, {"key", s.Key, s.ScoresMatMul, ly.Key, ly.KeyOperand}} {
		cuts := v.branch.MeasuredFrom()
		if v.branch.Past() != "" {
			cuts = append(cuts, v.branch.Past())
		}
		loaded, refusal := l.Open(ctx, v.at, "the way of its "+v.what, []string{v.branch.Operand}, cuts)
		if refusal != nil {
			return refusal
		}
		for i, in := range v.in.Each() {
			from, err := headMap(ctx, loaded, v.branch, i, in, v.to)
			if err != nil {
				loaded.Session.Close()
				return graph.Refuse(v.at, "the heads of its %s are not those expected: %v", v.what, err)
			}
			if err := grouped(from, in.Heads); err != nil {
				loaded.Session.Close()
				return graph.Refuse(v.at, "the heads of its %s are not grouped as expected: %v", v.what, err)
			}
		}
		loaded.Session.Close()
		var start []string // from where nothing may depend on the number of tokens
		switch {
		case v.branch.Shared != nil:
			start = append(v.branch.Boundaries(), v.branch.Shared.Present)
		case v.branch.Cache != nil:
			start = []string{v.branch.Cache.Present}
		case v.what == "key": // the rotation reaches up to the operand
			continue
		default:
			start = v.branch.Boundaries()
		}
		if err := l.Steady(ctx, v.at, "the way of its "+v.what, v.branch.Operand, start); err != nil {
			return err
		}
	}
	start, in := s.Value.Boundary, ly.Value
	if s.Value.Cache != nil {
		start = s.Value.Cache.Present
		var err error
		if in, err = dim.LayoutOf(l.Table.Dims[start], ly.Value.Channels); err != nil {
			return graph.Refuse(s.Value.Cache.Concat, "the value cache has an unexpected shape: %v", err)
		}
		if !in.Canonical() {
			return graph.Refuse(s.Value.Cache.Concat, "the value cache has the shape %v; [batch, heads, past + length, channels] was expected", l.Table.Dims[start])
		}
	}
	loaded, refusal := l.Open(ctx, s.ValueMatMul, "the way of its value", []string{s.Value.Operand}, []string{start})
	if refusal != nil {
		return refusal
	}
	defer loaded.Session.Close()
	factor, err := repeatFactor(ctx, loaded, start, s.Value.Operand, in, ly.ValueUsed)
	if err != nil {
		return graph.Refuse(s.ValueMatMul, "its value operand differs from the value: %v", err)
	}
	if math.Abs(factor-1) > 4*ir.Float32eps {
		return graph.Refuse(s.ValueMatMul, "its value is multiplied by %g", factor)
	}
	return nil
}

func checkProbabilities(ctx context.Context, l *eval.Evaluator, s *site.Sized, ly *site.Layouts) error {
	in, out := s.Softmax.Outputs[0], s.ValueMatMul.Inputs[0]
	if rank := int64(len(ly.Scores)); softmaxAxis(l.Graph.Model, s.Softmax, rank) != rank-1 {
		return graph.Refuse(s.Softmax, "its axis is %d, %d was expected", softmaxAxis(l.Graph.Model, s.Softmax, rank), rank-1)
	}
	if in == out {
		return nil
	}
	loaded, refusal := l.Open(ctx, s.Softmax, "what follows the softmax", []string{out}, []string{in})
	if refusal != nil {
		return refusal
	}
	defer loaded.Session.Close()
	if err := probabilitiesKept(ctx, loaded, in, out, ly.Query.Heads, ly.Sinks); err != nil {
		return graph.Refuse(s.Softmax, "its probabilities are changed before they are used: %v", err)
	}
	return l.Steady(ctx, s.Softmax, "what follows the softmax", out, []string{in})
}

// softmaxAxis returns the axis of a softmax, as a number ≥ 0 where it can be.
func softmaxAxis(m *onnx.Model, n *onnx.Node, rank int64) int64 {
	axis := n.Int("axis", -1)
	if m.Opset("") < 13 && n.Attribute("axis") == nil {
		axis = 1 // before opset 13 the default was 1, over the flattened rest
	}
	if axis < 0 {
		axis += rank
	}
	return axis
}

func measureScores(ctx context.Context, l *eval.Evaluator, s *site.Sized, ly *site.Layouts) (*score.Fit, *onnx.ValueInfo, error) {
	loaded, refusal := l.Open(ctx, s.Softmax, "the mask", []string{s.SoftmaxInput()}, []string{s.Scores()})
	if refusal != nil {
		return nil, nil, refusal
	}
	defer loaded.Session.Close()
	sc := &score.Scorer{Loaded: loaded, In: s.Scores(), Out: s.SoftmaxInput(), Heads: ly.Query.Heads, Extra: ly.Sinks}
	var mask *onnx.ValueInfo
	for _, v := range loaded.Piece.Inputs {
		dims := l.Table.Inputs[v.Name]
		if mask == nil && len(dims) == 2 && (dims[0] == dim.BatchExtent || dims[0] == dim.ConstantExtent(1)) && dims[1] == eval.TotalOf(l.Table) {
			mask, sc.Mask = v, v.Name
			continue
		}
		sc.Others = append(sc.Others, v)
	}
	sc.Fewer(ctx)
	alone := *sc
	var hidden error
	switch {
	case l.Table.Past:
	case l.Table.Static.L > 0:
		if l.Table.Static.L*l.Table.Static.L*sc.Heads > score.MaxStatic {
			return nil, nil, graph.Refuse(s.Softmax, "its mask of %d heads for %d tokens is more than is evaluated as a whole; export the model with a dynamic length", sc.Heads, l.Table.Static.L)
		}
		sc.Whole, alone.Whole = true, true
	default:
		alone.Whole = true
		chosen, err := score.ChooseRows(ctx, l, loaded, sc)
		switch {
		case err == nil:
			defer chosen.Session.Close()
		case rotation.Ended(err):
			return nil, nil, graph.Refuse(s.Softmax, "its mask cannot be evaluated: %v", err)
		default:
			hidden = fmt.Errorf("the model has no cache, so one query with many keys before it cannot be asked, and %w", err)
			if n := l.Graph.Multiplies(s.SoftmaxInput(), s.Scores()); n != nil {
				return nil, nil, graph.Refuse(s.Softmax, "its mask is not understood: %v; and %s multiplies scores by what is not constant", hidden, ir.Label(n))
			}
			sc = &alone
		}
	}
	fit, err := sc.Measure(ctx)
	if err != nil {
		if hidden != nil {
			err = fmt.Errorf("%w; %w", hidden, err)
		}
		return nil, nil, graph.Refuse(s.Softmax, "its mask is not understood: %v", err)
	}
	if fit.Mask.Bias {
		fit.Scalar = alone.ScalarBias(ctx)
	}
	return fit, mask, nil
}
