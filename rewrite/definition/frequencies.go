package definition

import "github.com/rope-rewrite/rope-rewrite/onnx"

// frequencies are those of this call: the attribute, or others where the call reaches
// beyond the trained length.
func (w *body) frequencies() string {
	own := w.attribute("frequencies")
	if w.byLength == "" {
		return own
	}
	trained := w.attribute("trained_length")
	reach := w.reach()
	long := w.op("long", "Greater", []string{reach, trained})
	if w.byLength == "long_frequencies" {
		return w.op("frequencies", "Where", []string{long, w.attribute("long_frequencies"), own})
	}
	stretch := w.op("stretch", "Div", []string{w.wide("reach", reach), w.wide("trained", trained)})
	other := ""
	if w.byLength == "dynamic_linear" {
		other = w.op("divided", "Div", []string{w.wide("own", own), stretch})
	} else {
		other = w.op("rebased", "Mul", []string{w.wide("own", own), w.ntk(stretch, own)})
	}
	return w.op("frequencies", "Where", []string{long, w.float("other", other), own})
}

// ntk is (α·stretch − (α − 1))^(−2i/(rotary_dim − 2)) for each frequency i.
func (w *body) ntk(stretch, own string) string {
	alpha := w.wide("ntk", w.attribute("dynamic_ntk"))
	one := w.number("one_wide", onnx.Double, 1)
	less := w.op("ntk_less", "Sub", []string{alpha, one})
	base := w.op("ntk_base", "Sub", []string{w.op("ntk_stretch", "Mul", []string{alpha, stretch}), less})
	count := w.scalar("pairs", w.op("pairs", "Shape", []string{own}))
	place := w.wide("place", w.op("place", "Range", []string{w.int(0), count, w.int(1)}))
	// 2i/(rotary_dim − 2) is i/(pairs − 1).
	power := w.op("ntk_power", "Neg", []string{w.op("ntk_share", "Div", []string{place, w.op("pairs_less", "Sub", []string{w.wide("pairs", count), one})})})
	return w.op("ntk_factor", "Pow", []string{base, power})
}

// reach is how many positions the call reaches, a list of one: total_length, else the
// largest position of a real token + 1.
func (w *body) reach() string {
	if w.names.total != "" {
		wide := w.op("reach_rows", "Cast", []string{w.names.total}, onnx.IntAttr("to", int64(onnx.Int64)))
		return w.op("reach", "Reshape", []string{wide, w.ints(1)})
	}
	ends := w.op("ends", "Add", []string{w.sizes.text, w.int(1)})
	if w.sizes.real != "" {
		ends = w.op("real_ends", "Where", []string{w.sizes.realNew, ends, w.int(0)})
	}
	flat := w.op("ends_list", "Reshape", []string{ends, w.ints(-1)})
	return w.largest("reach", flat, 0)
}

// temperature is t(p) of the new tokens [batch or 1, 1, length, 1] in float32.
func (w *body) temperature() string {
	at := func(i int, part string) string {
		return w.wide(part, w.element(part, w.attribute("temperature"), i))
	}
	zero, one := w.int(0), w.number("one_wide", onnx.Double, 1)
	count := w.op("counted", "Add", []string{w.op("counted_from", "Max", []string{w.sizes.positions, zero}), w.int(1)})
	steps := w.op("steps", "Floor", []string{w.op("steps_exact", "Div", []string{w.wide("counted", count), at(3, "temperature_group")})})
	log := w.op("growth", "Log", []string{w.op("grown_steps", "Add", []string{at(2, "temperature_start"), steps})})
	t := w.op("warmth", "Add", []string{at(0, "temperature_offset"), w.op("slope", "Mul", []string{at(1, "temperature_slope"), log})})
	return w.unsqueeze("temperatures", w.float("temperature", w.op("temperature", "Max", []string{one, t})), 1, 3)
}
