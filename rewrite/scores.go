package rewrite

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"

	"github.com/rope-rewrite/rope-rewrite/internal/engine"
	"github.com/rope-rewrite/rope-rewrite/rope"
)

// scorer evaluates the function from scores to the softmax's input. Without a
// cache the queries of a point are the last ones of its tokens: byRows computes
// their rows alone.
type scorer struct {
	loaded  *loaded
	in      string
	out     string
	heads   int64
	mask    string // graph input [batch, total] that may hide keys; "" when there is none
	byRows  bool   // loaded computes the rows that it is asked for
	longest int64  // how many keys can stand before a query
}

// scoreFit is what the function was measured to be: factor·s on visible keys,
// masked elsewhere.
type scoreFit struct {
	factor float64
	mask   rope.Mask
	tokens int64 // how many the graph can compute: a mask kept as a table ends
}

// masked is the value below which a key counts as hidden, absolutely: after
// subtracting a row's maximum, a row of −FLT_MAX would look visible.
const masked = -9e3

// rows evaluates the function on scores and returns its values and the scores
// row by row, as [batch·heads·length][total].
func (s *scorer) rows(ctx context.Context, pt point, score func() float64, mask []int64) (in [][]float32, out [][]float64, err error) {
	total := pt.L + pt.P
	dims := []int64{pt.B, s.heads, pt.L, total}
	elements, err := room(dims)
	if err != nil {
		return nil, nil, err
	}
	x := make([]float32, elements)
	for i := range x {
		x[i] = float32(score())
	}
	feeds := map[string]engine.Tensor{s.in: s.loaded.piece.state(s.in, x, dims...)}
	sizes := pt
	if s.byRows {
		var rows []int64
		for i := range pt.L {
			rows = append(rows, pt.P+i)
		}
		feeds[rowsInput] = engine.Int64s(rows, pt.L)
		sizes = point{B: pt.B, L: total}
	}
	if s.mask != "" && mask != nil {
		for _, v := range s.loaded.piece.inputs {
			if v.Name == s.mask {
				if feeds[v.Name], err = engine.Integers(v.Type, mask, pt.B, total); err != nil {
					return nil, nil, err
				}
			}
		}
	}
	result, err := s.loaded.run(ctx, sizes, feeds)
	if err != nil {
		return nil, nil, fmt.Errorf("ONNX Runtime does not evaluate the mask: %w", err)
	}
	y := result[s.out]
	if !slices.Equal(y.Dims, dims) {
		return nil, nil, fmt.Errorf("the softmax's input has the shape %v, the scores have %v", y.Dims, dims)
	}
	values := y.Values()
	for i := int64(0); i < int64(len(values)); i += total {
		in, out = append(in, x[i:i+total]), append(out, values[i:i+total])
	}
	return in, out, nil
}

// sample is one evaluation: scores in, the softmax's input out.
type sample struct {
	pt   point
	mask []int64
	in   [][]float32
	out  [][]float64
}

func (s *scorer) sample(ctx context.Context, pt point, mask []int64, score func() float64) (sample, error) {
	in, out, err := s.rows(ctx, pt, score, mask)
	return sample{pt, mask, in, out}, err
}

// extremes checks the fit where small samples do not reach: one query with very
// many keys before it (windows, chunks, biases and factors that begin far away)
// and scores so large that a softcap or a clip bends them.
func (s *scorer) extremes(ctx context.Context, fit *scoreFit, rng *rand.Rand) error {
	far := []int64{4095, 20011, 100_003, s.longest}
	if w := fit.mask.Window; w > 0 {
		far = append(far, w-1, w, w+w/2+1)
	}
	for i, past := range far {
		pt := point{B: 1, L: 1, P: min(past, s.longest)}
		smp, err := s.sample(ctx, pt, padding(rng, pt, 3*(i%2)), func() float64 { return 5 * rng.NormFloat64() })
		if err != nil {
			return err
		}
		if err := s.seesAsExpected(fit, smp); err != nil {
			return err
		}
		if err := s.linear(fit, smp); err != nil {
			return err
		}
	}
	pt := point{B: 2, L: 5, P: 4}
	smp, err := s.sample(ctx, pt, padding(rng, pt, 0), func() float64 { return 6e4*rng.Float64() - 3e4 })
	if err != nil {
		return err
	}
	// Where hidden keys get −1e4, such scores would make them visible: only those that are seen count.
	return s.linear(fit, smp)
}

// maxTable is the number of tokens up to which a mask that is kept as a table
// is looked at, row by row.
const maxTable = 8192

// everyRow checks the fit at every query of a mask that ends somewhere: it is a
// table, of which each entry may be anything.
func (s *scorer) everyRow(ctx context.Context, fit *scoreFit, rng *rand.Rand) error {
	if s.longest == longest {
		return nil
	}
	if s.longest >= maxTable {
		return fmt.Errorf("it is kept as a table for %d tokens; up to %d are looked at", s.longest+1, maxTable)
	}
	some := max(1<<20/(s.heads*(s.longest+1)), 1)
	for first := int64(0); first <= s.longest; first += some {
		pt := point{B: 1, L: min(some, s.longest+1-first), P: first}
		smp, err := s.sample(ctx, pt, padding(rng, pt, 0), rng.NormFloat64)
		if err != nil {
			return err
		}
		if err := s.seesAsExpected(fit, smp); err != nil {
			return err
		}
		if err := s.linear(fit, smp); err != nil {
			return err
		}
	}
	return nil
}

// seesAsExpected compares which keys are visible with the fitted mask.
func (s *scorer) seesAsExpected(fit *scoreFit, smp sample) error {
	total := smp.pt.L + smp.pt.P
	for r := range smp.out {
		h, b, i := s.place(smp.pt, r)
		if fit.first(smp, b, i) < 0 {
			continue // a query that sees no key carries no meaning
		}
		for j := range total {
			if want, got := fit.visible(smp.pt, smp.mask, b, i, j), smp.out[r][j] > masked; want != got {
				return fmt.Errorf("head %d, query %d, key %d (past %d%s): visible is %v, %v was expected of %s",
					h, i, j, smp.pt.P, describePadding(smp.mask[b*total:(b+1)*total]), got, want, describeMask(fit.mask))
			}
		}
	}
	return nil
}

// describePadding shows a row of padding where it is short enough to be read.
func describePadding(row []int64) string {
	if len(row) > 32 {
		return ""
	}
	return fmt.Sprintf(", padding %v", row)
}

// linear compares the values of visible keys with factor · score, up to one
// constant per row, which a softmax does not see.
func (s *scorer) linear(fit *scoreFit, smp sample) (wrong error) {
	slack := 16 * float32eps
	if p := s.loaded.piece.precision(); p != rope.Float32 {
		slack = 2 * p.Epsilon()
	}
	s.visit(fit, smp, func(h, i int64, x, y, x0, y0 float64) {
		want := fit.factor * (x - x0)
		tolerance := slack * (math.Abs(y) + math.Abs(y0) + math.Abs(fit.factor*x) + math.Abs(fit.factor*x0))
		if wrong == nil && !(math.Abs(y-y0-want) <= tolerance) {
			wrong = fmt.Errorf("head %d, query %d (past %d): scores %g and %g become %g and %g, which is not a factor of %g (a softcap or a bias is not lifted yet)",
				h, i, smp.pt.P, x, x0, y, y0, fit.factor)
		}
	})
	return wrong
}

// visit calls f for every visible key with its score x and value y, beside
// those of the first visible key of its row.
func (s *scorer) visit(fit *scoreFit, smp sample, f func(h, i int64, x, y, x0, y0 float64)) {
	total := smp.pt.L + smp.pt.P
	for r := range smp.in {
		h, b, i := s.place(smp.pt, r)
		first := fit.first(smp, b, i)
		if first < 0 {
			continue
		}
		for j := first; j < total; j++ {
			if fit.visible(smp.pt, smp.mask, b, i, j) {
				f(h, i, float64(smp.in[r][j]), smp.out[r][j], float64(smp.in[r][first]), smp.out[r][first])
			}
		}
	}
}

// place returns head, batch row and query of a row of scores.
func (s *scorer) place(pt point, r int) (h, b, i int64) {
	return int64(r) / pt.L % s.heads, int64(r) / pt.L / s.heads, int64(r) % pt.L
}

// first returns the first key that query i of row b sees, −1 when it sees none.
func (f *scoreFit) first(smp sample, b, i int64) int64 {
	for j := range smp.pt.L + smp.pt.P {
		if f.visible(smp.pt, smp.mask, b, i, j) {
			return j
		}
	}
	return -1
}

func zero() float64 { return 0 }

// measure recovers the mask and the factor on scores, and checks both on
// random padding, several sizes and scores of several magnitudes.
func (s *scorer) measure(ctx context.Context) (*scoreFit, error) {
	fit := &scoreFit{}
	if err := s.structure(ctx, fit); err != nil {
		return nil, err
	}
	rng := rand.New(rand.NewPCG(3, 4))
	var dot, norm float64
	var samples []sample
	for _, magnitude := range []float64{0.5, 5, 40} {
		for i, pt := range []point{{2, 5, 0}, {3, 4, 6}, {2, 1, 9}, {2, 9, 3}, {1, 7, 2}} {
			smp, err := s.sample(ctx, pt, padding(rng, pt, i), func() float64 { return magnitude * rng.NormFloat64() })
			if err != nil {
				return nil, err
			}
			if err := s.seesAsExpected(fit, smp); err != nil {
				return nil, err
			}
			samples = append(samples, smp)
		}
	}
	for _, smp := range samples {
		s.visit(fit, smp, func(_, _ int64, x, y, x0, y0 float64) {
			dot += (x - x0) * (y - y0)
			norm += (x - x0) * (x - x0)
		})
	}
	if norm == 0 {
		return nil, errors.New("no query sees two keys, so what happens to scores cannot be measured")
	}
	fit.factor = snapped(dot/norm, s.loaded.piece.precision())
	for _, smp := range samples {
		if err := s.linear(fit, smp); err != nil {
			return nil, err
		}
	}
	if err := s.extremes(ctx, fit, rng); err != nil {
		return nil, err
	}
	if err := s.everyRow(ctx, fit, rng); err != nil {
		return nil, err
	}
	if !(fit.factor > 0) {
		return nil, fmt.Errorf("scores are multiplied by %g", fit.factor)
	}
	return fit, nil
}

// visible says whether the fitted mask shows key j to query i of row b.
func (f *scoreFit) visible(pt point, mask []int64, b, i, j int64) bool {
	total := pt.L + pt.P
	distance := pt.P + i - j
	switch {
	case f.mask.Causal && distance < 0:
		return false
	case f.mask.Window > 0 && (distance >= f.mask.Window || -distance >= f.mask.Window):
		return false
	case f.mask.Padding && mask[b*total+j] == 0:
		return false
	}
	return true
}

// padding makes masks of several kinds: none, left, right, holes, random.
func padding(rng *rand.Rand, pt point, kind int) []int64 {
	total := pt.L + pt.P
	mask := slices.Repeat([]int64{1}, int(pt.B*total))
	for b := range pt.B {
		row := mask[b*total : (b+1)*total]
		n := rng.Int64N(max(total/2, 1)) + 1
		for j := range total {
			switch kind % 5 {
			case 1:
				row[j] = b2i(j >= n)
			case 2:
				row[j] = b2i(j < total-n)
			case 3:
				row[j] = b2i(j < n || j >= n+2)
			case 4:
				row[j] = rng.Int64N(2)
			}
		}
	}
	return mask
}

func b2i(b bool) int64 {
	if b {
		return 1
	}
	return 0
}

// longest is the distance up to which a window is looked for.
const longest = 131071

// structure reads causality and window from unpadded rows, and whether the
// padding mask hides keys.
func (s *scorer) structure(ctx context.Context, fit *scoreFit) error {
	pt := point{B: 2, L: 5, P: 4}
	ones := slices.Repeat([]int64{1}, int(pt.B*(pt.L+pt.P)))
	_, out, err := s.rows(ctx, pt, zero, ones)
	if err != nil {
		return err
	}
	fit.mask.Causal = true
	for j := pt.P + 1; j < pt.P+pt.L; j++ {
		if out[0][j] > masked { // the first query and a later key
			fit.mask.Causal = false
		}
	}
	// One row as long as windows get: the last query and all keys before it.
	s.longest, err = farthest(longest, func(past int64) (int64, error) {
		_, row, err := s.rows(ctx, point{B: 1, L: 1, P: past}, zero, slices.Repeat([]int64{1}, int(past)+1))
		if err == nil {
			out = row
		}
		return past, err
	})
	if err != nil {
		return err
	}
	seen := int64(0)
	for _, v := range out[0] {
		seen += b2i(v > masked)
	}
	if seen < int64(len(out[0])) {
		fit.mask.Window = seen
	}
	fit.mask.Padding = s.mask != ""
	fit.tokens = s.longest + 1
	return nil
}

func describeMask(m rope.Mask) string {
	s := "bidirectional"
	if m.Causal {
		s = "causal"
	}
	if m.Window > 0 {
		s += fmt.Sprintf(" + window %d", m.Window)
	}
	if m.FirstKeys > 0 {
		s += fmt.Sprintf(" + first %d keys", m.FirstKeys)
	}
	if m.Padding {
		s += " + padding"
	}
	return s
}

// probabilitiesKept checks that nothing but the removal of NaN stands between
// the softmax and the product with the values.
func probabilitiesKept(ctx context.Context, l *loaded, in, out string, heads int64) error {
	pt := point{B: 2, L: 3, P: 2}
	if !l.table.past {
		pt = point{B: 2, L: 5}
	}
	dims := []int64{pt.B, heads, pt.L, pt.L + pt.P}
	rng := rand.New(rand.NewPCG(5, 6))
	x := make([]float32, engine.Elements(dims))
	for i := range x {
		x[i] = rng.Float32()
	}
	result, err := l.run(ctx, pt, map[string]engine.Tensor{in: l.piece.state(in, x, dims...)})
	if err != nil {
		return err
	}
	y := result[out]
	if !slices.Equal(y.Dims, dims) {
		return fmt.Errorf("the probabilities' shape %v becomes %v", dims, y.Dims)
	}
	for i, v := range y.Values() {
		if v != float64(x[i]) {
			return fmt.Errorf("the probability %g becomes %g", x[i], v)
		}
	}
	return nil
}
