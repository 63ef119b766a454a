package groupquery

import (
	"math"

	"github.com/rope-rewrite/rope-rewrite/onnx"
)

// expand writes the op as it works on rows without padding whose past buffer
// is exactly as long as the past P: nothing reads seqlens_k and
// total_sequence_length.
//
//	positions  = P … P + L − 1
//	present    = Concat(past, rotated key)
//	probs      = Softmax(mask(cap(scale · query · presentᵀ)))
func (o op) expand(b *builder) {
	past, length := b.size(o.pastKey, 2, "past"), b.size(o.query, 1, "length")
	keys := b.add("Add", []string{past, length}, "keys")
	positions := b.add("Range", []string{past, keys, b.scalar(1)}, "positions")
	q, k, v := o.split(b)
	q = o.rotate(b, q, positions, "query")
	k = o.rotate(b, k, positions, "key")
	b.make("Concat", []string{o.pastKey, k}, o.presentKey, onnx.IntAttr("axis", 2))
	b.make("Concat", []string{o.pastValue, v}, o.presentVal, onnx.IntAttr("axis", 2))
	rows := b.add("Unsqueeze", []string{positions, b.list(1)}, "rows")
	columns := b.add("Range", []string{b.scalar(0), keys, b.scalar(1)}, "columns")
	o.attend(b, q, o.presentKey, o.presentVal, rows, columns)
}

// define writes all that the op means on CPU, as ONNX Runtime 1.31 computes it,
// for rows of any length in buffers of any capacity C. Row b holds
// seqlens_k[b] + 1 tokens after the call.
//
//	past[b]    = 0 in a first call (L = total), else seqlens_k[b] + 1 − L
//	positions  = past[b] … past[b] + L − 1
//	present    = buffer of max(C, total): past rows, then the new ones
//
// What a present holds behind a row's tokens, and what comes out for the padded
// places of a first call, carries no meaning.
func (o op) define(b *builder) {
	one, zero := b.scalar(1), b.scalar(0)
	length := b.size(o.query, 1, "length")
	capacity := b.size(o.pastKey, 2, "capacity")
	total := b.add("Reshape", []string{b.int64(o.total, "total64"), b.list()}, "total")
	tokens := b.add("Add", []string{b.add("Reshape", []string{b.int64(o.lengths, "lengths64"), b.list(-1)}, "lengths"), one}, "tokens")
	first := b.add("Equal", []string{length, total}, "first_call")
	past := b.add("Where", []string{first, zero, b.add("Sub", []string{tokens, length}, "before")}, "past")
	pasts := b.add("Unsqueeze", []string{past, b.list(-1)}, "pasts") // [B, 1]
	places := b.add("Range", []string{zero, length, one}, "places")
	positions := b.add("Add", []string{pasts, places}, "positions") // [B, L]

	q, k, v := o.split(b)
	rotated := positions
	if o.cos != "" { // the padded places of a first call may lie beyond the table's end
		rows := b.size(o.cos, 0, "table_rows")
		rotated = b.add("Min", []string{positions, b.add("Sub", []string{rows, one}, "table_end")}, "table_places")
	}
	q = o.rotate(b, q, rotated, "query")
	k = o.rotate(b, k, rotated, "key")

	// Row r of a present is row r of the past where r < past[b], else new row r − past[b].
	columns := b.add("Range", []string{zero, b.add("Max", []string{capacity, total}, "rows_present"), one}, "columns")
	place := b.add("Sub", []string{columns, pasts}, "place") // [B, N]
	fresh := b.add("Add", []string{capacity, b.add("Min", []string{place, b.add("Sub", []string{length, one}, "last_place")}, "fresh_place")}, "fresh")
	source := b.add("Where", []string{b.add("Less", []string{place, zero}, "is_past"), columns, fresh}, "source")
	source = b.add("Unsqueeze", []string{source, b.list(-1)}, "source_rows") // [B, N, 1]
	for _, c := range []struct{ past, fresh, present, part string }{
		{o.pastKey, k, o.presentKey, "key"}, {o.pastValue, v, o.presentVal, "value"},
	} {
		all := b.add("Concat", []string{c.past, c.fresh}, c.part+"_all", onnx.IntAttr("axis", 2))
		rows := b.add("Transpose", []string{all}, c.part+"_rows", onnx.IntsAttr("perm", 0, 2, 1, 3))
		picked := b.add("GatherND", []string{rows, source}, c.part+"_picked", onnx.IntAttr("batch_dims", 1))
		b.make("Transpose", []string{picked}, c.present, onnx.IntsAttr("perm", 0, 2, 1, 3))
	}
	// [B, 1, L, 1] against [N]
	o.attend(b, q, o.presentKey, o.presentVal, b.add("Unsqueeze", []string{positions, b.list(1, 3)}, "rows"), columns)
}

// split returns query, key and value as [batch, heads, length, channels].
func (o op) split(b *builder) (q, k, v string) {
	heads := func(value string, count int64, part string) string {
		apart := b.add("Reshape", []string{value, b.list(0, 0, count, o.headSize)}, part+"_apart")
		return b.add("Transpose", []string{apart}, part+"_heads", onnx.IntsAttr("perm", 0, 2, 1, 3))
	}
	if o.key != "" {
		return heads(o.query, o.heads, "query"), heads(o.key, o.kvHeads, "key"), heads(o.value, o.kvHeads, "value")
	}
	q, k, v = b.value("query_new"), b.value("key_new"), b.value("value_new")
	b.node("Split", []string{heads(o.query, o.heads+2*o.kvHeads, "packed"), b.list(o.heads, o.kvHeads, o.kvHeads)},
		[]string{q, k, v}, onnx.IntAttr("axis", 1))
	return q, k, v
}

// rotate turns x [batch, heads, length, channels] by the rows of the tables at
// positions, [length] or [batch, length].
func (o op) rotate(b *builder, x, positions, part string) string {
	if o.cos == "" {
		return x
	}
	name := func(s string) string { return part + "_" + s }
	table := func(t, s string) string {
		rows := b.add("Gather", []string{t, positions}, name(s), onnx.IntAttr("axis", 0))
		return b.add("Unsqueeze", []string{rows, b.list(-3)}, name(s+"s"))
	}
	cos, sin := table(o.cos, "cos"), table(o.sin, "sin")
	slice := func(s string, from, to, step int64) string {
		return b.add("Slice", []string{x, b.list(from), b.list(to), b.list(3), b.list(step)}, name(s))
	}
	half := o.rotaryDim / 2
	first, second := "", ""
	if o.interleaved {
		first, second = slice("first", 0, o.rotaryDim, 2), slice("second", 1, o.rotaryDim, 2)
	} else {
		first, second = slice("first", 0, half, 1), slice("second", half, o.rotaryDim, 1)
	}
	product := func(x, t, s string) string { return b.add("Mul", []string{x, t}, name(s)) }
	one := b.add("Sub", []string{product(first, cos, "first_cos"), product(second, sin, "second_sin")}, name("first_turned"))
	two := b.add("Add", []string{product(second, cos, "second_cos"), product(first, sin, "first_sin")}, name("second_turned"))
	parts := []string{one, two}
	if o.interleaved {
		for i, p := range parts {
			parts[i] = b.add("Unsqueeze", []string{p, b.list(-1)}, p[len(b.stem)+1:]+"_pair")
		}
		pairs := b.add("Concat", parts, name("pairs"), onnx.IntAttr("axis", -1))
		parts = []string{b.add("Reshape", []string{pairs, b.list(0, 0, 0, o.rotaryDim)}, name("turned"))}
	}
	if o.rotaryDim < o.headSize {
		parts = append(parts, slice("rest", o.rotaryDim, o.headSize, 1))
	}
	if len(parts) == 1 {
		return parts[0]
	}
	return b.add("Concat", parts, name("rotated"), onnx.IntAttr("axis", -1))
}

// attend writes the attention of rotated queries over the present: a query of
// index row sees the keys of column ≤ row, the last window of them.
func (o op) attend(b *builder, q, keys, values, rows, columns string) {
	group := o.heads / o.kvHeads
	repeat := func(x, part string) string {
		if group == 1 {
			return x
		}
		single := b.add("Unsqueeze", []string{x, b.list(2)}, part+"_single")
		grouped := b.add("Expand", []string{single, b.list(1, 1, group, 1, 1)}, part+"_grouped")
		return b.add("Reshape", []string{grouped, b.list(0, o.heads, -1, o.headSize)}, part+"_repeated")
	}
	scores := b.add("MatMul", []string{q, b.add("Transpose", []string{repeat(keys, "key")}, "key_transposed", onnx.IntsAttr("perm", 0, 1, 3, 2))}, "products")
	scores = b.add("Mul", []string{scores, b.float(o.scale)}, "scores")
	if o.softcap > 0 {
		cap := b.float(o.softcap)
		scores = b.add("Mul", []string{b.add("Tanh", []string{b.add("Div", []string{scores, cap}, "capped")}, "bent"), cap}, "scores_capped")
	}
	visible := b.add("LessOrEqual", []string{columns, rows}, "causal")
	if o.window > 0 {
		near := b.add("Greater", []string{columns, b.add("Sub", []string{rows, b.scalar(o.window)}, "outside")}, "near")
		visible = b.add("And", []string{visible, near}, "visible")
	}
	masked := b.add("Where", []string{visible, scores, b.float(float32(math.Inf(-1)))}, "masked")
	probs := b.add("Softmax", []string{masked}, "probabilities", onnx.IntAttr("axis", -1))
	mixed := b.add("MatMul", []string{probs, repeat(values, "value")}, "mixed")
	together := b.add("Transpose", []string{mixed}, "together", onnx.IntsAttr("perm", 0, 2, 1, 3))
	b.make("Reshape", []string{together, b.list(0, 0, o.heads*o.headSize)}, o.output)
}
