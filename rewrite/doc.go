// Package rewrite finds the rotary attention layers of an exported model, and those that tell
// positions apart by a bias by distance (ALiBi's slopes, T5's buckets), verifies that
// the fused op RotaryAttention computes the same, and only then changes what
// they compute:
//
//	m, err := onnx.Open("model.onnx")
//	yarn, err := rope.ParseSpec(rope.ScalingAxis, "yarn:factor=4")
//	report, err := rewrite.Rewrite(ctx, m, rewrite.Options{Edits: []rope.Spec{yarn}})
//	err = m.Save("model.rope.onnx", onnx.SaveOptions{})
//
// Inspect reports what is in a model and changes nothing. ReadOps reads the ops of a rewritten model.
//
// A rewrite has stages. Each makes one value from the earlier ones, and the value never changes after that.
// No stage looks at the names of models, nodes or tensors:
//
//		Options  →  request  →  source  →  Analysis  →  Plan  →  result  →  Report
//
//	  - The request (request.go) is the options, checked against the model as far as possible before
//	    anything is run.
//	  - The source (prepare) is a copy of the model, ready for the analysis: traces of an earlier rewrite are
//	    removed (earlier, fallback), the model is converted to a newer opset if asked for, and its own functions
//	    are inlined (calls). All later stages change the copy. The caller's model changes only at the very end,
//	    and only without an error.
//	  - The analysis (analysis) says of each attention layer, a site, what it computes or why it is unchanged. It goes
//	    from each Softmax back to the one MatMul of two hidden states, query and key, and forward to the one MatMul
//	    with the values. Then it goes back through linear ops to the nearest values that everything passes through
//	    and before which nothing depends on positions: the un-rotated query, key and value (site). Pieces of the
//	    exporter's graph are run in ONNX Runtime (eval) on probe inputs: the rotation is read from what it does to
//	    basis vectors at positions 2^k (rotation), which the graph may compute itself (positions), the mask, the scale and biases by distance from what happens to scores (score), grouped
//	    heads from which head reaches which (measure). Sizes come from a skeleton of the model without weights, so
//	    that no weight is ever read. Then the original site, the same in float64, and the op as it will be in the
//	    model are run on random inputs (prove): the op's error may be at most twice the original's. Sites of one
//	    structure share measurement and proof. The whole model is run to find readers of padded queries
//	    (paddingreaders). Inspect ends here.
//	  - The plan (plan) says what each site becomes: methods change its value (package rope), features add inputs and
//	    caches (feature), and the target decides which nodes it is written as (backend; lower, plainonnx, contrib).
//	    Options.PlanOnly ends here.
//	  - The result is the changed copy: new nodes are inserted, unread ones are removed, the op's fallback in
//	    standard operators is verified and added (fallback), and the record of it all is written into the
//	    metadata (record.go).
//	  - The report (report.go) is made of these values at the end.
//
// The packages under internal/ from bottom to top; each imports only earlier ones, which internal/importcheck
// checks:
//
//	dim ir fused bound bisect graph eval formula positions site rotation score measure lower contrib prove
//	paddingreaders plainonnx lastlogits sharedengine calls earlier analysis plan feature fallback backend
//
// A site that cannot be measured or verified is unchanged, with the reason in the
// report, and Rewrite returns ErrPartial unless Options.AllowUnchanged is set. Where its
// rotation alone can be verified and nothing but scalings is asked for, the op Rotary
// takes the place of the rotation (Status Rotation); ErrPartial is the same. So it is where
// something outside a site reads a value inside it that the methods change (Kind ReadOutside). Queries
// of padded tokens may see no key: exporters give them a uniform average, zeros or
// NaN; the op gives zeros. Where the two differ, the model's output for other tokens
// must not depend on them; otherwise the site is unchanged.
//
// A model that shows a fault of this package gets a FaultError, and is as it was.
//
// ONNX Runtime ends the process on some graphs. With Options.Evaluation.Worker
// pieces of the model are run in a child process, which is restarted when it ends;
// the program then calls ServeIfWorker first in main.
package rewrite
