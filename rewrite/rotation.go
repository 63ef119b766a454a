package rewrite

import (
	"context"
	"fmt"
	"math"
	"slices"

	"github.com/rope-rewrite/rope-rewrite/internal/engine"
	"github.com/rope-rewrite/rope-rewrite/rope"
)

// rotator evaluates one branch of a site: un-rotated vectors in, rotated ones
// out, at chosen positions.
type rotator struct {
	loaded   *loaded
	cuts     []string // most often one
	out      string
	in, to   layout
	position string  // graph input that holds positions; "" when they follow from past
	past     int64   // cached tokens, where positions are an input
	strict   bool    // what is computed in 16 bits must be right to the last place
	tables   *tables // what the graph computes for each place, without cache and position input
	places   int64   // the length of a model of fixed length that turns tokens by their place; 0 for others

	precision rope.Precision // in which the function is computed
	angles    rope.Precision // of the type that angles are computed in
	order     []int64        // which channel of the cut becomes each rotated one; nil when they keep their places
}

// apply feeds vectors (one per batch row, the same for every head and token)
// and returns out[vector][head][position][channel].
func (r *rotator) apply(ctx context.Context, vectors [][]float32, positions []int64) ([][][][]float64, error) {
	out := make([][][][]float64, len(vectors))
	for b := range out {
		out[b] = make([][][]float64, r.to.heads)
		for h := range out[b] {
			out[b][h] = make([][]float64, len(positions))
		}
	}
	// With a position input or tables all positions that the model takes go into
	// one call, a model of fixed length has its places in each; else a call holds
	// consecutive positions, past giving the first.
	for start := 0; start < len(positions); {
		end := len(positions)
		if most := r.loaded.table.fixed.L; most > 0 && r.places == 0 {
			end = min(end, start+int(most))
		}
		row := func(i int) int64 { return int64(i - start) } // where the token at positions[i] stands
		pt := point{B: int64(len(vectors)), L: int64(end - start), P: r.past}
		feeds := map[string]engine.Tensor{}
		switch {
		case r.places > 0:
			if last := slices.Max(positions); last >= r.places {
				return nil, fmt.Errorf("position %d is beyond %d, the last of the model's fixed length", last, r.places-1)
			}
			pt.L = r.places
			row = func(i int) int64 { return positions[i] }
		case r.tables != nil:
			for _, p := range positions {
				if p > r.tables.limit {
					return nil, fmt.Errorf("position %d is beyond %d, the last that the graph computes", p, r.tables.limit)
				}
			}
			for _, t := range r.tables.list {
				feeds[t.name] = t.rows(positions[start:end], pt.B)
			}
		case r.position == "":
			most := end
			end = start + 1
			for end < most && positions[end] == positions[end-1]+1 {
				end++
			}
			pt.L, pt.P = int64(end-start), positions[start]
		default:
			t, err := r.positionFeed(positions[start:end], pt)
			if err != nil {
				return nil, err
			}
			feeds[r.position] = t
		}
		if err := r.feed(feeds, vectors, pt); err != nil {
			return nil, err
		}
		result, err := r.loaded.run(ctx, pt, feeds)
		if err != nil {
			return nil, err
		}
		y := result[r.out]
		values := y.Values()
		if want := evaluate(r.loaded.table.dims[r.out], pt); !slices.Equal(want, y.Dims) {
			return nil, fmt.Errorf("%q has the shape %v, %v was expected", r.out, y.Dims, want)
		}
		for b := range out {
			for h := range out[b] {
				for i := start; i < end; i++ {
					vector := make([]float64, r.to.channels)
					for c := range vector {
						vector[c] = values[r.to.index(y.Dims, int64(b), int64(h), row(i), int64(c))]
					}
					out[b][h][i] = vector
				}
			}
		}
		start = end
	}
	return out, nil
}

// feed adds the values that make the vectors un-rotated keys or queries.
func (r *rotator) feed(feeds map[string]engine.Tensor, vectors [][]float32, pt point) error {
	first := int64(0) // channel of the value
	for i, ly := range r.in.each() {
		cut := r.cuts[i]
		dims := evaluate(r.loaded.table.dims[cut], pt)
		elements, err := room(dims)
		if err != nil {
			return err
		}
		x := make([]float32, elements)
		for b, v := range vectors {
			for c, value := range v {
				from := int64(c)
				if r.order != nil {
					from = r.order[c]
				}
				if from -= first; from < 0 || from >= ly.channels {
					continue
				}
				for h := range ly.heads {
					for l := range pt.L {
						x[ly.index(dims, int64(b), h, l, from)] = value
					}
				}
			}
		}
		feeds[cut] = r.loaded.piece.state(cut, x, dims...)
		first += ly.channels
	}
	return nil
}

func (r *rotator) positionFeed(positions []int64, pt point) (engine.Tensor, error) {
	for _, v := range r.loaded.piece.inputs {
		if v.Name == r.position {
			dims := evaluate(r.loaded.table.inputs[v.Name], pt)
			return engine.Integers(v.Type, slices.Repeat(positions, int(engine.Elements(dims)/pt.L)), dims...)
		}
	}
	return engine.Tensor{}, fmt.Errorf("%q is not an input of the piece", r.position)
}

// matrix is a measured rotation: what R(p) does, as the encoding that does it,
// times a factor on every channel.
type matrix struct {
	encoding rope.Encoding
	factor   float64        // on channels that are not rotated, and on the rotated ones beside the gain; 1 when all are rotated
	limit    int64          // largest position that could be evaluated
	angles   rope.Precision // of the type that angles are computed in
	unknown  float64        // relative error that the frequencies may have beyond float32's
	order    []int64        // which channel of the cut becomes each rotated one; nil when they keep their places
}

const (
	float32eps = 1.0 / (1 << 23)
	// topPosition is a power of two: positions 2^k make p·ω exact in float32,
	// and the angle at the last one gives ω to float32 accuracy.
	topPosition = 1 << 20
	largestHalf = 1 << 15 // the largest power of two in float16
)

// measure recovers frequencies, layout, width, offset and gain from the
// function itself, and checks them at many positions.
func (r *rotator) measure(ctx context.Context) (*matrix, error) {
	limit, err := r.limit(ctx)
	if err != nil {
		return nil, err
	}
	powers := []int64{0}
	for p := int64(1); p <= limit && (r.angles != rope.Float16 || p <= largestHalf); p *= 2 {
		powers = append(powers, p)
	}
	d := int(r.in.channels)
	basis := make([][]float32, d)
	for i := range basis {
		basis[i] = make([]float32, d)
		basis[i][i] = 1
	}
	m, err := r.apply(ctx, basis, powers)
	if err != nil {
		return nil, err
	}
	if err := sameOverHeads(m); err != nil {
		return nil, err
	}
	if r.order = rearranged(m); r.order != nil {
		there := slices.Clone(m)
		for to, from := range r.order {
			m[to] = there[from]
		}
	}
	pairs, err := findPairs(m, 1e-4*float64(powers[len(powers)-1])/topPosition)
	if err != nil {
		return nil, err
	}
	fit, err := fitEncoding(m, pairs, powers)
	if err != nil {
		return nil, err
	}
	if r.angles != rope.Float32 {
		limit = min(limit, int64(2/r.angles.Epsilon())-1) // larger positions are not even told apart
	}
	fit.limit, fit.angles, fit.order = limit, r.angles, r.order
	agreed, err := r.confirm(ctx, fit, powers[len(powers)-1])
	if err != nil && !ended(err) && r.angles != rope.Float32 {
		// ONNX Runtime leaves out roundings between products that it computes in float32.
		r.angles = rope.Float32
		agreed, err = r.confirm(ctx, fit, powers[len(powers)-1])
	}
	if err != nil && !ended(err) {
		if change := r.switches(ctx, fit); change != nil {
			return nil, change
		}
	}
	return agreed, err
}

// confirm checks a fit, and finds what its frequencies are where 16 bits blur them.
func (r *rotator) confirm(ctx context.Context, fit *matrix, top int64) (*matrix, error) {
	fit.unknown = 0
	if r.precision != rope.Float32 && len(fit.encoding.Frequencies) > 0 {
		return r.explained(ctx, fit, top)
	}
	return fit, r.verify(ctx, fit, fit.limit)
}

// limit finds the largest position the graph can rotate to: a table that is
// gathered from ends somewhere.
func (r *rotator) limit(ctx context.Context) (int64, error) {
	probe := func(p int64) error {
		_, err := r.apply(ctx, [][]float32{make([]float32, r.in.channels)}, []int64{p})
		return err
	}
	if err := probe(0); err != nil {
		return 0, fmt.Errorf("ONNX Runtime does not evaluate the rotation: %w", err)
	}
	switch {
	case r.tables != nil:
		return r.tables.limit, nil
	case r.places > 0:
		return r.places - 1, nil
	}
	return farthest(topPosition, func(p int64) (int64, error) { return p, probe(p) })
}

// top is the largest position that is asked for.
func (r *rotator) top() int64 {
	if r.tables != nil {
		return longest
	}
	return topPosition
}

// rearranged returns which channel each one is made of at position 0, where
// nothing is turned yet; nil when all keep their places or it is no such thing.
// (Channels of a pair that lie side by side are put into halves before they are turned.)
func rearranged(m [][][][]float64) []int64 {
	order := make([]int64, len(m))
	for i := range order {
		order[i] = -1
	}
	moved := false
	for in := range m {
		for out, v := range m[in][0][0] {
			if math.Abs(v) <= 1e-4 {
				continue
			}
			if order[out] >= 0 {
				return nil
			}
			order[out] = int64(in)
			moved = moved || in != out
		}
	}
	if !moved || slices.Contains(order, -1) {
		return nil
	}
	return order
}

func sameOverHeads(m [][][][]float64) error {
	for e := range m {
		for h := range m[e] {
			for p := range m[e][h] {
				for c, v := range m[e][h][p] {
					if first := m[e][0][p][c]; math.Abs(v-first) > 8*float32eps*math.Max(1, math.Abs(first)) {
						return fmt.Errorf("heads 0 and %d are rotated differently: %g and %g at channel %d", h, first, v, c)
					}
				}
			}
		}
	}
	return nil
}

// findPairs returns, for every channel, the one that it turns with, itself if
// it does not turn. What one basis vector gives a channel below least is none.
func findPairs(m [][][][]float64, least float64) ([]int, error) {
	d := len(m)
	partner := make([]int, d)
	for in := range m {
		partner[in] = in
		largest := least
		for out := range d {
			if out == in {
				continue
			}
			size := 0.0
			for p := range m[in][0] {
				size = math.Max(size, math.Abs(m[in][0][p][out]))
			}
			if size > largest {
				largest, partner[in] = size, out
			}
		}
	}
	for a, b := range partner {
		if partner[b] != a {
			return nil, fmt.Errorf("channel %d mixes with %d, which mixes with %d: not a rotation of pairs", a, b, partner[b])
		}
	}
	for in := range m {
		for p := range m[in][0] {
			for out, v := range m[in][0][p] {
				if out != in && out != partner[in] && math.Abs(v) > least {
					return nil, fmt.Errorf("channel %d reaches channel %d beside its partner %d: not a rotation of pairs", in, out, partner[in])
				}
			}
		}
	}
	return partner, nil
}

// fitEncoding reads layout, frequencies and gain from the matrices at 0 and
// the powers of two.
func fitEncoding(m [][][][]float64, partner []int, powers []int64) (*matrix, error) {
	first, width := -1, 0
	for c, p := range partner {
		if p != c {
			if first < 0 {
				first = c
			}
			width++
		}
	}
	fit := &matrix{factor: 1}
	if width == 0 {
		fit.factor = m[0][0][0][0]
		for c := range m {
			for p := range powers {
				if math.Abs(m[c][0][p][c]-fit.factor) > 8*float32eps*math.Abs(fit.factor) {
					return nil, fmt.Errorf("channel %d is multiplied by %g at position %d and by %g elsewhere", c, m[c][0][p][c], powers[p], fit.factor)
				}
			}
		}
		return fit, nil
	}
	for x := range width {
		if partner[first+x] == first+x {
			return nil, fmt.Errorf("channel %d is not rotated although its neighbours are", first+x)
		}
	}
	var pair func(x int) (int, int)
	switch partner[first] {
	case first + width/2:
		fit.encoding.Layout = rope.Half
		pair = func(x int) (int, int) { return first + x, first + x + width/2 }
	case first + 1:
		fit.encoding.Layout = rope.Interleaved
		pair = func(x int) (int, int) { return first + 2*x, first + 2*x + 1 }
	default:
		return nil, fmt.Errorf("channel %d turns with %d; halves or neighbours were expected", first, partner[first])
	}
	fit.encoding.Offset = first
	gain := m[first][0][0][first]
	if gain <= 0 {
		return nil, fmt.Errorf("the rotation at position 0 multiplies by %g", gain)
	}
	if width < len(m) {
		for c := range m {
			if partner[c] == c {
				fit.factor = m[c][0][0][c]
				break
			}
		}
		if fit.factor <= 0 {
			return nil, fmt.Errorf("channels that are not rotated are multiplied by %g", fit.factor)
		}
	}
	fit.encoding.Gain = gain / fit.factor
	for x := range width / 2 {
		a, b := pair(x)
		if partner[a] != b {
			return nil, fmt.Errorf("channel %d turns with %d, %d was expected", a, partner[a], b)
		}
		fit.encoding.Frequencies = append(fit.encoding.Frequencies, frequency(m, a, b, powers))
	}
	return fit, nil
}

// frequency unwraps the angle of one pair by doubling the position.
func frequency(m [][][][]float64, a, b int, powers []int64) float64 {
	omega := 0.0
	for k, p := range powers {
		if p == 0 {
			continue
		}
		angle := math.Atan2(m[a][0][k][b], m[a][0][k][a])
		turns := math.Round((omega*float64(p) - angle) / (2 * math.Pi))
		omega = (angle + 2*math.Pi*turns) / float64(p)
	}
	return float64(float32(omega))
}

// maxRotated is how many numbers of one vector's rotations are looked at in one
// call: those of a table of 131,072 rows, or of all positions of a model with
// many heads, would take gigabytes, here and in the evaluating process.
const maxRotated = 512 << 10

// together is how many positions are looked at in one call.
func (r *rotator) together() int {
	return int(min(max(maxRotated/(r.to.heads*r.to.channels), 16), 512))
}

// verify compares the fit with the function at every position up to 4095 and
// at many beyond, so that one wrong entry of a table is seen, and with many
// cached tokens, on which frequencies and factors may depend as well.
func (r *rotator) verify(ctx context.Context, fit *matrix, limit int64) error {
	var positions []int64
	for p := int64(0); p < min(4096, limit+1); p++ {
		positions = append(positions, p)
	}
	for _, p := range []int64{4097, 5003, 8191, 10007, 16383, 32771, 50021, 65535, 99991, 131071} {
		if p <= limit {
			positions = append(positions, p)
		}
	}
	if limit < r.top() && limit >= 4096 {
		// A table: every row of it is looked at.
		for p := int64(4096); p <= limit; p++ {
			positions = append(positions, p)
		}
	}
	for some := range slices.Chunk(positions, r.together()) {
		if err := r.compare(ctx, fit, some); err != nil {
			return err
		}
	}
	if r.position == "" || !r.loaded.table.past {
		return nil
	}
	for _, past := range []int64{1, 4097, 20011, 131071} {
		past = r.loaded.table.within(point{P: past}).P
		r.past = past
		if err := r.compare(ctx, fit, []int64{min(past, limit), min(3, limit)}); err != nil {
			return fmt.Errorf("with %d cached tokens %w", past, err)
		}
	}
	return nil
}

// rounding bounds what 16 bits add to the error of a product with a cosine or
// sine: two roundings of it, or two of the largest there is.
func (r *rotator) rounding(product, largest float64) float64 {
	p := r.precision
	switch {
	case p == rope.Float32:
		return 0
	case r.strict:
		allowed := p.Spacing(product)
		if fraction, _ := math.Frexp(largest); fraction != 0.5 {
			allowed += p.Epsilon() * math.Abs(product) // a factor that is no power of two rounds once more
		}
		return allowed
	}
	return 2 * p.Epsilon() * largest
}

// angle returns the angle at a position as the graph rounds it.
func (r *rotator) angle(p int64, omega float64) float64 {
	if r.angles != rope.Float32 {
		return r.angles.Round(float64(p) * omega)
	}
	return float64(float32(p) * float32(omega))
}

// pairAt returns the two channels of a head that pair x turns.
func pairAt(e rope.Encoding, x int) (int, int) {
	if e.Layout == rope.Interleaved {
		return e.Offset + 2*x, e.Offset + 2*x + 1
	}
	return e.Offset + x, e.Offset + x + len(e.Frequencies)
}

// compare checks the fit at the given positions.
func (r *rotator) compare(ctx context.Context, fit *matrix, positions []int64) error {
	d := int(r.in.channels)
	e := fit.encoding
	n := len(e.Frequencies)
	probes := [][]float32{make([]float32, d), make([]float32, d)}
	rotated := make([]bool, d)
	for x := range n {
		a, b := pairAt(e, x)
		probes[0][a], probes[1][b] = 1, 1
		rotated[a], rotated[b] = true, true
	}
	for c := range d {
		if !rotated[c] {
			probes[0][c], probes[1][c] = 1, 1
		}
	}
	y, err := r.apply(ctx, probes, positions)
	if err != nil {
		return err
	}
	gain := e.EffectiveGain() * fit.factor
	for i, p := range positions {
		for h := range y[0] {
			for x, omega := range e.Frequencies {
				angle := r.angle(p, omega)
				sin, cos := math.Sincos(angle)
				angleError := gain * (8*float32eps + 1.2e-7*float64(p)*math.Abs(omega))
				a, b := pairAt(e, x)
				for _, v := range [][2]float64{
					{y[0][h][i][a], gain * cos}, {y[0][h][i][b], gain * sin},
					{y[1][h][i][a], -gain * sin}, {y[1][h][i][b], gain * cos},
				} {
					if !(math.Abs(v[0]-v[1]) <= angleError+r.rounding(v[1], gain)) {
						return fmt.Errorf("at position %d, head %d, pair %d (ω = %g) the rotation gives %g, %g was expected", p, h, x, omega, v[0], v[1])
					}
				}
			}
			for c := range d {
				if !rotated[c] && !(math.Abs(y[0][h][i][c]-fit.factor) <= 8*float32eps*math.Abs(fit.factor)) {
					return fmt.Errorf("at position %d channel %d, which is not rotated, is multiplied by %g, %g was expected", p, c, y[0][h][i][c], fit.factor)
				}
			}
		}
	}
	return nil
}
