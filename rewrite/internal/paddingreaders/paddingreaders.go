package paddingreaders

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"

	"github.com/rope-rewrite/rope-rewrite/internal/engine"
	"github.com/rope-rewrite/rope-rewrite/onnx"
	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/bound"
	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/dim"
	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/eval"
	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/measure"
	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/prove"
	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/score"
	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/site"
)

// paddingTrial is one call: its sizes, and which tokens are padding.
type paddingTrial struct {
	pt    dim.Point
	kind  eval.PaddingKind
	whole bool // the first row has no padding
}

// paddingTest finds out whether other tokens depend on the outputs of padded queries that
// see no key.
type paddingTest struct {
	table    *eval.ShapeTable
	session  engine.Session
	standIn  *standIn
	nodes    []*onnx.Node
	bounds   bound.Bounds
	suspects []measure.Attention // sites whose op gives something else than the model for such queries
	all      []measure.Attention // these and the ones found so far, on whose outputs other tokens depend
	rng      *rand.Rand
	roles    map[string][]role // of the outputs' dimensions
	chunk    int64             // the model runs calls of as many tokens or a multiple; 1 for most
}

// Culprits returns those of the suspects on whose outputs for padded queries other tokens
// depend. It returns an error where that cannot be found out.
func Culprits(ctx context.Context, ev *eval.Evaluator, scope *site.Scope, suspects []measure.Attention) ([]measure.Attention, error) {
	if !scope.Last {
		return nil, fmt.Errorf("nodes of the model read the output of %s", scope.Where)
	}
	found, err := culpritsWith(ctx, ev, suspects, true)
	if errors.Is(err, errNoEffect) { // the weights of norms are zeros, for example, in a model that nobody uses
		return culpritsWith(ctx, ev, suspects, false)
	}
	return found, err
}

// culpritsWith is Culprits with one stand-in of the model. vectors says whether it has the
// model's own vectors.
func culpritsWith(ctx context.Context, ev *eval.Evaluator, suspects []measure.Attention, vectors bool) ([]measure.Attention, error) {
	r := &paddingTest{table: ev.Table, suspects: suspects, all: suspects, roles: map[string][]role{}, chunk: 1}
	var replaced []string
	for _, a := range suspects {
		replaced = append(replaced, a.Site.Output())
	}
	var err error
	if r.standIn, err = newStandIn(ev.Graph.Source, replaced, vectors); err != nil {
		return nil, err
	}
	m := r.standIn.model()
	r.nodes = slices.Clone(m.Graph.Nodes)
	if r.session, err = ev.Session(ctx, m, r.standIn.outputs); err != nil {
		return nil, fmt.Errorf("the model without its weights does not load: %w", err)
	}
	defer r.session.Close()
	if err := r.findRoles(ctx); err != nil {
		return nil, err
	}
	var found []measure.Attention
	for len(r.suspects) > 0 {
		read, err := r.read(ctx, r.suspects)
		if err != nil || !read {
			return found, err
		}
		var alone, rest []measure.Attention
		for _, a := range r.suspects {
			if read, err = r.read(ctx, []measure.Attention{a}); err != nil {
				return nil, err
			}
			if read {
				alone = append(alone, a)
			} else {
				rest = append(rest, a)
			}
		}
		if len(alone) == 0 { // other tokens depend on them only together
			alone, rest = rest, nil
		}
		// These sites will be unchanged. In the next round they give what the model does, which may depend on the rest.
		found, r.suspects = append(found, alone...), rest
	}
	return found, nil
}

// trials returns calls with every kind of padding, without and with a past, long enough
// that all tokens that are not padding are outside the windows of some queries.
func (r *paddingTest) trials() []paddingTrial {
	var list []paddingTrial
	length := int64(11)
	for _, a := range r.all {
		if w := a.Measured.Attention.Mask.Window; w > 0 && w < 512 {
			length = max(length, 2*w+9)
		}
	}
	for kind := eval.LeftPadding; kind <= eval.RandomPadding; kind++ {
		list = append(list, paddingTrial{pt: dim.Point{B: 3, L: length, P: 7}, kind: kind}, paddingTrial{pt: dim.Point{B: 2, L: 13, P: 0}, kind: kind})
	}
	list = append(list, paddingTrial{pt: dim.Point{B: 3, L: 1, P: 9}, kind: eval.LeftPadding})
	if r.lengthTracked() {
		list = []paddingTrial{{pt: dim.Point{B: 3, L: 11, P: 0}, kind: eval.RightPadding}, {pt: dim.Point{B: 2, L: 29, P: 0}, kind: eval.RightPadding}}
	}
	for i := range list {
		list[i].pt = r.sizesNear(list[i].pt)
	}
	return list
}

// lengthTracked reports whether the caches count their tokens: padding is then on the right
// of a first call.
func (r *paddingTest) lengthTracked() bool {
	return slices.ContainsFunc(r.all, func(a measure.Attention) bool { return a.Measured.LengthTracked != nil })
}

// sizesNear returns sizes that the model can be given, close to pt.
func (r *paddingTest) sizesNear(pt dim.Point) dim.Point {
	if !r.table.Past {
		pt.L, pt.P = pt.L+pt.P, 0
	}
	for _, a := range r.all {
		if over := pt.L + pt.P - a.Measured.TokenLimit; over > 0 {
			pt.P -= min(over, pt.P)
			pt.L = min(pt.L, a.Measured.TokenLimit)
		}
	}
	if over := pt.L % r.chunk; over > 0 {
		pt.L += r.chunk - over
	}
	return r.table.At(pt)
}

// read reports whether the model's outputs for tokens that are not padding depend on the
// outputs of the sites for padded queries that see no key.
func (r *paddingTest) read(ctx context.Context, sites []measure.Attention) (bool, error) {
	changed := false // replacing the outputs of all queries changed something, so an effect would be seen
	ran, failed := map[eval.PaddingKind]bool{}, map[eval.PaddingKind]error{}
	for _, t := range r.trials() {
		var got effect
		var err error
		for _, each := range r.forms(t) {
			if got, err = r.trial(ctx, each, sites, !changed); err == nil || ctx.Err() != nil || errors.Is(err, errNaN) {
				break
			}
		}
		switch {
		case errors.Is(err, errNaN) || ctx.Err() != nil:
			return false, err
		case err != nil:
			failed[t.kind] = err
			continue
		case got.read:
			return true, nil
		}
		ran[t.kind] = true
		changed = changed || got.changed
	}
	for kind, err := range failed {
		if !ran[kind] { // each kind of padding must run at least once
			return false, err
		}
	}
	if !changed {
		return false, errNoEffect
	}
	return false, nil
}

// forms returns a trial and what takes its place where the model does not run it. Some exports
// run one row at a time only. Others make tables of as many rows as a call's largest position,
// which suffice where one of its texts is as long as the call.
func (r *paddingTest) forms(t paddingTrial) []paddingTrial {
	list := []paddingTrial{t}
	if t.pt.B == 1 {
		return list
	}
	if r.table.Static.B == 0 {
		one := t
		one.pt.B = 1
		list = append(list, one)
	}
	if !sharesRow(r.table, r.all) {
		t.whole = true
		list = append(list, t)
	}
	return list
}

// errNoEffect says that the control failed: no effect could have been seen.
var errNoEffect = errors.New("no output of the model depends on them or on other tokens")

// errNaN says that the model gives NaN for other tokens where the outputs of padded queries
// are zeros.
var errNaN = errors.New("with zeros in their place, the model without its weights gives NaN for other tokens")

// effect is what a trial shows: whether the outputs of padded queries (read), and whether
// those of all queries (changed), have an effect on tokens that are not padding.
type effect struct{ read, changed bool }

// trial runs the stand-in with zeros and with other numbers for padded queries and, where
// control is set, with other numbers for all queries.
func (r *paddingTest) trial(ctx context.Context, t paddingTrial, sites []measure.Attention, control bool) (result effect, _ error) {
	mask := eval.Padding(rand.New(rand.NewPCG(13, uint64(t.kind))), t.pt, t.kind)
	if sharesRow(r.table, r.all) {
		for b := range t.pt.B {
			copy(mask[b*(t.pt.L+t.pt.P):], mask[:t.pt.L+t.pt.P])
		}
	}
	if t.whole {
		for j := range t.pt.L + t.pt.P {
			mask[j] = 1
		}
	}
	run := func(size float64, all bool) (map[string]engine.Tensor, error) {
		return r.run(ctx, t.pt, mask, size, all, sites)
	}
	zeros, err := run(0, false)
	if err != nil {
		return result, err
	}
	others, err := run(1, false)
	if err != nil {
		return result, err
	}
	same, err := r.same(zeros, others, t.pt, mask)
	if err != nil || !same || !control {
		return effect{read: !same}, err
	}
	if others, err = run(1, true); err != nil {
		return result, err
	}
	if same, err = r.same(zeros, others, t.pt, mask); err != nil {
		return result, err
	}
	result.changed = !same
	return result, nil
}

// run returns the outputs of the stand-in when the sites' outputs are replaced by random
// numbers of a size: those of padded queries that see no key, or all of them.
func (r *paddingTest) run(ctx context.Context, pt dim.Point, mask []int64, size float64, all bool, sites []measure.Attention) (map[string]engine.Tensor, error) {
	r.rng = rand.New(rand.NewPCG(17, 18)) // the same inputs each time
	feeds, err := r.feeds(pt, mask, size)
	if err != nil {
		return nil, err
	}
	in := func(list []measure.Attention, a measure.Attention) bool {
		return slices.ContainsFunc(list, func(g measure.Attention) bool { return g.Index == a.Index })
	}
	for _, a := range r.all {
		n := replacement{padded: in(r.suspects, a), all: all && in(sites, a)}
		if in(sites, a) {
			n.size = size
		}
		r.replace(feeds, a, pt, mask, n)
	}
	if err := r.bounds.Check(r.nodes, r.standIn.consts, feeds); err != nil {
		return nil, err
	}
	return r.session.Run(ctx, feeds)
}

// replacement says which of a site's outputs are replaced, and by random numbers of which
// standard deviation.
type replacement struct {
	padded bool // those of padded queries that see no key
	all    bool // all of them
	size   float64
}

// replace adds to feeds what replaces a site's outputs.
func (r *paddingTest) replace(feeds map[string]engine.Tensor, a measure.Attention, pt dim.Point, mask []int64, n replacement) {
	dims := prove.OutputDims(a.Measured, pt)
	padded := padded(a.Measured, pt, mask)
	kind := prove.RowsOfOutput(a.Measured, pt, func(b, i int64) prove.RowKind {
		if padded[b*pt.L+i] {
			return prove.PaddedWithoutKeys
		}
		return prove.Compared
	})
	keep, other := make([]int64, engine.Elements(dims)), make([]float32, engine.Elements(dims))
	for i := range keep {
		keep[i] = dim.OneIf(!n.all && (!n.padded || kind(int64(i)) == prove.Compared))
		other[i] = float32(n.size * math.Pow(40, float64(i%2)) * r.rng.NormFloat64()) // small and large numbers by turns, since a norm may follow
	}
	v := a.Site.Output()
	feeds[v+keepSuffix], _ = engine.Integers(onnx.Bool, keep, dims...) // Integers returns no error for bool
	feeds[v+otherSuffix] = engine.Float32s(other, dims...)
}

// padded returns, as [batch·length], for which queries the op may give something else than
// the model: those of padded tokens that see no key, or all of padded tokens where that is
// not known.
func padded(m *measure.Measured, pt dim.Point, mask []int64) []bool {
	if m.Mask != nil && !m.Attention.Mask.Bias {
		list, _ := prove.PaddedQueries(m, score.Sample{Pt: pt, Mask: mask}, 1)
		return list
	}
	list := make([]bool, pt.B*pt.L)
	for i := range list {
		b, row := int64(i)/pt.L, int64(i)%pt.L
		list[i] = mask[b*(pt.L+pt.P)+pt.P+row] == 0
	}
	return list
}
