package definition

import (
	"math"

	"github.com/rope-rewrite/rope-rewrite/onnx"
)

// sizes are what a call's tokens are counted with, int64. A list of one is [1].
type sizes struct {
	batch, kvHeads, length string // lists of one
	past                   string // tokens in the cache: a list of one, or [batch, 1] in a cache of fixed capacity; of a ring those that are left
	tokens                 string // keys of the longest row, cached and new, a list of one
	index                  string // of the new tokens [batch or 1, length]
	keys                   string // the indices of keys [tokens]
	positions              string // of the new tokens [batch or 1, length], with position_axes [axes, batch or 1, length]
	text                   string // the same, of a ring of raw keys not less the lost tokens
	real                   string // which keys the mask shows, bool [batch or 1, tokens]; "" without a mask
	realNew                string // the same of the new tokens [batch or 1, length]
	ring                   ring
}

// count writes the sizes of a call, for query and key [batch, heads, length, channels].
func (w *body) count(query, key string) {
	s := &w.sizes
	s.batch, s.length = w.size("batch", query, 0), w.size("length", query, 2)
	s.kvHeads = w.size("kv_heads", key, 1)
	zero, one := w.int(0), w.int(1)
	if w.names.cacheLength != "" {
		wide := w.op("past_rows", "Cast", []string{w.names.cacheLength}, onnx.IntAttr("to", int64(onnx.Int64)))
		s.past = w.unsqueeze("past", wide, 1)
		longest := w.largest("longest_past", wide, 0)
		if w.ring {
			s.past = w.countRing(s.past)
			longest = w.op("longest_left", "Min", []string{longest, s.ring.capacity})
		}
		s.tokens = w.op("tokens", "Add", []string{longest, s.length})
		steps := w.op("places", "Range", []string{zero, w.scalar("length", s.length), one})
		s.index = w.op("index", "Add", []string{s.past, steps})
	} else {
		s.past = w.ints(0)
		if w.names.pastKey != "" {
			s.past = w.size("past", w.names.pastKey, 2)
		}
		s.tokens = w.op("tokens", "Add", []string{s.past, s.length})
		if w.cross {
			s.tokens = w.size("tokens", key, 2)
		}
		steps := w.op("places", "Range", []string{w.scalar("past", s.past), w.scalar("tokens", s.tokens), one})
		s.index = w.unsqueeze("index", steps, 0)
	}
	s.keys = w.op("keys", "Range", []string{zero, w.scalar("tokens", s.tokens), one})
	s.positions = s.index
	if w.names.positions != "" {
		s.positions = w.names.positions
	}
	s.text = s.positions
	if w.ring {
		w.ringPositions()
	}
	if w.names.mask != "" {
		mask := w.left("mask", w.names.mask, w.int(1))
		shown := w.op("shown", "Cast", []string{mask}, onnx.IntAttr("to", int64(onnx.Bool)))
		s.real, s.realNew = w.ofKeys("real", shown), w.ofNew("real_new", shown)
	}
}

// ofKeys takes, of a value for each token [batch or 1, width], that of the keys.
func (w *body) ofKeys(part, v string) string {
	if w.names.cacheLength == "" {
		return v
	}
	return w.slice(part, v, w.ints(0), w.sizes.tokens, 1) // the width may be larger
}

// ofNew takes, of a value for each token [batch or 1, width], that of the new tokens.
func (w *body) ofNew(part, v string) string {
	if w.names.cacheLength == "" {
		return w.slice(part, v, w.sizes.past, w.sizes.tokens, 1)
	}
	return w.op(part, "GatherElements", []string{w.rows(part, v), w.sizes.index}, onnx.IntAttr("axis", 1))
}

// rows repeats [batch or 1, n] for each row of the batch.
func (w *body) rows(part, v string) string {
	return w.op(part+"_rows", "Expand", []string{v, w.joined(part+"_rows_shape", w.sizes.batch, w.ints(1))})
}

// positionShift is position − index of each row's real new tokens [batch or 1, 1], which
// the specification wants to be one number; 0 for a row without one.
func (w *body) positionShift() string {
	if w.shift != "" {
		return w.shift
	}
	if w.names.positions == "" {
		w.shift = w.ints(0)
		return w.shift
	}
	all := w.op("shifts", "Sub", []string{w.sizes.positions, w.sizes.index})
	if w.sizes.real == "" {
		w.shift = w.slice("shift", all, w.ints(0), w.ints(1), 1)
		return w.shift
	}
	counted := w.op("real_count", "Cast", []string{w.rows("real_new", w.sizes.realNew)}, onnx.IntAttr("to", int64(onnx.Int32)))
	first := w.op("first_real", "ArgMax", []string{counted}, onnx.IntAttr("axis", 1), onnx.IntAttr("keepdims", 1))
	shift := w.op("first_shift", "GatherElements", []string{w.rows("shifts", all), first}, onnx.IntAttr("axis", 1))
	some := w.op("some_real", "Cast", []string{w.largest("most_real", counted, 1)}, onnx.IntAttr("to", int64(onnx.Bool)))
	w.shift = w.op("shift", "Where", []string{some, shift, w.int(0)})
	return w.shift
}

// keyPositions is the position of every key [batch, tokens], of a raw cache.
func (w *body) keyPositions() string {
	base := w.op("shifted_keys", "Add", []string{w.sizes.keys, w.positionShift()})
	shape := w.joined("key_positions_shape", w.sizes.batch, w.ints(1))
	base = w.op("cached_positions", "Expand", []string{w.atLeastRow(base), shape})
	to := w.op("index_rows", "Expand", []string{w.sizes.index, shape})
	from := w.op("position_rows", "Expand", []string{w.sizes.positions, shape})
	return w.op("key_positions", "ScatterElements", []string{base, to, from}, onnx.IntAttr("axis", 1))
}

// atLeastRow makes [n] or [batch, n] a matrix.
func (w *body) atLeastRow(v string) string {
	return w.op("key_rows", "Reshape", []string{v, w.joined("key_rows_shape", w.ints(-1), w.sizes.tokens)})
}

// column turns [batch or 1, length] into [batch or 1, length, 1], which compares with keys.
func (w *body) column(part, v string) string { return w.unsqueeze(part+"_column", v, 2) }

// row turns [batch or 1, tokens] into [batch or 1, 1, tokens].
func (w *body) row(part, v string) string { return w.unsqueeze(part+"_row", v, 1) }

// floored is ⌊v / by⌋ of integers, also below 0.
func (w *body) floored(part, v, by string) string {
	rest := w.op(part+"_rest", "Mod", []string{v, by})
	return w.op(part, "Div", []string{w.op(part+"_multiple", "Sub", []string{v, rest}), by})
}

// end is where a slice to the end of an axis ends.
func (w *body) end() string { return w.ints(math.MaxInt64) }
