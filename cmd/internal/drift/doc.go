// Package drift measures what rounding does to rotary attention when all positions are
// shifted by the same number. In exact arithmetic nothing changes, because the product of a
// rotated query and key depends on their distance alone. In 16 bits it does change, as
// Wang et al. found (When Precision Meets Position: BFloat16 Breaks Down RoPE in Long-Context
// Training, arXiv:2411.13476); Compare has the formulas of their two measures.
//
//	a := drift.Turn(problem, drift.BFloat16, 0)
//	b := drift.Turn(problem, drift.BFloat16, 16)
//	d, err := drift.Compare(problem, a, b) // d.Weights, d.FirstKey
//
// Run does so for every attention layer of a model, on queries and keys that the model has on
// given tokens (package capture) and on freshly drawn ones, the control. It also runs the op
// itself in each of its types, precisions and kinds of cache, and says what follows
// (Result.Advice).
//
// The paper does not measure one run: it shifts the positions of the whole model, so that a layer's
// queries and keys are made of what the layers below made of the shift. RunWhole does that.
//
// turn.go rotates and rounds as kernels do, compare.go has the measures, op.go runs the op,
// drift.go goes through the layers of one run; whole.go runs the whole model, rounded.go rounds in its
// graph, fresh.go draws weights.
package drift
