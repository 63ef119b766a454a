// Package rewrite finds the rotary attention of an exported model, proves that
// the fused op RotaryAttention computes the same, and only then changes what
// it computes:
//
//	m, err := onnx.Open("model.onnx")
//	yarn, err := rope.ParseSpec(rope.ScalingAxis, "yarn:factor=4")
//	report, err := rewrite.Rewrite(ctx, m, rewrite.Options{Edits: []rope.Spec{yarn}})
//	err = m.Save("model.rope.onnx", onnx.SaveOptions{})
//
// Inspect says what is in a model and changes nothing; ReadOps reads the ops of a model that was rewritten.
//
// A rewrite goes in stages. Each makes one value of those before it, which never changes after, and nothing
// in them looks at what a model, node or tensor is called:
//
//		Options  →  request  →  source  →  Analysis  →  Plan  →  result  →  Report
//
//	  - The request (request.go) is the options, checked against the model as far as that is possible before
//	    anything is run.
//	  - The source (prepare) is a copy of the model, ready to be looked at: what an earlier rewrite left is taken
//	    out (earlier, fallback), the version of the standard operators is raised, and the model's own functions are
//	    inlined (calls). All that follows is done to the copy. The caller's model is changed at the very end, and
//	    only without an error.
//	  - The analysis (analysis) says of each attention, a site, what it computes, or why it stays unchanged. It goes
//	    from each Softmax back to the one MatMul of two hidden states, query and key, and forward to the one MatMul
//	    with the values; then back through linear ops to the nearest values that everything goes through and
//	    before which nothing depends on positions: the un-rotated query, key and value (site). Pieces of the
//	    exporter's graph are run in ONNX Runtime (eval) on probe inputs: the rotation is read from what it does to
//	    basis vectors at positions 2^k (rotation), the mask and scale from what becomes of scores (score), grouped
//	    heads from which head reaches which (measure). Sizes come from a skeleton of the model without weights, so
//	    that no weight is ever read. Then the original site, the same in float64, and the op as it will stand in the
//	    model are run on random inputs (prove): the op may be off by at most twice what the original is off by
//	    itself. Sites of one structure share measurement and proof. Who reads queries of padded tokens is tried
//	    on the whole model (paddingreaders). Inspect ends here.
//	  - The plan (plan) says what each site becomes: methods change its value (package rope), features add inputs and
//	    caches (feature), the target decides how it is written and by which nodes (backend; lower, plainonnx, contrib).
//	  - The result is the changed copy: nodes are put in, what nothing reads any more is taken out, the op's
//	    fallback in standard operators is proven and added (fallback), and the record of all of it is written
//	    into the metadata (record.go).
//	  - The report (report.go) is made of these values at the end.
//
// The packages under internal/ from bottom to top; each imports those before it alone, which internal/importcheck
// holds:
//
//	dim ir fused bound bisect graph eval site rotation score measure lower contrib prove
//	paddingreaders plainonnx lastlogits sharedengine calls earlier analysis plan feature fallback backend
//
// A site that cannot be measured or proven stays as it is, with the reason in the
// report, and Rewrite returns ErrPartial unless Options.AllowKept is set. Queries
// of padded tokens may see no key: exporters give them a uniform average, zeros or
// NaN, the op gives zeros. Where the two differ it is tried that nothing
// the model gives for other tokens depends on them; else the site stays unchanged.
//
// Evaluating pieces of somebody's model can end the process, because ONNX
// Runtime does so on some graphs. With Options.Worker it happens in a child
// process, which is started anew; the program then calls ServeIfWorker first
// in main.
package rewrite
