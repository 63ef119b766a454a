package plainonnx

import (
	"math"

	"github.com/rope-rewrite/rope-rewrite/onnx"
	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/ir"
	"github.com/rope-rewrite/rope-rewrite/rope"
)

// Rotates reports whether a constant holds the frequencies of an encoding, or a table of its cosines or sines.
func Rotates(c *onnx.Tensor, e rope.Encoding) bool {
	_, _, ok := classifySenses(c, e)
	return ok
}

// classifySenses returns what a constant is to a rotation: its frequencies, or a table of
// them. Pairs that rotate backwards mostly do so by a minus sign elsewhere in the graph, so
// the constant may have a frequency with the other sign than the rotation was measured
// with. senses is by what, per pair, the measured frequencies are to be multiplied.
func classifySenses(c *onnx.Tensor, e rope.Encoding) (r rotaryConstant, senses []float64, ok bool) {
	same, all := make([]float64, len(e.Frequencies)), make([]float64, len(e.Frequencies))
	for i := range same {
		same[i], all[i] = 1, -1
	}
	for _, senses := range [][]float64{same, all, e.Senses()} {
		if r, ok := classifyTable(c, e.WithSenses(senses)); ok {
			return r, senses, true
		}
	}
	return rotaryConstant{}, nil, false
}

// classifyTable is classifySenses for an encoding whose frequencies have the signs that
// the constant would have.
func classifyTable(c *onnx.Tensor, e rope.Encoding) (rotaryConstant, bool) {
	pairs := len(e.Frequencies)
	if pairs == 0 || !ir.IsFloat(c.Type) {
		return rotaryConstant{}, false
	}
	n := int(c.Len())
	if n == pairs || n == 2*pairs {
		values, err := c.Float64s()
		if err != nil {
			return rotaryConstant{}, false
		}
		for _, of := range pairings(n, pairs) {
			if matches(values, func(i int) float64 { return e.Frequencies[of(i)] }, 1e-6, 0) {
				return rotaryConstant{kind: frequencyList, tensor: c, pairs: indices(n, of)}, true
			}
		}
	}
	if len(c.Dims) != 2 || c.Dims[0] < 2 || c.Dims[1] != int64(pairs) && c.Dims[1] != int64(2*pairs) {
		return rotaryConstant{}, false
	}
	values, err := c.Float64s()
	if err != nil {
		return rotaryConstant{}, false
	}
	width := int(c.Dims[1])
	for kind, wave := range map[constantKind]func(float64) float64{cosTable: math.Cos, sinTable: math.Sin} {
		for _, of := range pairings(width, pairs) {
			expect := func(i int) float64 {
				return e.EffectiveGain() * wave(float64(i/width)*e.Frequencies[of(i%width)])
			}
			// Exporters round angles, so only the first rows are exact enough to compare.
			if matches(values[:min(len(values), 16*width)], expect, 0, 2e-2*e.EffectiveGain()) {
				return rotaryConstant{kind: kind, tensor: c, pairs: indices(width, of)}, true
			}
		}
	}
	return rotaryConstant{}, false
}

// pairings returns the ways in which n numbers may belong to pairs: one number per pair, or
// two, where the second ones follow after all first ones or each after its first one.
func pairings(n, pairs int) []func(int) int {
	if n == pairs {
		return []func(int) int{func(i int) int { return i }}
	}
	return []func(int) int{func(i int) int { return i % pairs }, func(i int) int { return i / 2 }}
}

// indices returns the pair of each of n numbers.
func indices(n int, of func(int) int) []int {
	frequencyTensor := make([]int, n)
	for i := range frequencyTensor {
		frequencyTensor[i] = of(i)
	}
	return frequencyTensor
}

// matches reports whether all values are the wanted ones up to these tolerances.
func matches(values []float64, want func(int) float64, relative, absolute float64) bool {
	for i, v := range values {
		w := want(i)
		if !(math.Abs(v-w) <= relative*math.Abs(w)+absolute) {
			return false
		}
	}
	return true
}
