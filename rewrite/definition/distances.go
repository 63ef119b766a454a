package definition

import "github.com/rope-rewrite/rope-rewrite/onnx"

// byDistance adds what heads add by the distance between query and key.
func (w *body) byDistance(scores string) string {
	if !w.slopes && !w.buckets {
		return scores
	}
	distance := w.distance()
	if w.buckets {
		scores = w.op("scores_by_bucket", "Add", []string{scores, w.ofBuckets(distance)})
	}
	if w.slopes {
		steps := w.unsqueeze("distance_heads", w.float("distance_size", w.op("distance_size", "Abs", []string{distance})), 1)
		slopes := w.unsqueeze("slopes", w.attribute("distance_slopes"), 1, 2)
		scores = w.op("scores_by_slope", "Sub", []string{scores, w.op("distance_taken", "Mul", []string{steps, slopes})})
	}
	return scores
}

// distance is that from each query back to each key, int64 [batch or 1, length, tokens].
func (w *body) distance() string {
	own, keys := w.sizes.index, w.sizes.keys
	if w.distancesShown && w.sizes.real != "" {
		wide := w.op("real_number", "Cast", []string{w.sizes.real}, onnx.IntAttr("to", int64(onnx.Int64)))
		before := w.op("real_before", "CumSum", []string{wide, w.int(1)}, onnx.IntAttr("exclusive", 1))
		own, keys = w.ofNew("place", before), w.row("place", before)
	}
	return w.op("distance", "Sub", []string{w.column("place", own), keys})
}

// ofBuckets is the bias of each distance's bucket, float32 [batch or 1, heads, length, tokens].
// Only a list of all distances is compared with the buckets, not every pair of tokens.
func (w *body) ofBuckets(distance string) string {
	tokens := w.scalar("tokens", w.sizes.tokens)
	end := w.op("distances_end", "Add", []string{tokens, w.int(1)})
	all := w.op("distances", "Range", []string{w.op("distances_begin", "Neg", []string{tokens}), end, w.int(1)})
	reached := w.op("reached", "GreaterOrEqual", []string{w.unsqueeze("distances_column", all, 1), w.attribute("distance_starts")})
	number := w.op("reached_number", "Cast", []string{reached}, onnx.IntAttr("to", int64(onnx.Int64)))
	last := w.op("bucket_or_none", "Sub", []string{w.total("reached_count", number, 1, 0), w.int(1)})
	bucket := w.op("bucket", "Where", []string{w.op("below_first", "Less", []string{last, w.int(0)}), w.int(0), last})

	heads := w.op("bias_heads", "Reshape", []string{w.attribute("num_heads"), w.ints(1)})
	table := w.op("bucket_biases", "Reshape", []string{w.attribute("distance_biases"), w.joined("bucket_shape", w.ints(-1), heads)})
	ofDistances := w.op("biases_of_distances", "Gather", []string{w.op("biases_of_heads", "Transpose", []string{table}, onnx.IntsAttr("perm", 1, 0)), bucket}, onnx.IntAttr("axis", 1))
	at := w.op("distance_at", "Add", []string{distance, tokens})
	biases := w.op("biases_by_head", "Gather", []string{ofDistances, at}, onnx.IntAttr("axis", 1))
	return w.op("biases", "Transpose", []string{biases}, onnx.IntsAttr("perm", 1, 0, 2, 3))
}
