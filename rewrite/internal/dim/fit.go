package dim

// FitExtent finds the extent that has the given values at the given points, if
// there is one. The points are those of SamplePoints.
func FitExtent(points []Point, values []int64) (Extent, bool) {
	at := func(b, l, p int) int64 { // the value with these sizes added to the first point's
		return values[b*3+l+2*p]
	}
	var slopeL, slopeP, slopeS, rest [2]int64
	for b := range 2 {
		slopeL[b] = at(b, 1, 0) - at(b, 0, 0)
		slopeP[b] = at(b, 0, 1) - at(b, 0, 0)
		if points[0].S > 0 {
			slopeS[b] = values[len(points)-2+b] - at(b, 0, 0)
		}
		rest[b] = at(b, 0, 0) - slopeL[b]*points[0].L - slopeP[b]*points[0].P - slopeS[b]*points[0].S
	}
	b0 := points[0].B
	line := func(v [2]int64) (one, slope int64) { slope = v[1] - v[0]; return v[0] - slope*b0, slope }
	var e Extent
	e.L, e.BL = line(slopeL)
	e.P, e.BP = line(slopeP)
	e.S, e.BS = line(slopeS)
	e.One, e.B = line(rest)
	for i, p := range points {
		if e.At(p) != values[i] {
			return Extent{}, false
		}
	}
	return e, true
}

// FitAll fits every dimension of a shape that was sampled at points; it fails
// where the rank differs between samples. The same holds for any list of integers.
func FitAll(points []Point, samples [][]int64) ([]Extent, bool) {
	if len(samples) != len(points) {
		return nil, false
	}
	fit := make([]Extent, len(samples[0]))
	for i := range fit {
		column := make([]int64, len(points))
		for k, s := range samples {
			if len(s) != len(fit) {
				return nil, false
			}
			column[k] = s[i]
		}
		var ok bool
		if fit[i], ok = FitExtent(points, column); !ok {
			return nil, false
		}
	}
	return fit, true
}
