// Package rewrite finds the rotary attention of an exported model, proves that
// the fused op RotaryAttention computes the same, and only then changes what
// it means:
//
//	m, err := onnx.Open("model.onnx")
//	yarn, err := rope.ParseSpec(rope.ScalingAxis, "yarn:factor=4")
//	report, err := rewrite.Rewrite(ctx, m, rewrite.Options{Edits: []rope.Spec{yarn}})
//	err = m.Save("model.rope.onnx", onnx.SaveOptions{})
//
// It goes in five steps, and nothing in them looks at what a model, node or
// tensor is called:
//
//   - Find (find.go): from each Softmax back to the one product of two hidden
//     states, query and key, and forward to the one product with the values.
//     What a value depends on (weights, sizes, positions, hidden states) is its
//     class (classify.go).
//   - Delimit (linear.go, site.go): back from the products through linear ops
//     to the nearest values that everything goes through and before which
//     nothing depends on positions: the un-rotated query, key and value.
//   - Measure (lift.go): pieces of the exporter's graph (piece.go) are run in
//     ONNX Runtime on probe inputs. The rotation is read from what it does to
//     basis vectors at positions 2^k (rotation.go), the mask and scale from what
//     becomes of scores (scores.go), grouped heads from which head reaches which
//     (repeat.go). Sizes come from a skeleton of the model without weights
//     (skeleton.go, shapes.go), so that no weight is ever read.
//   - Prove (prove.go): the original site, the same retyped to float64
//     (double.go), and the op as it will stand in the model are run on random
//     inputs. The op may be off by at most twice what the original is off by
//     itself. Sites of one structure (hash.go) share measurement and proof.
//   - Edit and lower (rewrite.go, lower.go, apply.go): methods change the value
//     of the site (package rope), the op is written for it, and what nothing
//     reads any more is taken out.
//
// A site that cannot be lifted or proven stays as it is, with the reason in the
// report, and Rewrite returns ErrPartial unless Options.AllowKept is set. Queries
// of padded tokens may see no key: exporters give them a uniform average, zeros or
// NaN, the op gives zeros. Where the two differ it is tried (unread.go) that nothing
// the model gives for other tokens depends on them; else the site is kept.
//
// Evaluating pieces of somebody's model can end the process, because ONNX
// Runtime does so on some graphs. With Options.Worker it happens in a child
// process, which is started anew; the program then calls ServeIfWorker first
// in main.
package rewrite
