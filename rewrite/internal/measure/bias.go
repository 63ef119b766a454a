package measure

import (
	"fmt"
	"maps"
	"math"
	"slices"

	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/score"
	"github.com/rope-rewrite/rope-rewrite/rope"
	"github.com/rope-rewrite/rope-rewrite/rope/encoding"
)

// byDistance is what a head adds to its scores, by the distance from query back to
// key, less what it adds at distance 0.
type byDistance map[int64]float64

// NameBias names biases [heads, length, total] by how they depend on the distance
// between query and key; "" where there is only a mask. A constant that is added to all
// keys of a query does not count: it does not change a softmax. A closed form is named
// if it gives the biases as exactly as float32 can compute it, and then with the numbers
// that were measured.
func NameBias(values []float64, length, total int64) string {
	switch b := readBiases(values, length, total); {
	case b.flat:
		return ""
	case b.linear:
		return nameSlopes(b.slopes)
	case b.toeplitz:
		return nameRelative(b.heads, b.largest, length)
	}
	return "biases on the scores, of an unknown kind"
}

// nameSlopes names a bias that falls linearly with the distance, by the slope of each head.
func nameSlopes(slopes []float64) string {
	return fmt.Sprintf("ALiBi (scores fall linearly with the distance, by %.3g to %.3g per token%s)", slices.Min(slopes), slices.Max(slopes), ofHeads(slopes))
}

// NameDistance names a bias by distance that was measured, as NameBias does; "" for none.
func NameDistance(d rope.Distance) (name string) {
	switch {
	case d.IsZero():
		return ""
	case d.Slopes != nil:
		name = nameSlopes(d.Slopes)
	default:
		name = nameRanges(d)
	}
	if d.Shown {
		name += ", counted in tokens that are not padding"
	}
	return name
}

// nameRanges names a bias by ranges of distances. Behind the last one that begins, a form that is no
// bucket's would go on.
func nameRanges(d rope.Distance) string {
	const (
		behind = 8    // distances in the last bucket
		most   = 4096 // no form of more distances is looked for
	)
	ranges := fmt.Sprintf("relative biases on the scores, in %d ranges of distances", len(d.Starts))
	last := max(-d.Starts[0], d.Starts[len(d.Starts)-1])
	if last > most {
		return ranges
	}
	heads, largest := tabled(d, last)
	if name := nameForm(heads, largest, last); name != "" {
		return name
	}
	heads, largest = tabled(d, last+behind)
	if name := nameBuckets(heads, largest); name != "" {
		return name
	}
	return ranges
}

// tabled returns a bias at all distances up to the last one, and the size of the largest number.
func tabled(d rope.Distance, last int64) (heads []byDistance, largest float64) {
	first := int64(0)
	if d.Starts[0] < 0 {
		first = -last
	}
	for h := range d.Biases[0] {
		head := byDistance{}
		for distance := first; distance <= last; distance++ {
			if bias := d.Bias(h, distance); distance != 0 {
				head[distance] = bias - d.Bias(h, 0)
				largest = max(largest, math.Abs(bias))
			}
		}
		heads = append(heads, head)
	}
	return heads, largest
}

// biases are what biases are like, up to a constant for each query.
type biases struct {
	flat     bool // there is a mask only
	linear   bool // they fall linearly with the distance
	toeplitz bool // they depend on the distance alone
	slopes   []float64
	heads    []byDistance
	largest  float64 // of the numbers from which differences were taken
}

// readBiases says what biases [heads, length, total] are like.
func readBiases(values []float64, length, total int64) biases {
	if total < length {
		return biases{flat: true} // keys of another text, from which there are no distances
	}
	all := biases{flat: true, linear: true, toeplitz: true}
	for start := int64(0); start+length*total <= int64(len(values)); start += length * total {
		at := func(i, j int64) float64 { return values[start+i*total+j] }
		shift := total - length // keys before the first query
		head := byDistance{}
		slope, seen := math.NaN(), int64(0) // of this head
		for i := range length {
			self := at(i, i+shift)
			for j := range total {
				b := at(i, j)
				if b < score.Masked || self < score.Masked {
					continue
				}
				seen++
				distance := i + shift - j
				tolerance := linearTolerance * (math.Abs(b) + math.Abs(self) + 1e-3)
				all.flat = all.flat && math.Abs(b-self) <= tolerance
				if distance == 0 {
					continue
				}
				all.largest = max(all.largest, math.Abs(b), math.Abs(self))
				per := (b - self) / float64(distance)
				if math.IsNaN(slope) {
					slope = per
				}
				all.linear = all.linear && math.Abs(per-slope)*math.Abs(float64(distance)) <= tolerance
				if other, ok := head[distance]; ok {
					all.toeplitz = all.toeplitz && math.Abs(b-self-other) <= tolerance
				}
				head[distance] = b - self
			}
		}
		if seen == 0 {
			return biases{flat: true}
		}
		if !math.IsNaN(slope) {
			all.slopes = append(all.slopes, -slope)
		}
		all.heads = append(all.heads, head)
	}
	all.toeplitz = all.toeplitz && !all.flat
	return all
}

// linearTolerance is by which share a bias may differ from a linear one.
const linearTolerance = 1e-4

// ofHeads says in words whether slopes are the ones that ALiBi has for as many heads, all times
// the same number: Falcon scales scores and biases together. One slope says nothing.
func ofHeads(slopes []float64) string {
	if len(slopes) < 2 {
		return ""
	}
	factor := 0.0
	for h, want := range encoding.Slopes(len(slopes)) {
		if h == 0 {
			factor = slopes[h] / want
		}
		if !(math.Abs(slopes[h]-factor*want) <= linearTolerance*math.Abs(slopes[h])) {
			return ""
		}
	}
	if math.Abs(factor-1) <= linearTolerance {
		return fmt.Sprintf(": the slopes of %d heads", len(slopes))
	}
	return fmt.Sprintf(": the slopes of %d heads, times %.4g", len(slopes), factor)
}

// nameForm names biases that depend on the distance alone, "" where they have no known form.
func nameForm(heads []byDistance, largest float64, length int64) string {
	for _, name := range []func([]byDistance, float64) string{nameKERPLELog, nameKERPLEPower, nameBuckets} {
		if text := name(heads, largest); text != "" {
			return text
		}
	}
	return nameSandwich(heads, largest, length)
}

// nameRelative is nameForm with a name for biases of another form.
func nameRelative(heads []byDistance, largest float64, length int64) string {
	if text := nameForm(heads, largest, length); text != "" {
		return text
	}
	distances := map[int64]bool{0: true}
	for _, h := range heads {
		for d := range h {
			distances[d] = true
		}
	}
	return fmt.Sprintf("relative biases on the scores, a table of %d distances or more", len(distances))
}

// fits says whether a head is what a closed form gives. bound is how far float32
// arithmetic may take each value from it. The numbers of the form were found by least
// squares with these bounds as weights: those of the model itself leave at most one bound
// at each distance, so the best ones leave no more than that on average.
func fits(h byDistance, form, bound func(distance float64) float64) bool {
	sum := 0.0
	for d, v := range h {
		x := math.Abs(float64(d))
		e := (v - form(x)) / bound(x)
		sum += e * e
	}
	return sum <= float64(len(h))
}

// unit is the largest relative error of one rounding to float32.
const unit = 1.0 / (1 << 24)

// leastDistances is how many distances a form with two numbers must explain.
const leastDistances = 4

// span writes the smallest and the largest of some numbers.
func span(name string, x []float64) string {
	low, high := slices.Min(x), slices.Max(x)
	if high-low <= 1e-5*math.Abs(high) {
		return fmt.Sprintf("%s %.4g", name, low)
	}
	return fmt.Sprintf("%s %.4g to %.4g", name, low, high)
}

// refine improves the two numbers of a form by Gauss and Newton's method. Both are
// positive and are changed by factors.
func refine(h byDistance, a, b float64, form func(a, b, x float64) float64, bound func(a, b, x float64) float64) (float64, float64) {
	distances := slices.Sorted(maps.Keys(h))
	for range 50 {
		const step = 1e-6
		var aa, ab, bb, ra, rb float64
		for _, d := range distances {
			x := math.Abs(float64(d))
			w := 1 / bound(a, b, x)
			r := (h[d] - form(a, b, x)) * w
			da := (form(a*(1+step), b, x) - form(a*(1-step), b, x)) / (2 * step) * w
			db := (form(a, b*(1+step), x) - form(a, b*(1-step), x)) / (2 * step) * w
			aa, ab, bb, ra, rb = aa+da*da, ab+da*db, bb+db*db, ra+da*r, rb+db*r
		}
		det := aa*bb - ab*ab
		if !(det > 0) {
			break
		}
		ga, gb := (ra*bb-rb*ab)/det, (rb*aa-ra*ab)/det
		ga, gb = max(-0.5, min(0.5, ga)), max(-0.5, min(0.5, gb))
		a, b = a*(1+ga), b*(1+gb)
		if math.Abs(ga)+math.Abs(gb) < 1e-12 {
			break
		}
	}
	return a, b
}

// nameKERPLELog recognises −r1·ln(1 + r2·distance) (Chi et al., arXiv:2205.09921).
func nameKERPLELog(heads []byDistance, largest float64) string {
	form := func(a, b, x float64) float64 { return encoding.KERPLELog{R1: a, R2: b}.Bias(x) }
	bound := func(a, b, x float64) float64 { // product and sum under the logarithm; it, r1 and a scale; the differences
		return unit * (2*a - 6*form(a, b, x) + 2*largest)
	}
	start := func(h byDistance, near, far int64) (float64, float64, bool) {
		ratio := h[far] / h[near]
		low, high := math.Log(1e-6), math.Log(1e6)
		gone := func(logB float64) float64 {
			b := math.Exp(logB)
			return form(1, b, float64(far))/form(1, b, float64(near)) - ratio
		}
		if !(gone(low) > 0) || !(gone(high) < 0) {
			return 0, 0, false
		}
		for range 100 {
			if middle := (low + high) / 2; gone(middle) > 0 {
				low = middle
			} else {
				high = middle
			}
		}
		b := math.Exp(low)
		return h[near] / form(1, b, float64(near)), b, true
	}
	return nameKERPLE(heads, "KERPLE biases on the scores, −r1·ln(1 + r2·distance)", form, bound, start)
}

// nameKERPLEPower recognises −r1·distance^r2.
func nameKERPLEPower(heads []byDistance, largest float64) string {
	form := func(a, b, x float64) float64 { return encoding.KERPLEPower{R1: a, R2: b}.Bias(x) }
	bound := func(a, b, x float64) float64 { return unit * (-8*form(a, b, x) + 2*largest) } // a power of 2 ulp, r1 and a scale
	start := func(h byDistance, near, far int64) (float64, float64, bool) {
		n, f := math.Abs(float64(near)), math.Abs(float64(far))
		b := math.Log(h[far]/h[near]) / math.Log(f/n)
		return h[near] / form(1, b, n), b, b > 0 && b <= 2+1e-4
	}
	return nameKERPLE(heads, "KERPLE biases on the scores, −r1·distance^r2", form, bound, start)
}

// nameKERPLE fits a form with two numbers to every head. start finds the numbers from
// a near and a far distance.
func nameKERPLE(heads []byDistance, name string, form, bound func(a, b, x float64) float64, start func(h byDistance, near, far int64) (float64, float64, bool)) string {
	var first, second []float64
	for _, h := range heads {
		byLength := slices.SortedFunc(maps.Keys(h), func(a, b int64) int { return int(math.Abs(float64(a)) - math.Abs(float64(b))) })
		if len(byLength) < leastDistances {
			return ""
		}
		near, far := byLength[0], byLength[len(byLength)-1]
		if !(h[near] < 0) || !(h[far] < h[near]) || near == -far {
			return ""
		}
		a, b, ok := start(h, near, far)
		if !ok {
			return ""
		}
		a, b = refine(h, a, b, form, bound)
		if !(a > 0) || !(b > 0) || !fits(h, func(x float64) float64 { return form(a, b, x) }, func(x float64) float64 { return bound(a, b, x) }) {
			return ""
		}
		first, second = append(first, a), append(second, b)
	}
	return fmt.Sprintf("%s with %s and %s", name, span("r1", first), span("r2", second))
}

// nameSandwich recognises the sum of cosines that sinusoidal positions give one another,
// Σ cos(distance/10000^(i/pairs)) times a number for each head (Chi et al., arXiv:2212.10356).
func nameSandwich(heads []byDistance, largest float64, length int64) string {
	const most = 512 // pairs; the paper has 64
	for pairs := 2; pairs <= most; pairs++ {
		frequencies := encoding.Sandwich{Pairs: pairs}.Frequencies()
		turned := 0.0
		for _, omega := range frequencies {
			turned += omega
		}
		sum := func(x float64) (s float64) {
			for _, omega := range frequencies {
				s += math.Cos(x*omega) - 1
			}
			return s
		}
		// Angles of positions up to the length, sine and cosine of them, products, and their sum.
		off := unit * (6*float64(length)*turned + float64(pairs)*(4+math.Log2(float64(pairs))))
		var scales []float64
		for _, h := range heads {
			scale, ok := fitScale(nearest(h), sum, off, largest)
			if ok { // few distances refuse most sums
				scale, ok = fitScale(h, sum, off, largest)
			}
			if !ok {
				break
			}
			scales = append(scales, scale)
		}
		if len(scales) == len(heads) {
			return fmt.Sprintf("Sandwich biases on the scores, sums of %d cosines of the distance with %s", pairs, span("factor", scales))
		}
	}
	return ""
}

// nearest keeps the distances up to 12.
func nearest(h byDistance) byDistance {
	near := maps.Clone(h)
	maps.DeleteFunc(near, func(d int64, _ float64) bool { return d < -12 || d > 12 })
	return near
}

// fitScale finds the number by which a sum of cosines, each off by a share of off, gives
// a head's biases, and whether it does.
func fitScale(h byDistance, sum func(float64) float64, off, largest float64) (scale float64, ok bool) {
	var vs, ss float64
	for d, v := range h {
		s := sum(math.Abs(float64(d)))
		vs, ss = vs+v*s, ss+s*s
	}
	scale = vs / ss
	bound := func(x float64) float64 { return scale*(off+4*unit*math.Abs(sum(x))) + 2*unit*largest }
	return scale, scale > 0 && len(h) >= leastDistances && fits(h, func(x float64) float64 { return scale * sum(x) }, bound)
}
