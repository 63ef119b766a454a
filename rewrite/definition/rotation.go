package definition

import (
	"fmt"
	"math"

	"github.com/rope-rewrite/rope-rewrite/customop"
	"github.com/rope-rewrite/rope-rewrite/onnx"
)

// angles are cos and sin [batch or 1, 1, tokens, rotary_dim/2] in float32, times the gain.
type angles struct{ cos, sin string }

// queryAngles are those of queries in a band: a_b of the specification.
func (w *body) queryAngles(band int) angles {
	a := w.shared("query", w.sizes.positions, band)
	if w.queryScales || w.queryOffsets || w.queryLimits {
		a = w.wide("query_at", a)
	}
	if w.queryScales {
		a = w.op("query_scaled", "Mul", []string{a, w.ofBand("band_query_scales", band)})
	}
	if w.queryOffsets {
		a = w.op("query_moved", "Add", []string{a, w.ofBand("band_query_offsets", band)})
	}
	if w.queryLimits {
		limit := w.ofBand("band_query_limits", band)
		none := w.op("no_limit", "LessOrEqual", []string{limit, w.number("zero_wide", onnx.Double, 0)})
		limit = w.op("query_limit", "Where", []string{none, w.number("largest_wide", onnx.Double, math.MaxFloat64), limit})
		a = w.op("query_limited", "Min", []string{a, limit})
	}
	return w.angles(a)
}

// keyAngles are those of keys at positions [batch or 1, tokens] in a band: c_b.
func (w *body) keyAngles(positions string, band int) angles {
	c := w.shared("key", positions, band)
	if w.keyScales {
		c = w.op("key_scaled", "Mul", []string{w.wide("key_at", c), w.ofBand("band_key_scales", band)})
	}
	return w.angles(c)
}

// shared is u_b of the specification: positions, taken modulo the chunk and shared by
// groups.
func (w *body) shared(part, positions string, band int) string {
	if w.chunk {
		positions = w.op(part+"_in_chunk", "Mod", []string{positions, w.attribute("band_chunk")})
	}
	if w.groups {
		positions = w.floored(part+"_group", positions, w.element("group", w.attribute("band_groups"), band))
	}
	return positions
}

// ofBand is a band's number of a list of floats, in float64.
func (w *body) ofBand(list string, band int) string {
	part := fmt.Sprintf("%s_%d", list, band)
	return w.wide(part, w.element(part, w.attribute(list), band))
}

// angles turns places (see ofPairs), integers or float64, into cos and sin. The
// angle is rounded to float32 first, as exporters do, unless exact_angles is set.
func (w *body) angles(places string) angles {
	var a angles
	if w.exactAngles {
		wide := w.op("angle", "Mul", []string{w.ofPairs(w.wide("at", places)), w.wide("frequencies", w.freqs)})
		// Runtimes have no Cos of float64: it is a Sin a quarter turn on.
		quarter := w.op("quarter_on", "Add", []string{wide, w.number("quarter_turn", onnx.Double, math.Pi/2)})
		a = angles{w.float("cos", w.op("cos", "Sin", []string{quarter})), w.float("sin", w.op("sin", "Sin", []string{wide}))}
	} else {
		angle := w.op("angle", "Mul", []string{w.ofPairs(w.float("at", places)), w.freqs})
		a = angles{w.op("cos", "Cos", []string{angle}), w.op("sin", "Sin", []string{angle})}
	}
	if w.any(func(op customop.RotaryAttention) bool { return op.Gain != 0 && op.Gain != 1 }) {
		gain := w.attribute("gain")
		a = angles{w.op("cos_gain", "Mul", []string{a.cos, gain}), w.op("sin_gain", "Mul", []string{a.sin, gain})}
	}
	return angles{w.unsqueeze("cos_heads", a.cos, 1), w.unsqueeze("sin_heads", a.sin, 1)}
}

// ofPairs gives each channel pair its place: [batch or 1, tokens, 1 or pairs]. Where tokens
// have several positions, places are [axes, batch or 1, tokens].
func (w *body) ofPairs(places string) string {
	if !w.axes {
		return w.unsqueeze("places", places, 2)
	}
	own := w.op("places_of_pairs", "Gather", []string{places, w.attribute("position_axes")})
	return w.op("places", "Transpose", []string{own}, onnx.IntsAttr("perm", 1, 2, 0))
}

// turned is R(p)·x for x [batch, heads, tokens, head_size] in float32.
func (w *body) turned(part, x string, by angles) string {
	half := w.op("pairs", "Shape", []string{w.freqs})
	from := w.ints(0)
	moved := w.any(func(op customop.RotaryAttention) bool { return op.RotaryOffset != 0 })
	if moved {
		from = w.op("rotary_from", "Reshape", []string{w.attribute("rotary_offset"), w.ints(1)})
	}
	middle := w.op("rotary_middle", "Add", []string{from, half})
	to := w.op("rotary_to", "Add", []string{middle, half})
	var parts []string
	if moved {
		parts = append(parts, w.slice(part+"_front", x, w.ints(0), from, 3))
	}
	if w.layout == "half" {
		first, second := w.turnedPair(part, w.slice(part+"_first", x, from, middle, 3), w.slice(part+"_second", x, middle, to, 3), by)
		parts = append(parts, first, second)
	} else {
		inner := w.slice(part+"_rotary", x, from, to, 3)
		every := func(name string, start int64) string {
			return w.op(part+name, "Slice", []string{inner, w.ints(start), w.end(), w.ints(3), w.ints(2)})
		}
		first, second := w.turnedPair(part, every("_even", 0), every("_odd", 1), by)
		pairs := w.op(part+"_both", "Concat", []string{w.unsqueeze(part+"_evens", first, 4), w.unsqueeze(part+"_odds", second, 4)}, onnx.IntAttr("axis", 4))
		parts = append(parts, w.op(part+"_interleaved", "Reshape", []string{pairs, w.op(part+"_rotary_shape", "Shape", []string{inner})}))
	}
	parts = append(parts, w.slice(part+"_back", x, to, w.end(), 3))
	return w.op(part+"_turned", "Concat", parts, onnx.IntAttr("axis", 3))
}

// turnedPair turns the two channels of each pair.
func (w *body) turnedPair(part, x, y string, by angles) (string, string) {
	product := func(name, v, factor string) string { return w.op(part+name, "Mul", []string{v, factor}) }
	return w.op(part+"_left", "Sub", []string{product("_x_cos", x, by.cos), product("_y_sin", y, by.sin)}),
		w.op(part+"_right", "Add", []string{product("_y_cos", y, by.cos), product("_x_sin", x, by.sin)})
}
