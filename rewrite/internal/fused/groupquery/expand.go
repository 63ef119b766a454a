package groupquery

import (
	"math"

	"github.com/rope-rewrite/rope-rewrite/onnx"
	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/fused"
)

// expand writes the op as it works on rows without padding whose past buffer
// is exactly as long as the past P: nothing reads seqlens_k and
// total_sequence_length.
//
//	positions  = P … P + L − 1
//	present    = Concat(past, rotated key)
//	output     = Softmax(mask(cap(scale · query · presentᵀ))) · present value
func (o *op) expand(b *fused.Builder) {
	past, length := b.Size(o.pastKey, 2), b.Size(o.query, 1)
	keys := b.Add("Add", []string{past, length})
	positions := b.Add("Range", []string{past, keys, b.Int(1)})
	q, k, v := o.split(b)
	q, k = o.rotate(b, q, positions), o.rotate(b, k, positions)
	b.AddTo(o.presentKey, "Concat", []string{o.pastKey, k}, onnx.IntAttr("axis", 2))
	b.AddTo(o.presentValue, "Concat", []string{o.pastValue, v}, onnx.IntAttr("axis", 2))
	rows := b.Add("Unsqueeze", []string{positions, b.Ints(1)}) // [L, 1]
	columns := b.Add("Range", []string{b.Int(0), keys, b.Int(1)})
	o.attend(b, q, rows, columns)
}

// define writes all that the op means, as ONNX Runtime 1.31 computes it on the
// CPU, for rows of any length in buffers of any capacity C. Row b holds
// seqlens_k[b] + 1 tokens after the call.
//
//	past[b]    = 0 in a first call (L = total), else seqlens_k[b] + 1 − L
//	positions  = past[b] … past[b] + L − 1
//	present    = buffer of max(C, total) rows: those of the past, then the new ones
//
// What a present holds behind a row's tokens, and what comes out for the padded
// places of a first call, is not used.
func (o *op) define(b *fused.Builder) {
	one, zero := b.Int(1), b.Int(0)
	length, capacity := b.Size(o.query, 1), b.Size(o.pastKey, 2)
	integer := func(v string, dims ...int64) string {
		wide := b.Add("Cast", []string{v}, onnx.IntAttr("to", int64(onnx.Int64)))
		return b.Add("Reshape", []string{wide, b.Ints(dims...)})
	}
	total := integer(o.total)
	tokens := b.Add("Add", []string{integer(o.lengths, -1), one})
	first := b.Add("Equal", []string{length, total})
	past := b.Add("Where", []string{first, zero, b.Add("Sub", []string{tokens, length})})
	past = b.Add("Unsqueeze", []string{past, b.Ints(-1)})                                  // [B, 1]
	positions := b.Add("Add", []string{past, b.Add("Range", []string{zero, length, one})}) // [B, L]

	q, k, v := o.split(b)
	rotated := positions
	if o.cos != "" { // padded places may lie beyond the table's end
		rotated = b.Add("Min", []string{positions, b.Add("Sub", []string{b.Size(o.cos, 0), one})})
	}
	q, k = o.rotate(b, q, rotated), o.rotate(b, k, rotated)

	// Row r of a present is row r of the past where r < past[b], else new row r − past[b].
	columns := b.Add("Range", []string{zero, b.Add("Max", []string{capacity, total}), one})
	place := b.Add("Sub", []string{columns, past}) // [B, N]
	last := b.Add("Sub", []string{length, one})
	fresh := b.Add("Add", []string{capacity, b.Add("Min", []string{place, last})})
	source := b.Add("Where", []string{b.Add("Less", []string{place, zero}), columns, fresh})
	source = b.Add("Unsqueeze", []string{source, b.Ints(-1)}) // [B, N, 1]
	for _, c := range [][3]string{{o.pastKey, k, o.presentKey}, {o.pastValue, v, o.presentValue}} {
		all := b.Add("Concat", c[:2], onnx.IntAttr("axis", 2))
		rows := b.Add("Transpose", []string{all}, onnx.IntsAttr("perm", 0, 2, 1, 3))
		picked := b.Add("GatherND", []string{rows, source}, onnx.IntAttr("batch_dims", 1))
		b.AddTo(c[2], "Transpose", []string{picked}, onnx.IntsAttr("perm", 0, 2, 1, 3))
	}
	rows := b.Add("Unsqueeze", []string{positions, b.Ints(1, 3)}) // [B, 1, L, 1]
	o.attend(b, q, rows, columns)
}

// split returns query, key and value as [batch, heads, length, channels].
func (o *op) split(b *fused.Builder) (q, k, v string) {
	heads := func(value string, count int64) string {
		apart := b.Add("Reshape", []string{value, b.Ints(0, 0, count, o.headSize)})
		return b.Add("Transpose", []string{apart}, onnx.IntsAttr("perm", 0, 2, 1, 3))
	}
	if o.key != "" {
		return heads(o.query, o.heads), heads(o.key, o.kvHeads), heads(o.value, o.kvHeads)
	}
	sizes := b.Ints(o.heads*o.headSize, o.kvHeads*o.headSize, o.kvHeads*o.headSize)
	parts := b.AddSeveral(3, "Split", []string{o.query, sizes}, onnx.IntAttr("axis", 2))
	return heads(parts[0], o.heads), heads(parts[1], o.kvHeads), heads(parts[2], o.kvHeads)
}

// rotate rotates x [batch, heads, length, channels] by the rows of the tables at
// positions, [length] or [batch, length].
func (o *op) rotate(b *fused.Builder, x, positions string) string {
	if o.cos == "" {
		return x
	}
	table := func(t string) string {
		rows := b.Add("Gather", []string{t, positions}, onnx.IntAttr("axis", 0))
		return b.Add("Unsqueeze", []string{rows, b.Ints(-3)})
	}
	r := fused.Rotation{Cos: table(o.cos), Sin: table(o.sin), Width: o.rotaryDim, Rest: o.rotaryDim < o.headSize, Interleaved: o.interleaved}
	return r.Turn(b, x)
}

// attend writes the attention of rotated queries over the present: a query of
// index row sees the keys of column ≤ row, the last window of them.
func (o *op) attend(b *fused.Builder, q, rows, columns string) {
	group := o.heads / o.kvHeads
	repeat := func(x string) string {
		if group == 1 {
			return x
		}
		single := b.Add("Unsqueeze", []string{x, b.Ints(2)})
		grouped := b.Add("Expand", []string{single, b.Ints(1, 1, group, 1, 1)})
		return b.Add("Reshape", []string{grouped, b.Ints(0, o.heads, -1, o.headSize)})
	}
	float := func(v float64) string { return b.Float(v, o.elem) }
	keys := b.Add("Transpose", []string{repeat(o.presentKey)}, onnx.IntsAttr("perm", 0, 1, 3, 2))
	scores := b.Add("Mul", []string{b.Add("MatMul", []string{q, keys}), float(o.scale)})
	if o.softcap > 0 {
		cap := float(o.softcap)
		bent := b.Add("Tanh", []string{b.Add("Div", []string{scores, cap})})
		scores = b.Add("Mul", []string{bent, cap})
	}
	visible := b.Add("LessOrEqual", []string{columns, rows})
	if o.window > 0 {
		near := b.Add("Greater", []string{columns, b.Add("Sub", []string{rows, b.Int(o.window)})})
		visible = b.Add("And", []string{visible, near})
	}
	masked := b.Add("Where", []string{visible, scores, float(math.Inf(-1))})
	sink := o.sinks(b, masked)
	if sink != "" { // a logit of each head behind the keys, which no value belongs to
		masked = b.Add("Concat", []string{masked, sink}, onnx.IntAttr("axis", -1))
	}
	probabilities := b.Add("Softmax", []string{masked}, onnx.IntAttr("axis", -1))
	if sink != "" {
		probabilities = b.Add("Slice", []string{probabilities, b.Ints(0), b.Ints(-1), b.Ints(3)})
	}
	mixed := b.Add("MatMul", []string{probabilities, repeat(o.presentValue)})
	together := b.Add("Transpose", []string{mixed}, onnx.IntsAttr("perm", 0, 2, 1, 3))
	b.AddTo(o.output, "Reshape", []string{together, b.Ints(0, 0, o.heads*o.headSize)})
}

// sinks returns the logits beside the keys, [batch, heads, length, 1], "" without.
func (o *op) sinks(b *fused.Builder, scores string) string {
	logits := o.sink
	switch {
	case logits != "":
		logits = b.Add("Reshape", []string{logits, b.Ints(1, o.heads, 1, 1)})
	case o.zeroSink:
		logits = b.Float(0, o.elem)
	default:
		return ""
	}
	shape := b.Add("Concat", []string{b.Sizes(scores, 0, 3), b.Ints(1)}, onnx.IntAttr("axis", 0))
	return b.Add("Expand", []string{logits, shape})
}
