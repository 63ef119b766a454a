package rope_test

import (
	"fmt"
	"testing"

	"github.com/rope-rewrite/rope-rewrite/rope"
)

// TestStringDefault enumerates the distances that queries of a context meet with the
// default shift: all are trained ones, no smaller shift from a third of the context on has
// that, and beyond twice the trained length, less the window, the method is refused.
func TestStringDefault(t *testing.T) {
	const trained, window = 600, 40
	for _, c := range []struct {
		name    string
		length  int64
		scaling string
		good    int64 // with the scaling; 0 is unknown
		want    int64 // shift; 0 is refused
	}{
		{"T/2", trained / 2, "", trained, 100},
		{"T", trained, "", trained, 200},
		{"1.5T", 900, "", trained, 340},
		{"2T − 2W", 2*trained - 2*window, "", trained, 560},
		{"2T − W", 2*trained - window, "", trained, 600},
		{"2T − W + 1", 2*trained - window + 1, "", trained, 0},
		{"2T", 2 * trained, "", trained, 0},
		{"4T", 4 * trained, "", trained, 0},
		{"4T with a scaling", 4 * trained, "linear:factor=2", 2 * trained, 0},
		{"4T − W with a scaling", 4*trained - window, "linear:factor=2", 2 * trained, 1200},
		{"4T with a larger one", 4 * trained, "linear:factor=4", 4 * trained, 800},
		{"4T with one of unknown reach", 4 * trained, "theta:rope_theta=500000", 0, 800},
	} {
		list := specs(t, c.scaling, fmt.Sprintf("string:window=%d", window))
		known := rope.Context{Length: c.length, Original: trained}
		known.Reachable = rope.Reachable(list, known)
		if known.Reachable != c.good {
			t.Errorf("%s: good for %d, want %d", c.name, known.Reachable, c.good)
		}
		a, warnings, err := list[0].Apply(llama(), known)
		if err != nil {
			if c.want != 0 {
				t.Errorf("%s: %v", c.name, err)
			}
			continue
		}
		if c.want == 0 || len(a.Bands) != 2 || a.Bands[1].Start != c.want {
			t.Errorf("%s: %+v, want shift %d (0: refused)", c.name, a.Bands, c.want)
			continue
		}
		if known.Reachable == 0 {
			if len(warnings) != 1 {
				t.Errorf("%s: warnings %q", c.name, warnings)
			}
			continue
		}
		if w := a.Unreached(known.Reachable, known); len(warnings) > 0 || w != "" {
			t.Errorf("%s: warnings %q %q", c.name, warnings, w)
		}
		if far := farthestMet(c.length, c.want, window); far >= c.good {
			t.Errorf("%s: distance %d is met, and the attention is good for %d tokens", c.name, far, c.good)
		}
		if c.want > c.length/3 && farthestMet(c.length, c.want-1, window) < c.good {
			t.Errorf("%s: shift %d would do", c.name, c.want-1)
		}
	}
}

// farthestMet goes through all distances of a context by the paper's equation 4.
func farthestMet(length, shift, window int64) (farthest int64) {
	for d := range length {
		if d >= shift {
			d += window - shift
		}
		farthest = max(farthest, d)
	}
	return farthest
}
