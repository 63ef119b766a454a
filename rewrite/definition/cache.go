package definition

import (
	"fmt"

	"github.com/rope-rewrite/rope-rewrite/onnx"
)

// cached is a cache after the call, and what the product reads of it.
type cached struct {
	present string // as the model keeps it
	read    string // the keys' tokens in float32 [batch, kv heads, tokens, channels]
}

// appendTo writes new tokens behind those of a cache, "" without one. fresh are the new
// tokens in float32, kept the same in the node's element type. Where exact is set, or the
// cache has another type, the product reads the new ones as they are in float32. scale is
// the input with the scales of a cache of int8.
//
// A caller may bind past and present to one buffer. So past is read by one node alone, the
// one that writes present; everything else reads present.
func (w *body) appendTo(past, scale, present, fresh, kept string, exact bool) cached {
	freshScale := ""
	if w.cacheType != "" {
		exact = true
		kept, freshScale = w.stored(present, fresh)
	}
	switch {
	case past == "":
		return cached{w.result(present, "Identity", []string{kept}), fresh}
	case w.names.cacheLength == "":
		c := cached{present: w.result(present, "Concat", []string{past, kept}, onnx.IntAttr("axis", 2))}
		if exact {
			c.read = w.op(present+"_read", "Concat", []string{w.readAs32(past, past, scale), fresh}, onnx.IntAttr("axis", 2))
			if scale != "" {
				w.result(present+"_scale", "Concat", []string{scale, freshScale}, onnx.IntAttr("axis", 2))
			}
		} else {
			c.read = w.element32(present, c.present)
		}
		return c
	case w.ring:
		return w.throughRing(past, scale, present, fresh, kept, freshScale, exact)
	}
	buffer := past
	if w.names.total != "" {
		buffer = w.grown(past)
	}
	at := w.cells(present)
	c := cached{present: w.result(present, "ScatterND", []string{buffer, at, kept})}
	tokens := func(part, v string) string { return w.slice(part+"_tokens", v, w.ints(0), w.sizes.tokens, 2) }
	scales := ""
	if scale != "" {
		room := scale
		if w.names.total != "" {
			room = w.grown(scale)
		}
		scales = tokens(present+"_scale", w.result(present+"_scale", "ScatterND", []string{room, at, freshScale}))
	}
	c.read = w.readAs32(present, tokens(present, c.present), scales)
	if exact && (w.opset >= castLike || w.cacheType != "") {
		c.read = w.op(present+"_read", "ScatterND", []string{c.read, at, fresh})
	}
	// Rows behind a row's last token may hold anything, also numbers that are none.
	live := w.unsqueeze("live_rows", w.live(), 1, 3)
	c.read = w.op(present+"_live", "Where", []string{live, c.read, w.number("zero", onnx.Float, 0)})
	return c
}

// CacheTypes are the element types of caches in another type than the node's, by the words of the op's
// attribute cache_type.
var CacheTypes = map[string]onnx.DataType{"float16": onnx.Float16, "bfloat16": onnx.BFloat16, "int8": onnx.Int8}

// stored is new tokens in the type of the caches, and for int8 the scale of each row.
func (w *body) stored(part, fresh string) (kept, scale string) {
	as := onnx.IntAttr("to", int64(CacheTypes[w.cacheType]))
	if w.cacheType != "int8" {
		return w.op(part+"_stored", "Cast", []string{fresh}, as), ""
	}
	most := w.largest(part+"_most", w.op(part+"_sizes", "Abs", []string{fresh}), 3)
	// 0, or NaN for a row with a number that is not finite.
	off := w.total(part+"_off", w.op(part+"_differences", "Sub", []string{fresh, fresh}), 3, 1)
	steps := w.op(part+"_step", "Div", []string{most, w.number("largest_integer", onnx.Float, 127)})
	scale = w.op(part+"_new_scale", "Add", []string{steps, off})
	rounded := w.op(part+"_rounded", "Round", []string{w.op(part+"_steps", "Div", []string{fresh, scale})})
	within := w.op(part+"_within", "Clip", []string{rounded, w.number("smallest_step", onnx.Float, -127), w.number("largest_integer", onnx.Float, 127)})
	some := w.op(part+"_some", "Greater", []string{scale, w.number("zero", onnx.Float, 0)})
	return w.op(part+"_stored", "Cast", []string{w.op(part+"_integers", "Where", []string{some, within, w.number("zero", onnx.Float, 0)})}, as), scale
}

// readAs32 is tokens of a cache in float32, times their scales where they have some.
func (w *body) readAs32(part, v, scale string) string {
	switch {
	case scale != "":
		return w.op(part+"_number", "Mul", []string{w.float(part, v), scale})
	case w.cacheType != "":
		return w.float(part, v)
	}
	return w.element32(part, v)
}

// cells are where the new tokens of a buffer [batch, kv heads, capacity, channels] stand:
// [batch, kv heads, length, 3].
func (w *body) cells(part string) string {
	shape := w.joined(part+"_cells_shape", w.sizes.batch, w.sizes.kvHeads, w.sizes.length, w.ints(1))
	var axes []string
	for axis, size := range []string{w.sizes.batch, w.sizes.kvHeads} {
		name := fmt.Sprintf("%s_axis_%d", part, axis)
		list := w.op(name+"_numbers", "Range", []string{w.int(0), w.scalar(name, size), w.int(1)})
		others := [][]int64{{1, 2, 3}, {0, 2, 3}}[axis]
		axes = append(axes, w.op(name, "Expand", []string{w.unsqueeze(name+"_list", list, others...), shape}))
	}
	axes = append(axes, w.op(part+"_axis_2", "Expand", []string{w.unsqueeze(part+"_index", w.sizes.index, 1, 3), shape}))
	return w.op(part+"_cells", "Concat", axes, onnx.IntAttr("axis", 3))
}

// grown is a buffer with at least total_length rows.
func (w *body) grown(past string) string {
	wide := w.op("total_rows", "Cast", []string{w.names.total}, onnx.IntAttr("to", int64(onnx.Int64)))
	wanted := w.op("total", "Reshape", []string{wide, w.ints(1)})
	shape := w.op(past+"_dims", "Shape", []string{past})
	more := w.op(past+"_missing", "Max", []string{w.op(past+"_rest", "Sub", []string{wanted, w.slice(past+"_capacity", shape, w.ints(2), w.ints(3), 0)}), w.ints(0)})
	dims := w.joined(past+"_more_shape", w.slice(past+"_front", shape, w.ints(0), w.ints(2), 0), more, w.slice(past+"_back", shape, w.ints(3), w.ints(4), 0))
	zeros := w.op(past+"_zeros", "ConstantOfShape", []string{dims})
	switch {
	case past == w.names.keyScale, past == w.names.valueScale: // which are float32
	case w.cacheType != "":
		zeros = w.op(past+"_more", "Cast", []string{zeros}, onnx.IntAttr("to", int64(CacheTypes[w.cacheType])))
	default:
		zeros = w.narrow(past+"_more", zeros)
	}
	return w.op(past+"_grown", "Concat", []string{past, zeros}, onnx.IntAttr("axis", 2))
}

// live says which keys of a buffer are a row's tokens, bool [batch, tokens].
func (w *body) live() string {
	total := w.op("totals", "Add", []string{w.sizes.past, w.sizes.length})
	return w.op("live", "Less", []string{w.sizes.keys, total})
}
