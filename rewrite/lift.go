package rewrite

import (
	"context"
	"fmt"
	"math"

	"github.com/rope-rewrite/rope-rewrite/onnx"
	"github.com/rope-rewrite/rope-rewrite/rewrite/fused"
	"github.com/rope-rewrite/rope-rewrite/rope"
)

// lifted is what was measured of a site: its meaning as a value, and where the
// op finds positions and padding.
type lifted struct {
	attention     rope.Attention
	layouts       *layouts
	position      *onnx.ValueInfo   // graph input [batch, length]; nil when positions are indices
	mask          *onnx.ValueInfo   // graph input [batch, past + length]; nil without padding mask
	others        []*onnx.ValueInfo // integer inputs beside these that the model's own bias is made of
	scalarBias    bool              // that bias comes out right when scores are one zero
	positionLimit int64             // the largest position that the original can compute
	unknown       float64           // relative error that the frequencies may have beyond float32's
	queryOrder    []int64           // which channel of the query each one that the op turns is; nil when they keep their places
	keyOrder      []int64
	queryNorms    []float64 // what the query is multiplied by before the norms behind its rotation are taken
	keyNorms      []float64
	angles        rope.Precision      // of the type that angles are computed in
	tokenLimit    int64               // how many tokens, cached ones included, the original can compute
	rotationOnly  bool                // nothing but the encoding was measured
	fixed         point               // the sizes that the original always has, as shapeTable has them
	latent        *latent             // how keys are put together of latent states; nil for most
	counted       *fused.CountedCache // what counts the tokens in the cache; nil where it holds nothing else
}

// rotary reports whether the site turns anything.
func (l *lifted) rotary() bool { return len(l.attention.Encoding.Frequencies) > 0 }

// lifter measures sites of one graph.
type lifter struct {
	graph    *graph
	sections bool // a token may have several positions, of which each pair turns by one
	loader
}

// open extracts and loads the piece from cuts to outputs.
func (l *lifter) open(ctx context.Context, at *onnx.Node, what string, outputs, cuts []string) (*loaded, *Refusal) {
	p, err := l.graph.extract(outputs, cuts)
	if err != nil {
		return nil, refuse(at, "%s cannot be evaluated by itself: %v", what, err)
	}
	return l.openPiece(ctx, at, what, p)
}

// openPiece loads a piece whose sizes are all known.
func (l *lifter) openPiece(ctx context.Context, at *onnx.Node, what string, p *piece) (*loaded, *Refusal) {
	for _, s := range p.sizes {
		if err := l.table.refused[s]; err != nil {
			return nil, refuse(at, "%s reads the size %q, which cannot be measured: %v", what, s, err)
		}
		if _, ok := l.table.sizes[s]; !ok {
			return nil, refuse(at, "%s reads the size %q, which does not follow from batch, length and past", what, s)
		}
	}
	s, err := l.load(ctx, p)
	if err != nil {
		return nil, refuse(at, "%s does not load: %v", what, err)
	}
	return s, nil
}

// lift measures a site.
func (l *lifter) lift(ctx context.Context, s *sizedSite) (*lifted, error) {
	if c := s.key.cache; c != nil && c.slots {
		return nil, refuse(c.concat, "it writes new keys into a cache of fixed size at places that the call names; a cache that grows was expected. Methods that change frequencies alone are possible with --target onnx; export the model with a growing cache for others (--kv fixed then gives it one of fixed capacity)")
	}
	ly, err := s.layouts(l.table)
	if err != nil {
		return nil, err
	}
	if err := l.unpack(ctx, s, ly); err != nil {
		return nil, err
	}
	if err := ly.check(); err != nil {
		return nil, refuse(s.product, "%v", err)
	}
	out := &lifted{layouts: ly, counted: s.counted}
	a := &out.attention
	a.Heads, a.KVHeads = int(ly.query.heads), int(ly.key.heads)
	a.HeadSize = int(ly.query.channels)

	// Probabilities and values: nothing but the repetition of heads.
	if err := l.probabilities(ctx, s, ly); err != nil {
		return nil, err
	}
	if err := l.values(ctx, s, ly); err != nil {
		return nil, err
	}
	if out.queryNorms, err = l.norms(ctx, s.query, "query", ly.query); err != nil {
		return nil, err
	}
	if out.keyNorms, err = l.norms(ctx, s.key, "key", ly.key); err != nil {
		return nil, err
	}
	fit, mask, err := l.scores(ctx, s, ly)
	if err != nil {
		return nil, err
	}
	a.Mask, a.Softcap, a.Sinks, out.mask = fit.mask, fit.curve.softcap, fit.sinks, mask
	out.tokenLimit, out.others, out.scalarBias = fit.tokens, fit.others, fit.scalar

	query, position, err := l.rotation(ctx, s.query, s.product, "query", s.query.operand, ly.query, ly.queryOperand)
	if err != nil {
		return nil, err
	}
	var key *matrix
	var keyPosition *onnx.ValueInfo
	var factor float64
	if s.key.shared == nil {
		key, keyPosition, err = l.rotation(ctx, s.key, s.product, "key", s.key.stored(), ly.key, ly.keyStored)
	} else {
		key, keyPosition, out.latent, err = l.sharedRotation(ctx, s, ly)
	}
	if err != nil {
		return nil, err
	}
	if position != nil && keyPosition != nil && position.Name != keyPosition.Name {
		return nil, refuse(s.product, "the query is rotated by the input %q, the key by %q", position.Name, keyPosition.Name)
	}
	if out.latent != nil {
		factor = out.latent.factor
	} else if factor, err = l.keyRepeat(ctx, s, ly); err != nil {
		return nil, err
	}
	for _, b := range []struct {
		what   string
		branch branch
		matrix *matrix
	}{{"query", s.query, query}, {"key", s.key, key}} {
		if len(b.matrix.encoding.Frequencies) > 0 {
			continue
		}
		if n := l.graph.turnedBefore(b.branch.cuts()); n != nil {
			return nil, refuse(s.product, "its %s is turned by positions at %s, and what is done to it after that is not linear (a norm, say); the op turns queries and keys last", b.what, label(n))
		}
	}
	scale, err := s.join(a, query, key)
	if err != nil {
		return nil, err
	}
	out.position, out.queryOrder, out.keyOrder = position, query.order, key.order
	out.fixed = l.table.fixed
	out.unknown = math.Max(query.unknown, key.unknown)
	out.positionLimit, out.angles = min(query.limit, key.limit), query.angles
	if position == nil && out.rotary() {
		out.tokenLimit = min(out.tokenLimit, out.positionLimit+1)
	}
	a.Scale = scale * factor * fit.curve.factor
	return out, nil
}

// keyRepeat returns the factor between stored keys and the MatMul's operand.
func (l *lifter) keyRepeat(ctx context.Context, s *sizedSite, ly *layouts) (float64, error) {
	if s.key.cache == nil {
		return 1, nil // the rotation was measured up to the operand
	}
	cached := s.key.cache.present
	loaded, refusal := l.open(ctx, s.product, "the way from the key cache to the scores", []string{s.key.operand}, []string{cached})
	if refusal != nil {
		return 0, refusal
	}
	defer loaded.session.Close()
	in, err := layoutOf(l.table.dims[cached], ly.key.channels)
	if err != nil {
		return 0, refuse(s.key.cache.concat, "the key cache has an unexpected shape: %v", err)
	}
	if !in.canonical() {
		return 0, refuse(s.key.cache.concat, "the key cache has the shape %v; [batch, heads, past + length, channels] was expected", l.table.dims[cached])
	}
	factor, err := repeatFactor(ctx, loaded, cached, s.key.operand, in, ly.keyOperand)
	if err != nil {
		return 0, refuse(s.product, "its key operand differs from the cache: %v", err)
	}
	return factor, nil
}

// values checks that the values used are those stored, repeated over the
// heads of a group.
func (l *lifter) values(ctx context.Context, s *sizedSite, ly *layouts) error {
	for _, v := range []struct {
		what   string
		branch branch
		at     *onnx.Node
		in, to layout
	}{{"value", s.value, s.mix, ly.value, ly.valueUsed}, {"key", s.key, s.product, ly.key, ly.keyOperand}} {
		cuts := v.branch.given()
		if v.branch.past() != "" {
			cuts = append(cuts, v.branch.past())
		}
		loaded, refusal := l.open(ctx, v.at, "the way of its "+v.what, []string{v.branch.operand}, cuts)
		if refusal != nil {
			return refusal
		}
		for i, in := range v.in.each() {
			from, err := headMap(ctx, loaded, v.branch, i, in, v.to)
			if err != nil {
				loaded.session.Close()
				return refuse(v.at, "the heads of its %s are not those expected: %v", v.what, err)
			}
			if err := grouped(from, in.heads); err != nil {
				loaded.session.Close()
				return refuse(v.at, "the heads of its %s are not grouped as expected: %v", v.what, err)
			}
		}
		loaded.session.Close()
		var start []string // from where nothing may depend on the number of tokens
		switch {
		case v.branch.shared != nil:
			start = append(v.branch.cuts(), v.branch.shared.present)
		case v.branch.cache != nil:
			start = []string{v.branch.cache.present}
		case v.what == "key": // the rotation reaches up to the operand
			continue
		default:
			start = v.branch.cuts()
		}
		if err := l.steady(ctx, v.at, "the way of its "+v.what, v.branch.operand, start); err != nil {
			return err
		}
	}
	start, in := s.value.cut, ly.value
	if s.value.cache != nil {
		start = s.value.cache.present
		var err error
		if in, err = layoutOf(l.table.dims[start], ly.value.channels); err != nil {
			return refuse(s.value.cache.concat, "the value cache has an unexpected shape: %v", err)
		}
		if !in.canonical() {
			return refuse(s.value.cache.concat, "the value cache has the shape %v; [batch, heads, past + length, channels] was expected", l.table.dims[start])
		}
	}
	loaded, refusal := l.open(ctx, s.mix, "the way of its value", []string{s.value.operand}, []string{start})
	if refusal != nil {
		return refusal
	}
	defer loaded.session.Close()
	factor, err := repeatFactor(ctx, loaded, start, s.value.operand, in, ly.valueUsed)
	if err != nil {
		return refuse(s.mix, "its value operand differs from the value: %v", err)
	}
	if math.Abs(factor-1) > 4*float32eps {
		return refuse(s.mix, "its value is multiplied by %g", factor)
	}
	return nil
}

func (l *lifter) probabilities(ctx context.Context, s *sizedSite, ly *layouts) error {
	in, out := s.softmax.Outputs[0], s.mix.Inputs[0]
	if rank := int64(len(ly.scores)); softmaxAxis(l.graph.model, s.softmax, rank) != rank-1 {
		return refuse(s.softmax, "its axis is %d, %d was expected", softmaxAxis(l.graph.model, s.softmax, rank), rank-1)
	}
	if in == out {
		return nil
	}
	loaded, refusal := l.open(ctx, s.softmax, "what follows the softmax", []string{out}, []string{in})
	if refusal != nil {
		return refusal
	}
	defer loaded.session.Close()
	if err := probabilitiesKept(ctx, loaded, in, out, ly.query.heads, ly.sinks); err != nil {
		return refuse(s.softmax, "its probabilities are changed before they are used: %v", err)
	}
	return l.steady(ctx, s.softmax, "what follows the softmax", out, []string{in})
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

func (l *lifter) scores(ctx context.Context, s *sizedSite, ly *layouts) (*scoreFit, *onnx.ValueInfo, error) {
	loaded, refusal := l.open(ctx, s.softmax, "the mask", []string{s.softmaxInput()}, []string{s.scores()})
	if refusal != nil {
		return nil, nil, refusal
	}
	defer loaded.session.Close()
	sc := &scorer{loaded: loaded, in: s.scores(), out: s.softmaxInput(), heads: ly.query.heads, extra: ly.sinks}
	var mask *onnx.ValueInfo
	for _, v := range loaded.piece.inputs {
		dims := l.table.inputs[v.Name]
		if mask == nil && len(dims) == 2 && (dims[0] == batchExtent || dims[0] == constantExtent(1)) && dims[1] == totalOf(l.table) {
			mask, sc.mask = v, v.Name
			continue
		}
		sc.others = append(sc.others, v)
	}
	sc.fewer(ctx)
	alone := *sc
	var hidden error
	switch {
	case l.table.past:
	case l.table.fixed.L > 0:
		if l.table.fixed.L*l.table.fixed.L*sc.heads > maxFixed {
			return nil, nil, refuse(s.softmax, "its mask of %d heads for %d tokens is more than is evaluated as a whole; export the model with a dynamic length", sc.heads, l.table.fixed.L)
		}
		sc.whole, alone.whole = true, true
	default:
		alone.whole = true
		chosen, err := l.chooseRows(ctx, loaded, sc)
		switch {
		case err == nil:
			defer chosen.session.Close()
		case ended(err):
			return nil, nil, refuse(s.softmax, "its mask cannot be evaluated: %v", err)
		default:
			hidden = fmt.Errorf("the model has no cache, so one query with many keys before it cannot be asked, and %w", err)
			if n := l.graph.multiplies(s.softmaxInput(), s.scores()); n != nil {
				return nil, nil, refuse(s.softmax, "its mask is not understood: %v; and %s multiplies scores by what is not constant", hidden, label(n))
			}
			sc = &alone
		}
	}
	fit, err := sc.measure(ctx)
	if err != nil {
		if hidden != nil {
			err = fmt.Errorf("%w; %w", hidden, err)
		}
		return nil, nil, refuse(s.softmax, "its mask is not understood: %v", err)
	}
	if fit.mask.Bias {
		fit.scalar = alone.scalarBias(ctx)
	}
	return fit, mask, nil
}
