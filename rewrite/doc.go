// Package rewrite finds the rotary attention of an exported model, proves that
// the fused op RotaryAttention computes the same, and only then changes what
// it means:
//
//	m, err := onnx.Open("model.onnx")
//	yarn, err := rope.ParseSpec(rope.ScalingAxis, "yarn:factor=4")
//	report, err := rewrite.Rewrite(ctx, m, rewrite.Options{Edits: []rope.Spec{yarn}})
//	err = m.Save("model.rope.onnx", onnx.SaveOptions{})
//
// A model may be raised to a newer version of the standard operators first (Options.OperatorSet,
// opset.go). It goes in five steps, and nothing in them looks at what a model, node or
// tensor is called. Each step is a package under internal/ that takes the values
// of the one before and makes new ones; nothing is changed later:
//
//   - Find and delimit (site): from each Softmax back to the one MatMul of two
//     hidden states, query and key, and forward to the one MatMul with the values.
//     Then back from these through linear ops to the nearest values that
//     everything goes through and before which nothing depends on positions: the
//     un-rotated query, key and value. The result is a site; with sizes measured
//     it is a sized site.
//   - Measure (measure): pieces of the exporter's graph are run in ONNX Runtime
//     (eval) on probe inputs. The rotation is read from what it does to basis
//     vectors at positions 2^k (rotation), the mask and scale from what becomes of
//     scores (score), grouped heads from which head reaches which. Sizes come from
//     a skeleton of the model without weights, so that no weight is ever read. The
//     result is a rope.Attention with what belongs to it.
//   - Prove (prove): the original site, the same in float64, and the op as it will
//     stand in the model are run on random inputs. The op may be off by at most
//     twice what the original is off by itself. (Frequencies that a graph computes in
//     each call are judged by themselves: prove/byreach.go.) Sites of one structure share
//     measurement and proof. Who reads queries of padded tokens is tried on the
//     whole model (unread).
//   - Edit (package rope, plan.go): methods change the value of the site.
//   - Lower (lower, plainonnx): the op is written for the value, or the model's own
//     nodes are changed, and what nothing reads any more is taken out. The model then
//     gets the op's definition in plain ONNX operators (package definition), or that or
//     ONNX Runtime's own attention (package contrib) takes the op's place. Each is proven
//     too.
//
// Below them stand sizes and layouts (dim), nodes and the builder that writes them
// (ir), bounds of what a run may take (bound), how far a graph can be evaluated
// (search) and the view of a model's graph (graph). From bottom to top:
//
//	dim ir bound search graph eval site rotation score measure lower prove unread plainonnx head
//
// A package imports those before it alone; internal/importcheck holds that. This
// package is the facade: options and report, a request that is checked before
// anything runs (request.go), the analysis (find.go, analyse.go, outcome.go), the
// plan of what each site becomes (plan.go), the backend that writes it
// (opsbackend.go, plainbackend.go, contribbackend.go) and the features that go beside it
// (documents.go, fixedcache.go). What was done is kept in the model (record.go); a
// model that was rewritten before is read from there (earlier.go), edited again
// (again.go) or shown (inspect.go). These are many small files of one package because
// all of them are about one request: each is a step of it or a part of what it asks for.
//
// A site that cannot be measured or proven stays as it is, with the reason in the
// report, and Rewrite returns ErrPartial unless Options.AllowKept is set. Queries
// of padded tokens may see no key: exporters give them a uniform average, zeros or
// NaN, the op gives zeros. Where the two differ it is tried (unread) that nothing
// the model gives for other tokens depends on them; else the site is kept.
//
// Evaluating pieces of somebody's model can end the process, because ONNX
// Runtime does so on some graphs. With Options.Worker it happens in a child
// process, which is started anew; the program then calls ServeIfWorker first
// in main.
package rewrite
