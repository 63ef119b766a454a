package contrib

import (
	"cmp"
	"crypto/sha256"
	"fmt"
	"math"

	"github.com/rope-rewrite/rope-rewrite/customop"
	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/ir"
)

// tables gives the model the tables of an op and returns their names: cosines and sines
// [rows, pairs], times the gain, in the element type of the op. Ops of the same rotation
// share them.
func (w *writer) tables(op customop.RotaryAttention, of Node) (cos, sin string) {
	hash := sha256.Sum256(fmt.Appendf(nil, "%v %v %d %d %v", op.Frequencies, op.Gain, op.ExactAngles, of.Rows, of.Element))
	name := func(part string) string { return fmt.Sprintf("rope_rewrite/%s_%x", part, hash[:8]) }
	cos, sin = name("cos"), name("sin")
	if w.made[cos] {
		return cos, sin
	}
	w.made[cos] = true
	gain := float64(cmp.Or(op.Gain, 1))
	cosines, sines := make([]float64, 0, int(of.Rows)*len(op.Frequencies)), make([]float64, 0, int(of.Rows)*len(op.Frequencies))
	for p := range of.Rows {
		for _, omega := range op.Frequencies {
			angle := float64(p) * float64(omega)
			if op.ExactAngles == 0 {
				angle = float64(float32(p) * omega)
			}
			cosines, sines = append(cosines, gain*math.Cos(angle)), append(sines, gain*math.Sin(angle))
		}
	}
	dims := []int64{of.Rows, int64(len(op.Frequencies))}
	w.model.Graph.AddInitializer(ir.FloatTensor(cos, of.Element, dims, cosines...))
	w.model.Graph.AddInitializer(ir.FloatTensor(sin, of.Element, dims, sines...))
	return cos, sin
}
