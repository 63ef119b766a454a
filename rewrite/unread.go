package rewrite

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"

	"github.com/rope-rewrite/rope-rewrite/internal/engine"
	"github.com/rope-rewrite/rope-rewrite/onnx"
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
	pt   point
	kind int
}

// paddingTest tries who depends on the outputs of padded queries that see no key.
type paddingTest struct {
	table    *shapeTable
	session  engine.Session
	standIn  *standIn
	nodes    []*onnx.Node
	bounds   bounds
	suspects []analysed // whose op gives padded queries without keys something else
	all      []analysed // these and those that others are known to depend on
	rng      *rand.Rand
	roles    map[string][]role // of the outputs' dimensions
}

// culprits returns those of the suspects on whose padded queries other tokens
// depend.
func (l *lifter) culprits(ctx context.Context, part *scope, suspects []analysed) ([]analysed, error) {
	if !part.last {
		return nil, fmt.Errorf("nodes of the model read what %s gives", part.where)
	}
	culprits, err := l.culpritsWith(ctx, suspects, true)
	if errors.Is(err, errNothingMoves) { // norms whose weights are zeros, say: nobody uses such a model
		return l.culpritsWith(ctx, suspects, false)
	}
	return culprits, err
}

// culpritsWith looks for them in a stand-in with the model's own vectors or with
// others.
func (l *lifter) culpritsWith(ctx context.Context, suspects []analysed, vectors bool) ([]analysed, error) {
	r := &paddingTest{table: l.table, suspects: suspects, all: suspects, roles: map[string][]role{}}
	var replaced []string
	for _, f := range suspects {
		replaced = append(replaced, f.site.output())
	}
	var err error
	if r.standIn, err = newStandIn(l.graph.source, replaced, vectors); err != nil {
		return nil, err
	}
	m := r.standIn.model()
	r.nodes = slices.Clone(m.Graph.Nodes)
	if r.session, err = l.session(ctx, m, r.standIn.outputs); err != nil {
		return nil, fmt.Errorf("the model without its weights does not load: %w", err)
	}
	defer r.session.Close()
	if err := r.findRoles(ctx); err != nil {
		return nil, err
	}
	var culprits []analysed
	for len(r.suspects) > 0 {
		read, err := r.read(ctx, r.suspects)
		if err != nil || !read {
			return culprits, err
		}
		var more, rest []analysed
		for _, f := range r.suspects {
			if read, err = r.read(ctx, []analysed{f}); err != nil {
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
		if w := f.lifted.attention.Mask.Window; w > 0 && w < 512 {
			length = max(length, 2*w+9)
		}
	}
	for kind := 1; kind < 5; kind++ {
		list = append(list, paddingTrial{point{3, length, 7}, kind}, paddingTrial{point{2, 13, 0}, kind})
	}
	list = append(list, paddingTrial{point{3, 1, 9}, 1})
	if r.counted() {
		list = []paddingTrial{{point{3, 11, 0}, 2}, {point{2, 29, 0}, 2}}
	}
	for i := range list {
		list[i].pt = r.sizes(list[i].pt)
	}
	return list
}

// counted reports whether rows of the caches are counted: padding then stands on
// the right of a first call.
func (r *paddingTest) counted() bool {
	return slices.ContainsFunc(r.all, func(f analysed) bool { return f.lifted.counted != nil })
}

// sizes returns sizes that the model can be given, close to pt.
func (r *paddingTest) sizes(pt point) point {
	if !r.table.past {
		pt.L, pt.P = pt.L+pt.P, 0
	}
	for _, f := range r.all {
		if over := pt.L + pt.P - f.lifted.tokenLimit; over > 0 {
			pt.P -= min(over, pt.P)
			pt.L = min(pt.L, f.lifted.tokenLimit)
		}
	}
	return r.table.at(pt)
}

// read reports whether what the model gives for tokens that are not padding
// depends on the outputs that the sites give to padded queries without keys.
func (r *paddingTest) read(ctx context.Context, sites []analysed) (bool, error) {
	moved := false // by numbers in place of all outputs: else nothing could be seen
	ran, failed := map[int]bool{}, map[int]error{}
	for _, t := range r.trials() {
		some, err := r.trial(ctx, t, sites, !moved)
		if err != nil && t.pt.B > 1 && r.table.fixed.B == 0 && ctx.Err() == nil && !errors.Is(err, errNoNumbers) {
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
func (r *paddingTest) trial(ctx context.Context, t paddingTrial, sites []analysed, control bool) (seen seenReading, _ error) {
	mask := padding(rand.New(rand.NewPCG(13, uint64(t.kind))), t.pt, t.kind)
	if r.table.sharesRow(r.all) {
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
func (r *paddingTest) run(ctx context.Context, pt point, mask []int64, size float64, all bool, sites []analysed) (map[string]engine.Tensor, error) {
	r.rng = rand.New(rand.NewPCG(17, 18)) // the same inputs each time
	feeds, err := r.feeds(pt, mask, size)
	if err != nil {
		return nil, err
	}
	in := func(list []analysed, f analysed) bool {
		return slices.ContainsFunc(list, func(g analysed) bool { return g.index == f.index })
	}
	for _, f := range r.all {
		n := replacement{padded: in(r.suspects, f), all: all && in(sites, f)}
		if in(sites, f) {
			n.size = size
		}
		r.replace(feeds, f, pt, mask, n)
	}
	if err := r.bounds.check(r.nodes, r.standIn.consts, feeds); err != nil {
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

func (r *paddingTest) replace(feeds map[string]engine.Tensor, f analysed, pt point, mask []int64, n replacement) {
	dims := f.lifted.outputDims(pt)
	padded := f.lifted.padded(pt, mask)
	kind := f.lifted.rowsOfOutput(pt, func(b, i int64) rowKind {
		if padded[b*pt.L+i] {
			return paddedWithoutKeys
		}
		return compared
	})
	keep, other := make([]int64, engine.Elements(dims)), make([]float32, engine.Elements(dims))
	for i := range keep {
		keep[i] = b2i(!n.all && (!n.padded || kind(int64(i)) == compared))
		other[i] = float32(n.size * math.Pow(40, float64(i%2)) * r.rng.NormFloat64()) // norms may follow: small ones and large ones
	}
	v := f.site.output()
	feeds[v+keepSuffix], _ = engine.Integers(onnx.Bool, keep, dims...) // bool is a type that Integers takes
	feeds[v+otherSuffix] = engine.Float32s(other, dims...)
}

// padded says of each query whether the op may give it something else than the
// original: its token is padding, and no key is seen or that is not known.
func (l *lifted) padded(pt point, mask []int64) []bool {
	if l.mask != nil && !l.attention.Mask.Bias {
		list, _ := l.paddedWithoutKeys(sample{pt: pt, mask: mask}, 1)
		return list
	}
	list := make([]bool, pt.B*pt.L)
	for i := range list {
		b, row := int64(i)/pt.L, int64(i)%pt.L
		list[i] = mask[b*(pt.L+pt.P)+pt.P+row] == 0
	}
	return list
}
