package bound

import (
	"math"
	"slices"

	"github.com/rope-rewrite/rope-rewrite/onnx"
	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/ir"
)

// fold computes the contents of n's output of count elements, if those of its inputs
// are known.
func (e *Estimate) fold(n *onnx.Node, count int) ([]float64, bool) {
	if ir.Standard(n, "Shape") {
		return floats(e.Dims[n.Inputs[0]]), true // known, since the shape of the output is known
	}
	var in [][]float64
	for _, v := range n.Inputs {
		x, ok := e.values[v]
		if !ok {
			return nil, false
		}
		in = append(in, x)
	}
	switch {
	case ir.Standard(n, "Cast", "Identity", "Reshape", "Unsqueeze", "Squeeze"):
		return in[0], len(in[0]) == count
	case ir.Standard(n, "Concat") && len(e.Dims[n.Inputs[0]]) == 1:
		return slices.Concat(in...), true
	case ir.Standard(n, "Gather") && len(e.Dims[n.Inputs[0]]) == 1:
		var out []float64
		for _, i := range in[1] {
			if i < 0 {
				i += float64(len(in[0]))
			}
			if i < 0 || i >= float64(len(in[0])) {
				return nil, false
			}
			out = append(out, in[0][int(i)])
		}
		return out, true
	case ir.Standard(n, "ConstantOfShape"):
		v := 0.0
		if t := n.Tensor("value"); t != nil {
			f, err := t.Float64s()
			if err != nil || len(f) != 1 {
				return nil, false
			}
			v = f[0]
		}
		return slices.Repeat([]float64{v}, count), true
	case ir.Standard(n, "Neg"):
		return each(count, in, func(x []float64) float64 { return -x[0] })
	case ir.Standard(n, "Where"):
		return each(count, in, func(x []float64) float64 {
			if x[0] != 0 {
				return x[1]
			}
			return x[2]
		})
	}
	if f := arithmetic[n.OpType]; f != nil && ir.Standard(n, n.OpType) && len(in) == 2 {
		return each(count, in, func(x []float64) float64 { return f(x[0], x[1]) })
	}
	return nil, false
}

func floats(list []int64) (out []float64) {
	for _, x := range list {
		out = append(out, float64(x))
	}
	return out
}

// each applies f element by element; an input has count elements or one.
func each(count int, in [][]float64, f func(x []float64) float64) ([]float64, bool) {
	out := make([]float64, count)
	x := make([]float64, len(in))
	for i := range out {
		for k, v := range in {
			switch len(v) {
			case 1:
				x[k] = v[0]
			case count:
				x[k] = v[i]
			default:
				return nil, false
			}
		}
		out[i] = f(x)
	}
	return out, !slices.ContainsFunc(out, math.IsNaN)
}

// arithmetic holds the ops of two numbers.
var arithmetic = map[string]func(a, b float64) float64{
	"Add": func(a, b float64) float64 { return a + b },
	"Sub": func(a, b float64) float64 { return a - b },
	"Mul": func(a, b float64) float64 { return a * b },
	"Div": quotient,
	"Min": math.Min,
	"Max": math.Max,
	"Equal": func(a, b float64) float64 {
		if a == b {
			return 1
		}
		return 0
	},
}

// quotient is a / b. Where a division of integers would round it is NaN, which
// stands for: not known.
func quotient(a, b float64) float64 {
	q := a / b
	if a == math.Trunc(a) && b == math.Trunc(b) && q != math.Trunc(q) {
		return math.NaN()
	}
	return q
}
