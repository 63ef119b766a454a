package unread

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

// A query of a padded token may see no key. Exporters give it a uniform average,
// zeros or NaN, the op gives zeros. That is right as long as no token that is not
// padding depends on it: as a rule the next attention hides padded keys. But a
// mask may be soft, a softmax may go over another axis, or something may pool
// over all tokens. So it is tried: in a stand-in of the model (standin.go) the
// outputs of such queries are once zeros and once other numbers, and what the
// model gives for tokens that are not padding must be the same.

// paddingTrial is one call: its sizes, and the kind of padding (padding.go).
type paddingTrial struct {
	pt   dim.Point
	kind int
}

// paddingTest tries who depends on the outputs of padded queries that see no key.
type paddingTest struct {
	table    *eval.ShapeTable
	session  engine.Session
	standIn  *standIn
	nodes    []*onnx.Node
	bounds   bound.Bounds
	suspects []measure.Attention // whose op gives padded queries without keys something else
	all      []measure.Attention // these and those that others are known to depend on
	rng      *rand.Rand
	roles    map[string][]role // of the outputs' dimensions
}

// Culprits returns those of the suspects on whose padded queries other tokens
// depend.
func Culprits(ctx context.Context, l *eval.Evaluator, part *site.Scope, suspects []measure.Attention) ([]measure.Attention, error) {
	if !part.Last {
		return nil, fmt.Errorf("nodes of the model read what %s gives", part.Where)
	}
	culprits, err := culpritsWith(ctx, l, suspects, true)
	if errors.Is(err, errNothingMoves) { // norms whose weights are zeros, say: nobody uses such a model
		return culpritsWith(ctx, l, suspects, false)
	}
	return culprits, err
}

// culpritsWith looks for them in a stand-in with the model's own vectors or with
// others.
func culpritsWith(ctx context.Context, l *eval.Evaluator, suspects []measure.Attention, vectors bool) ([]measure.Attention, error) {
	r := &paddingTest{table: l.Table, suspects: suspects, all: suspects, roles: map[string][]role{}}
	var replaced []string
	for _, f := range suspects {
		replaced = append(replaced, f.Site.Output())
	}
	var err error
	if r.standIn, err = newStandIn(l.Graph.Source, replaced, vectors); err != nil {
		return nil, err
	}
	m := r.standIn.model()
	r.nodes = slices.Clone(m.Graph.Nodes)
	if r.session, err = l.Session(ctx, m, r.standIn.outputs); err != nil {
		return nil, fmt.Errorf("the model without its weights does not load: %w", err)
	}
	defer r.session.Close()
	if err := r.findRoles(ctx); err != nil {
		return nil, err
	}
	var culprits []measure.Attention
	for len(r.suspects) > 0 {
		read, err := r.read(ctx, r.suspects)
		if err != nil || !read {
			return culprits, err
		}
		var more, rest []measure.Attention
		for _, f := range r.suspects {
			if read, err = r.read(ctx, []measure.Attention{f}); err != nil {
				return nil, err
			}
			if read {
				more = append(more, f)
			} else {
				rest = append(rest, f)
			}
		}
		if len(more) == 0 { // together they are read in another way than one by one
			more, rest = rest, nil
		}
		// These give what the original does from now on, and that may depend on the rest.
		culprits, r.suspects = append(culprits, more...), rest
	}
	return culprits, nil
}

// trials are calls with padding of every kind, without and with a past, long
// enough for a window to pass by all tokens that are not padding.
func (r *paddingTest) trials() []paddingTrial {
	var list []paddingTrial
	length := int64(11)
	for _, f := range r.all {
		if w := f.Measured.Attention.Mask.Window; w > 0 && w < 512 {
			length = max(length, 2*w+9)
		}
	}
	for kind := 1; kind < 5; kind++ {
		list = append(list, paddingTrial{dim.Point{B: 3, L: length, P: 7}, kind}, paddingTrial{dim.Point{B: 2, L: 13, P: 0}, kind})
	}
	list = append(list, paddingTrial{dim.Point{B: 3, L: 1, P: 9}, 1})
	if r.counted() {
		list = []paddingTrial{{dim.Point{B: 3, L: 11, P: 0}, 2}, {dim.Point{B: 2, L: 29, P: 0}, 2}}
	}
	for i := range list {
		list[i].pt = r.sizes(list[i].pt)
	}
	return list
}

// counted reports whether rows of the caches are counted: padding then stands on
// the right of a first call.
func (r *paddingTest) counted() bool {
	return slices.ContainsFunc(r.all, func(f measure.Attention) bool { return f.Measured.LengthTracked != nil })
}

// sizes returns sizes that the model can be given, close to pt.
func (r *paddingTest) sizes(pt dim.Point) dim.Point {
	if !r.table.Past {
		pt.L, pt.P = pt.L+pt.P, 0
	}
	for _, f := range r.all {
		if over := pt.L + pt.P - f.Measured.TokenLimit; over > 0 {
			pt.P -= min(over, pt.P)
			pt.L = min(pt.L, f.Measured.TokenLimit)
		}
	}
	return r.table.At(pt)
}

// read reports whether what the model gives for tokens that are not padding
// depends on the outputs that the sites give to padded queries without keys.
func (r *paddingTest) read(ctx context.Context, sites []measure.Attention) (bool, error) {
	moved := false // by numbers in place of all outputs: else nothing could be seen
	ran, failed := map[int]bool{}, map[int]error{}
	for _, t := range r.trials() {
		some, err := r.trial(ctx, t, sites, !moved)
		if err != nil && t.pt.B > 1 && r.table.Static.B == 0 && ctx.Err() == nil && !errors.Is(err, errNoNumbers) {
			t.pt.B = 1 // some exports run one row at a time only
			some, err = r.trial(ctx, t, sites, !moved)
		}
		switch {
		case errors.Is(err, errNoNumbers) || ctx.Err() != nil:
			return false, err
		case err != nil:
			failed[t.kind] = err
			continue
		case some.read:
			return true, nil
		}
		ran[t.kind] = true
		moved = moved || some.moved
	}
	for kind, err := range failed {
		if !ran[kind] { // every kind of padding must have been tried
			return false, err
		}
	}
	if !moved {
		return false, errNothingMoves
	}
	return false, nil
}

// errNothingMoves says that the control failed: nothing could have been seen.
var errNothingMoves = errors.New("nothing that the model gives depends on them or on other tokens' outputs")

// errNoNumbers says that zeros in place of what the original gives to padded queries
// make NaN of what the model gives for other tokens.
var errNoNumbers = errors.New("with zeros in their place the model without its weights gives NaN for other tokens")

// seenReading is what a trial shows: whether padded queries' outputs, and whether
// all queries' outputs, moved what the model gives for tokens that are not padding.
type seenReading struct{ read, moved bool }

// trial runs the stand-in with zeros and with other numbers and, as a control, with
// other numbers for all queries.
func (r *paddingTest) trial(ctx context.Context, t paddingTrial, sites []measure.Attention, control bool) (seen seenReading, _ error) {
	mask := eval.Padding(rand.New(rand.NewPCG(13, uint64(t.kind))), t.pt, t.kind)
	if sharesRow(r.table, r.all) {
		for b := range t.pt.B {
			copy(mask[b*(t.pt.L+t.pt.P):], mask[:t.pt.L+t.pt.P])
		}
	}
	run := func(size float64, all bool) (map[string]engine.Tensor, error) {
		return r.run(ctx, t.pt, mask, size, all, sites)
	}
	zeros, err := run(0, false)
	if err != nil {
		return seen, err
	}
	others, err := run(1, false)
	if err != nil {
		return seen, err
	}
	same, err := r.same(zeros, others, t.pt, mask)
	if err != nil || !same || !control {
		return seenReading{read: !same}, err
	}
	if others, err = run(1, true); err != nil {
		return seen, err
	}
	if same, err = r.same(zeros, others, t.pt, mask); err != nil {
		return seen, err
	}
	seen.moved = !same
	return seen, nil
}

// run gives what the model gives when the sites' outputs are replaced by numbers of
// a size: those of padded queries without keys, or all of them.
func (r *paddingTest) run(ctx context.Context, pt dim.Point, mask []int64, size float64, all bool, sites []measure.Attention) (map[string]engine.Tensor, error) {
	r.rng = rand.New(rand.NewPCG(17, 18)) // the same inputs each time
	feeds, err := r.feeds(pt, mask, size)
	if err != nil {
		return nil, err
	}
	in := func(list []measure.Attention, f measure.Attention) bool {
		return slices.ContainsFunc(list, func(g measure.Attention) bool { return g.Index == f.Index })
	}
	for _, f := range r.all {
		n := replacement{padded: in(r.suspects, f), all: all && in(sites, f)}
		if in(sites, f) {
			n.size = size
		}
		r.replace(feeds, f, pt, mask, n)
	}
	if err := r.bounds.Check(r.nodes, r.standIn.consts, feeds); err != nil {
		return nil, err
	}
	return r.session.Run(ctx, feeds)
}

// replacement says which of a site's outputs are replaced, by normal numbers of
// which size.
type replacement struct {
	padded bool // those of padded queries without keys
	all    bool // all of them
	size   float64
}

func (r *paddingTest) replace(feeds map[string]engine.Tensor, f measure.Attention, pt dim.Point, mask []int64, n replacement) {
	dims := prove.OutputDims(f.Measured, pt)
	padded := padded(f.Measured, pt, mask)
	kind := prove.RowsOfOutput(f.Measured, pt, func(b, i int64) prove.RowKind {
		if padded[b*pt.L+i] {
			return prove.PaddedWithoutKeys
		}
		return prove.Compared
	})
	keep, other := make([]int64, engine.Elements(dims)), make([]float32, engine.Elements(dims))
	for i := range keep {
		keep[i] = eval.B2i(!n.all && (!n.padded || kind(int64(i)) == prove.Compared))
		other[i] = float32(n.size * math.Pow(40, float64(i%2)) * r.rng.NormFloat64()) // norms may follow: small ones and large ones
	}
	v := f.Site.Output()
	feeds[v+keepSuffix], _ = engine.Integers(onnx.Bool, keep, dims...) // bool is a type that Integers takes
	feeds[v+otherSuffix] = engine.Float32s(other, dims...)
}

// padded says of each query whether the op may give it something else than the
// original: its token is padding, and no key is seen or that is not known.
func padded(l *measure.Measured, pt dim.Point, mask []int64) []bool {
	if l.Mask != nil && !l.Attention.Mask.Bias {
		list, _ := prove.PaddedQueries(l, score.Sample{Pt: pt, Mask: mask}, 1)
		return list
	}
	list := make([]bool, pt.B*pt.L)
	for i := range list {
		b, row := int64(i)/pt.L, int64(i)%pt.L
		list[i] = mask[b*(pt.L+pt.P)+pt.P+row] == 0
	}
	return list
}
