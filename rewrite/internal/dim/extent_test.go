package dim

import (
	"testing"

	"pgregory.net/rapid"
)

func drawExtent(t *rapid.T) Extent {
	c := rapid.Int64Range(-1000, 1000)
	return Extent{One: c.Draw(t, "one"), B: c.Draw(t, "B"), L: c.Draw(t, "L"), P: c.Draw(t, "P"), BL: c.Draw(t, "BL"), BP: c.Draw(t, "BP"), S: c.Draw(t, "S"), BS: c.Draw(t, "BS")}
}

func sampled(points []Point, f func(Point) int64) []int64 {
	var values []int64
	for _, p := range points {
		values = append(values, f(p))
	}
	return values
}

func TestFitExtentRecoversPolynomials(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		points := SamplePoints(true, true)
		want := drawExtent(t)
		got, ok := FitExtent(points, sampled(points, want.At))
		if !ok || got != want {
			t.Fatalf("%v became %v (%v)", want, got, ok)
		}
	})
}

// TestFitExtentWithoutPast: past and source stay 0 at every point, so nothing may be said of them.
func TestFitExtentWithoutPast(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		points := SamplePoints(false, false)
		want := drawExtent(t)
		want.P, want.BP, want.S, want.BS = 0, 0, 0, 0
		got, ok := FitExtent(points, sampled(points, want.At))
		if !ok || got != want {
			t.Fatalf("%v became %v (%v)", want, got, ok)
		}
	})
}

// TestFitExtentRefuses what is no polynomial of this form, the wrong value at
// any one point included.
func TestFitExtentRefuses(t *testing.T) {
	points := SamplePoints(true, true)
	for name, f := range map[string]func(p Point) int64{
		"length squared":    func(p Point) int64 { return p.L * p.L },
		"source squared":    func(p Point) int64 { return p.S * p.S },
		"length · source":   func(p Point) int64 { return p.L * p.S },
		"past squared":      func(p Point) int64 { return p.P * p.P },
		"length · past":     func(p Point) int64 { return p.L * p.P },
		"batch squared":     func(p Point) int64 { return p.B * p.B },
		"minimum":           func(p Point) int64 { return min(p.L+p.P, 12) },
		"maximum":           func(p Point) int64 { return max(p.L, 5) },
		"half":              func(p Point) int64 { return (p.L + p.P) / 2 },
		"modulo":            func(p Point) int64 { return p.P % 4 },
		"batch·length·past": func(p Point) int64 { return p.B * p.L * p.P },
	} {
		if e, ok := FitExtent(points, sampled(points, f)); ok {
			t.Errorf("%s is taken for %v", name, e)
		}
	}
	rapid.Check(t, func(t *rapid.T) {
		values := sampled(points, drawExtent(t).At)
		// The first six determine the extent; a wrong one among them shows at
		// the others unless it is itself an extent.
		i := rapid.IntRange(0, len(points)-1).Draw(t, "point")
		values[i] += rapid.Int64Range(1, 1000).Draw(t, "off")
		if e, ok := FitExtent(points, values); ok {
			t.Fatalf("with point %d wrong it is taken for %v", i, e)
		}
	})
}

func TestExtentString(t *testing.T) {
	for want, e := range map[string]Extent{
		"0":                            {},
		"7":                            ConstantExtent(7),
		"batch":                        BatchExtent,
		"length + past":                TotalExtent,
		"source + 2·batch·source":      {S: 1, BS: 2},
		"-2·past + 4·batch·length + 1": {One: 1, P: -2, BL: 4},
	} {
		if got := e.String(); got != want {
			t.Errorf("%q, %q was expected", got, want)
		}
	}
}
