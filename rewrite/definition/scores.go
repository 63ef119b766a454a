package definition

import (
	"math"

	"github.com/rope-rewrite/rope-rewrite/customop"
	"github.com/rope-rewrite/rope-rewrite/onnx"
)

// attention writes the whole body.
func (w *body) attention() {
	query, key, value := w.names.query, w.names.key, w.names.value
	if w.flat {
		query = w.split("query", query, w.attribute("num_heads"))
		key, value = w.split("key", key, w.attribute("kv_num_heads")), w.split("value", value, w.attribute("kv_num_heads"))
	}
	w.count(query, key)
	if w.turns {
		w.freqs = w.frequencies()
	}
	visible := w.visible() // which may restart positions
	query32 := w.element32("query", query)
	keys := w.keys(key)
	values := w.appendTo(w.names.pastValue, w.names.valueScale, "present_value", w.element32("value", value), value, false)

	scores := w.scores(query, query32, keys)
	scores, visible = w.modified(scores, visible)
	hidden := w.number("hidden", onnx.Float, math.Inf(-1))
	if visible != "" {
		scores = w.op("scores_seen", "Where", []string{visible, scores, hidden})
	}
	some := w.seesSome(scores, visible)
	w.logSumExp(scores, some)

	// [batch, heads, length, tokens] and, for a product per kv head, [batch, kv heads, group · length, tokens].
	weights := w.op("weights", "Softmax", []string{w.withSink(scores)}, onnx.IntAttr("axis", 3))
	if w.names.sinks != "" {
		weights = w.slice("weights_without_sink", weights, w.ints(0), w.sizes.tokens, 3)
	}
	out := w.op("mixed", "MatMul", []string{w.perGroup("weights", weights), values.read})
	out = w.op("mixed_heads", "Reshape", []string{out, w.joined("output_shape", w.headed(query), w.ints(-1))})
	if some != "" {
		out = w.op("output_seen", "Where", []string{some, out, w.number("zero", onnx.Float, 0)})
	}
	if w.flat {
		rows := w.op("output_rows", "Transpose", []string{out}, onnx.IntsAttr("perm", 0, 2, 1, 3))
		out = w.op("output_flat", "Reshape", []string{rows, w.ints(0, 0, -1)})
	}
	kind, inputs := w.like(out)
	w.result("output", kind, inputs)
}

// split turns [batch, length, heads·channels] into [batch, heads, length, channels].
func (w *body) split(part, v, heads string) string {
	shape := w.joined(part+"_split_shape", w.ints(0, 0), w.op(part+"_heads", "Reshape", []string{heads, w.ints(1)}), w.ints(-1))
	return w.op(part+"_rows", "Transpose", []string{w.op(part+"_split", "Reshape", []string{v, shape})}, onnx.IntsAttr("perm", 0, 2, 1, 3))
}

// headed is the list batch, heads, length of a query.
func (w *body) headed(query string) string {
	return w.slice("query_front", w.op("query_dims", "Shape", []string{query}), w.ints(0), w.ints(3), 0)
}

// keys appends the new keys, which a rotated cache keeps turned.
func (w *body) keys(key string) cached {
	exact := w.precision == "exact"
	fresh, kept := w.element32("key", key), key
	if (w.turns || w.keyFactors) && w.cache == "rotated" {
		if w.turns {
			fresh = w.turned("key", fresh, w.keyAngles(w.sizes.positions, 0))
		}
		fresh = w.weighted("key", fresh, w.keyFactors)
		kept = w.narrow("key_kept", fresh)
		if !exact {
			fresh = w.element32("key_kept", kept)
		}
	}
	return w.appendTo(w.names.pastKey, w.names.keyScale, "present_key", fresh, kept, exact && w.cache == "rotated")
}

// scores are scale · temperature · ⟨R(a_b) q, R(c_b) k⟩ in each key's band
// [batch, heads, length, tokens].
func (w *body) scores(query, query32 string, keys cached) string {
	raw := w.turns && w.cache == "raw"
	positions := ""
	if raw {
		positions = w.keyPositions()
	}
	read := map[string]string{} // what bands whose keys stand at the same places share
	var out string
	for band := range w.bands {
		turned, key := query32, keys.read
		if w.turns {
			turned = w.turned("query", query32, w.queryAngles(band))
		}
		turned = w.weighted("query", turned, w.queryFactors)
		if w.cache == "raw" { // which holds keys without their factors
			turned = w.weighted("key", turned, w.keyFactors)
		}
		if raw {
			of := "all"
			if w.keyScales || w.groups {
				of = string(rune('0' + band))
			}
			if read[of] == "" {
				read[of] = w.rounded("key", w.turned("keys", keys.read, w.keyAngles(positions, band)))
			}
			key = read[of]
		}
		s := w.product(query, w.rounded("query", turned), key)
		if band == 0 {
			out = s
			continue
		}
		out = w.op("scores_of_bands", "Where", []string{w.inBand(band), s, out})
	}
	return out
}

// weighted multiplies the channels of query or key by their factors, where there are any.
func (w *body) weighted(part, v string, has bool) string {
	if !has {
		return v
	}
	return w.op(part+"_weighted", "Mul", []string{v, w.attribute(part + "_factors")})
}

// rounded is a value as the product reads it: rounded to the element type where precision
// is fast.
func (w *body) rounded(part, v string) string {
	if w.precision == "exact" || !(w.turns || w.queryFactors || w.keyFactors) {
		return v
	}
	return w.element32(part+"_rounded", w.narrow(part+"_rounded", v))
}

// product multiplies queries with keys, per kv head.
func (w *body) product(query, turned, key string) string {
	scale := ""
	if w.ownScale {
		scale = w.attribute("scale")
	} else {
		width := w.float("head_size", w.scalar("head_size", w.size("head_size", query, 3)))
		scale = w.op("scale", "Reciprocal", []string{w.op("head_size_root", "Sqrt", []string{width})})
	}
	scaled := w.op("query_scaled", "Mul", []string{turned, scale})
	if w.form.temperature {
		scaled = w.op("query_warm", "Mul", []string{scaled, w.temperature()})
	}
	columns := w.op("key_columns", "Transpose", []string{key}, onnx.IntsAttr("perm", 0, 1, 3, 2))
	s := w.op("products", "MatMul", []string{w.perGroup("query", scaled), columns})
	return w.op("scores", "Reshape", []string{s, w.joined("scores_shape", w.headed(query), w.sizes.tokens)})
}

// perGroup turns [batch, heads, length, n] into [batch, kv heads, heads/kv heads · length, n].
func (w *body) perGroup(part, v string) string {
	shape := w.joined(part+"_group_shape", w.ints(0), w.sizes.kvHeads, w.ints(-1), w.size(part+"_width", v, 3))
	return w.op(part+"_group", "Reshape", []string{v, shape})
}

// modified applies softcap and biases to scores. It returns what is visible besides, since
// a bias of −∞ before the softcap hides a key.
func (w *body) modified(scores, visible string) (string, string) {
	if w.names.early != "" {
		bias := w.ofTokens("early", w.names.early)
		scores = w.op("scores_biased", "Add", []string{scores, bias})
		if w.softcap {
			shown := w.op("early_shown", "Greater", []string{bias, w.number("hidden", onnx.Float, math.Inf(-1))})
			visible = w.both("visible_early", append([]string{shown}, optional(visible)...)...)
		}
	}
	if w.softcap {
		// Runtimes approximate Tanh of float32 to some units in the last place, and of
		// float64 well.
		most := w.attribute("softcap")
		tanh := w.float("tanh", w.op("tanh", "Tanh", []string{w.wide("scores_in_caps", w.op("scores_in_caps", "Div", []string{scores, most}))}))
		scores = w.op("scores_capped", "Mul", []string{tanh, most})
	}
	if w.names.bias != "" {
		scores = w.op("scores_biased", "Add", []string{scores, w.ofTokens("bias", w.names.bias)})
	}
	return w.byDistance(scores), visible
}

// ofTokens is a bias in float32, of the width of scores.
func (w *body) ofTokens(part, bias string) string {
	if w.names.cacheLength != "" {
		bias = w.op(part+"_tokens", "Slice", []string{bias, w.ints(0), w.sizes.tokens, w.ints(-1)})
	}
	return w.element32(part, bias)
}

// seesSome says which queries see a key, bool, broadcastable to [batch, heads, length, 1];
// "" where all do: a query sees itself, unless it is padding or a bias hides it.
func (w *body) seesSome(scores, visible string) string {
	switch {
	case w.names.bias != "" || w.names.early != "":
		return w.op("sees_some", "Greater", []string{w.largest("largest_score", scores, 3), w.number("hidden", onnx.Float, math.Inf(-1))})
	case w.sizes.real == "":
		return ""
	}
	number := w.op("visible_number", "Cast", []string{visible}, onnx.IntAttr("to", int64(onnx.Int32)))
	return w.op("sees_some", "Cast", []string{w.largest("most_visible", number, 3)}, onnx.IntAttr("to", int64(onnx.Bool)))
}

// withSink appends a head's sink to its scores.
func (w *body) withSink(scores string) string {
	if w.names.sinks == "" {
		return scores
	}
	sink := w.unsqueeze("sink_heads", w.element32("sink", w.names.sinks), 0, 2, 3)
	front := w.slice("scores_front", w.op("scores_dims", "Shape", []string{scores}), w.ints(0), w.ints(3), 0)
	sink = w.op("sink_column", "Expand", []string{sink, w.joined("sink_shape", front, w.ints(1))})
	return w.op("scores_and_sink", "Concat", []string{scores, sink}, onnx.IntAttr("axis", 3))
}

// logSumExp gives the logarithm of the softmax's denominator, if the node asks for it.
func (w *body) logSumExp(scores, some string) {
	const at = 3 // among the op's outputs
	if w.outputs <= at {
		return
	}
	hidden := w.number("hidden", onnx.Float, math.Inf(-1))
	highest := w.largest("highest", scores, 3)
	if some != "" {
		highest = w.op("highest_seen", "Where", []string{some, highest, w.number("zero", onnx.Float, 0)})
	}
	powers := w.op("powers", "Exp", []string{w.op("below_highest", "Sub", []string{scores, highest})})
	sum := w.op("log_sum", "Add", []string{w.op("log", "Log", []string{w.total("power_sum", powers, 3, 1)}), highest})
	if some != "" {
		sum = w.op("log_sum_seen", "Where", []string{some, sum, hidden})
	}
	w.result(customop.RotaryAttentionSpec.Outputs[at].Name, "Squeeze", []string{sum, w.ints(3)})
}

// optional is a list of a value, empty for "".
func optional(v string) []string {
	if v == "" {
		return nil
	}
	return []string{v}
}
