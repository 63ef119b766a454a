package definition

import (
	"github.com/rope-rewrite/rope-rewrite/customop"
	"github.com/rope-rewrite/rope-rewrite/onnx"
)

// noWindow is wider than any row. Sums of it and an index stay within int32, in which some
// runtimes compute int64 (OpenVINO).
const noWindow = 1 << 30

// visible says which keys a query sees: bool, broadcastable to [batch, 1, length, tokens];
// "" where it sees all.
func (w *body) visible() string {
	s := w.sizes
	var all []string
	if w.causal {
		all = append(all, w.op("not_later", "LessOrEqual", []string{s.keys, w.column("index", s.index)}))
	}
	if w.names.cacheLength != "" && !w.causal { // else no query comes so late
		all = append(all, w.row("live", w.live()))
	}
	if w.any(func(op customop.RotaryAttention) bool { return op.Window > 0 }) {
		all = append(all, w.window())
	}
	if s.real != "" {
		all = append(all, w.row("real", s.real))
	}
	if w.documents != "" {
		all = append(all, w.readable())
	}
	if len(all) == 0 {
		return ""
	}
	return w.unsqueeze("visible_heads", w.both("visible", all...), 1)
}

// window shows the keys nearer than the attribute window says, and the first keys. 0 is no
// window.
func (w *body) window() string {
	s, window := w.sizes, w.attribute("window")
	if w.any(func(op customop.RotaryAttention) bool { return op.Window == 0 }) {
		none := w.op("no_window", "Equal", []string{window, w.int(0)})
		window = w.op("wide_window", "Where", []string{none, w.int(noWindow), window})
	}
	near := w.op("near", "Greater", []string{s.keys, w.column("window", w.op("window_from", "Sub", []string{s.index, window}))})
	if !w.causal {
		later := w.op("near_later", "Less", []string{s.keys, w.column("window", w.op("window_to", "Add", []string{s.index, window}))})
		near = w.both("near_both", near, later)
	}
	if !w.any(func(op customop.RotaryAttention) bool { return op.FirstKeys > 0 }) {
		return near
	}
	count := w.attribute("first_keys")
	first := ""
	if w.shown && s.real != "" {
		wide := w.op("real_number", "Cast", []string{s.real}, onnx.IntAttr("to", int64(onnx.Int64)))
		counted := w.op("real_so_far", "CumSum", []string{wide, w.int(1)})
		first = w.row("first", w.op("first", "LessOrEqual", []string{counted, count}))
	} else {
		first = w.op("first", "Less", []string{s.keys, count})
	}
	return w.op("near_or_first", "Or", []string{near, first})
}

// readable shows a query the keys that the documents let it read [batch or 1, length, tokens].
func (w *body) readable() string {
	documents := w.left("documents", w.names.documents, w.int(0))
	mine := w.column("mine", w.ofNew("document_new", documents))
	theirs := w.row("theirs", w.ofKeys("document_keys", documents))
	same := w.op("same_document", "Equal", []string{mine, theirs})
	if w.restart {
		w.restarted(mine, same)
	}
	read := w.op("read", "Or", []string{same, w.op("reader", "Equal", []string{mine, w.int(-1)})})
	if w.documents == "anchor" {
		read = w.op("read_anchor", "Or", []string{read, w.op("anchor", "Equal", []string{theirs, w.int(0)})})
	}
	return read
}

// restarted makes the positions of new tokens count within their documents. mine is each
// one's document [batch or 1, length, 1], same which keys are of it.
func (w *body) restarted(mine, same string) {
	s := &w.sizes
	earlier := w.op("earlier", "Less", []string{s.keys, w.column("index", s.index)})
	counted := w.both("counted_tokens", same, earlier)
	if s.real != "" {
		counted = w.both("counted_real", counted, w.row("counted", s.real))
	}
	number := w.op("count_number", "Cast", []string{counted}, onnx.IntAttr("to", int64(onnx.Int64)))
	id := w.op("id", "Squeeze", []string{mine, w.ints(2)})
	anchor := w.op("is_anchor", "Equal", []string{id, w.int(0)})
	start := w.op("start", "Where", []string{anchor, w.int(0), w.attribute("document_start")})
	own := w.op("within", "Add", []string{w.total("count", number, 2, 0), start})
	s.positions = w.op("restarted", "Where", []string{w.op("is_reader", "Equal", []string{id, w.int(-1)}), s.positions, own})
}

// inBand says which keys stand in a band or in one after it: bool, broadcastable to
// [batch, 1, length, tokens].
func (w *body) inBand(band int) string {
	start := w.element("band_start", w.attribute("band_starts"), band)
	index, keys := w.sizes.index, w.sizes.keys
	if w.chunk {
		chunk := w.attribute("band_chunk")
		ofQuery := w.op("moved_index", "Add", []string{index, w.positionShift()})
		ofKeys := w.op("moved_keys", "Add", []string{keys, w.positionShift()})
		index, keys = w.floored("query_chunk", ofQuery, chunk), w.row("key_chunk", w.floored("key_chunk", w.atLeastRow(ofKeys), chunk))
	}
	last := w.column("band", w.op("band_last", "Sub", []string{index, start}))
	return w.unsqueeze("in_band_heads", w.op("in_band", "LessOrEqual", []string{keys, last}), 1)
}
