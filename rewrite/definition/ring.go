package definition

import "github.com/rope-rewrite/rope-rewrite/onnx"

// ring is what counts the tokens of a cache that is a ring. Lists of one, unless said.
type ring struct {
	capacity string
	first    string // rows of the first keys, which stay
	rows     string // the others, in which new tokens take the place of the oldest
	all      string // tokens that went through the cache [batch, 1]
	lost     string // those of them that it has no more [batch, 1]
}

// countRing writes the sizes of a ring, whose cache has had so many tokens [batch, 1]. It returns how many are
// left [batch, 1].
func (w *body) countRing(all string) string {
	r := &w.sizes.ring
	r.all = all
	r.capacity = w.size("capacity", w.names.pastKey, 2)
	r.first = w.op("first_rows", "Reshape", []string{w.attribute("first_keys"), w.ints(1)})
	r.rows = w.op("ring_rows", "Sub", []string{r.capacity, r.first})
	left := w.op("left", "Min", []string{all, r.capacity})
	r.lost = w.op("lost", "Sub", []string{all, left})
	return left
}

// ringPositions finds the positions of the new tokens: indices are those of all tokens, and where keys are raw,
// positions are less by the lost ones.
func (w *body) ringPositions() {
	s := &w.sizes
	if w.names.positions == "" {
		s.text = w.op("index_of_all", "Add", []string{s.index, s.ring.lost})
	}
	switch raw := w.cache == "raw"; {
	case !raw:
		s.positions = s.text
	case w.names.positions != "":
		s.positions = w.op("positions_left", "Sub", []string{s.text, s.ring.lost})
	}
}

// left takes, of a value for each token [batch or 1, width], that of the tokens that are left, if the cache is a
// ring. Tokens behind the width have the value one.
func (w *body) left(part, v, one string) string {
	if !w.ring {
		return v
	}
	s := w.sizes
	stays := w.op("stays", "Less", []string{s.keys, s.ring.first})
	column := w.op("columns", "Where", []string{stays, s.keys, w.op("later_columns", "Add", []string{s.keys, s.ring.lost})})
	width := w.size(part+"_width", v, 1)
	within := w.op(part+"_within", "Less", []string{column, width})
	last := w.op(part+"_last", "Sub", []string{width, w.ints(1)})
	at := w.op(part+"_columns", "Min", []string{column, last})
	taken := w.op(part+"_taken", "GatherElements", []string{w.rows(part, v), at}, onnx.IntAttr("axis", 1))
	return w.op(part+"_left", "Where", []string{within, taken, one})
}

// throughRing is appendTo for a ring.
func (w *body) throughRing(past, scale, present, fresh, kept, freshScale string, exact bool) cached {
	join := func(name, a, b string) string { return w.op(name, "Concat", []string{a, b}, onnx.IntAttr("axis", 2)) }
	all := join(present+"_all", past, kept)
	stored := w.ringRows("stored", w.storedRows())
	c := cached{present: w.result(present, "GatherND", []string{all, stored}, onnx.IntAttr("batch_dims", 2))}
	scales := ""
	if scale != "" {
		scales = join(present+"_scales", scale, freshScale)
		w.result(present+"_scale", "GatherND", []string{scales, stored}, onnx.IntAttr("batch_dims", 2))
	}
	numbers := w.readAs32(present, all, scales)
	if exact {
		numbers = join(present+"_numbers", w.slice(present+"_old", numbers, w.ints(0), w.sizes.ring.capacity, 2), fresh)
	}
	read := w.op(present+"_read", "GatherND", []string{numbers, w.ringRows("read", w.readRows())}, onnx.IntAttr("batch_dims", 2))
	// Rows behind a row's last token may hold anything, also numbers that are none.
	c.read = w.op(present+"_live", "Where", []string{w.unsqueeze("live_rows", w.live(), 1, 3), read, w.number("zero", onnx.Float, 0)})
	return c
}

// readRows are, for each index among the tokens that are left, the row in the cache or, behind its capacity, the
// place in the call [batch, tokens].
func (w *body) readRows() string {
	s := w.sizes
	stays := w.op("stays", "Less", []string{s.keys, s.ring.first})
	index := w.op("index_of_keys", "Add", []string{s.keys, s.ring.lost})
	steps := w.op("steps_of_keys", "Mod", []string{w.op("behind_first", "Sub", []string{index, s.ring.first}), s.ring.rows})
	row := w.op("row_of_keys", "Where", []string{stays, s.keys, w.op("turned_row", "Add", []string{steps, s.ring.first})})
	place := w.op("place_of_keys", "Sub", []string{s.keys, s.past})
	isNew := w.op("is_new", "GreaterOrEqual", []string{place, w.int(0)})
	// Shorter rows of the batch end before; what is read for them is hidden.
	last := w.op("last_place", "Sub", []string{s.length, w.ints(1)})
	at := w.op("new_row", "Add", []string{w.op("new_place", "Min", []string{place, last}), s.ring.capacity})
	return w.op("read_rows", "Where", []string{isNew, at, row})
}

// storedRows are, for each row of present, the row of past or, behind its capacity, the place in the call
// [batch, capacity].
func (w *body) storedRows() string {
	r := w.sizes.ring
	rows := w.op("rows", "Range", []string{w.int(0), w.scalar("capacity", r.capacity), w.int(1)})
	end := w.op("tokens_of_all", "Add", []string{r.all, w.sizes.length})
	last := w.op("last_of_all", "Sub", []string{end, w.ints(1)})
	// The newest token that belongs into a row.
	turns := w.floored("turns", w.op("last_behind", "Sub", []string{last, rows}), r.rows)
	turned := w.op("newest_turned", "Add", []string{rows, w.op("steps_of_turns", "Mul", []string{turns, r.rows})})
	newest := w.op("newest", "Where", []string{w.op("row_stays", "Less", []string{rows, r.first}), rows, turned})
	fresh := w.both("row_is_new", w.op("not_before", "GreaterOrEqual", []string{newest, r.all}), w.op("not_behind", "Less", []string{newest, end}))
	place := w.op("place_of_row", "Sub", []string{newest, r.all})
	return w.op("stored_rows", "Where", []string{fresh, w.op("row_of_place", "Add", []string{place, r.capacity}), rows})
}

// ringRows are rows [batch, n] for each head as GatherND takes them, [batch, kv heads, n, 1].
func (w *body) ringRows(part, rows string) string {
	column := w.unsqueeze(part+"_rows_of_heads", rows, 1, 3)
	return w.op(part+"_places", "Expand", []string{column, w.joined(part+"_places_shape", w.ints(1), w.sizes.kvHeads, w.ints(1, 1))})
}
