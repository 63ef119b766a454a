package rewrite

import (
	"fmt"
	"slices"

	"github.com/rope-rewrite/rope-rewrite/customop"
	"github.com/rope-rewrite/rope-rewrite/onnx"
	"github.com/rope-rewrite/rope-rewrite/rewrite/fused"
	"github.com/rope-rewrite/rope-rewrite/rope"
)

// wiring is what a lowered site reads and writes.
type wiring struct {
	name                              string // of the op's node, and the stem of what is made beside it
	query, key, value                 string
	latent                            *latent
	queryBeside, keyBeside            []string // the values whose channels stand behind theirs; nil for most
	pastKey, pastValue                string
	output, presentKey, presentValue  string
	position, mask                    *onnx.ValueInfo
	documents, cacheLength            string // graph inputs, empty without
	counted                           *fused.CountedCache
	explicit                          *explicit     // the model's own bias, nil without
	element                           onnx.DataType // of query, key and value
	queryLayout, keyLayout, valLayout layout
	queryOrder, keyOrder              []int64 // see lifted
	queryScales, keyScales            []placedScale
	outLayout                         layout
}

func (s *sizedSite) wiring(l *lifted) (w wiring, err error) {
	w = wiring{
		element: s.graph.element(s.query.cut),
		name:    "rope_rewrite/" + s.output(),
		query:   s.query.cut, key: s.key.cut, value: s.value.cut,
		queryBeside: s.query.cuts()[1:], keyBeside: s.key.cuts()[1:],
		output:   s.output(),
		position: l.position, mask: l.mask, counted: s.counted,
		queryOrder: l.queryOrder, keyOrder: l.keyOrder,
		queryLayout: l.layouts.query, keyLayout: l.layouts.key, valLayout: l.layouts.value, outLayout: l.layouts.output,
	}
	if w.queryScales, err = s.query.placed(s.graph, s.table, l.queryNorms); err != nil {
		return w, err
	}
	if w.keyScales, err = s.key.placed(s.graph, s.table, l.keyNorms); err != nil {
		return w, err
	}
	w.pastKey, w.pastValue = s.key.past(), s.value.past()
	if c := s.key.store(); c != nil {
		w.presentKey = c.present
	}
	w.latent = l.latent
	if s.value.cache != nil {
		w.presentValue = s.value.cache.present
	}
	if l.attention.Mask.Bias {
		w.explicit, err = s.explicit(l)
	}
	return w, err
}

// lower writes the op for a value, and the nodes around it that bring its
// inputs into the op's form. All are in topological order.
func lower(w wiring, a rope.Attention) (nodes []*onnx.Node, constants []*onnx.Tensor, err error) {
	b := &builder{stem: w.name}
	op := customop.RotaryAttention{
		Query:        b.scaled(b.ordered(b.joined(w.query, w.queryBeside, w.queryLayout, "query"), w.queryOrder, "query"), w.queryScales, w.element, "query"),
		PastKey:      w.pastKey,
		PastValue:    w.pastValue,
		PresentKey:   w.presentKey,
		PresentValue: w.presentValue,
		CacheLength:  w.cacheLength,
		NumHeads:     int64(a.Heads),
		KVNumHeads:   int64(a.KVHeads),
		Scale:        float32(a.EffectiveScale()),
		Gain:         float32(a.Encoding.EffectiveGain()),
		RotaryOffset: int64(a.Encoding.Offset),
		Softcap:      float32(a.Softcap),
	}
	var kept []*onnx.Node // what the model's cache is made of
	if w.latent != nil {
		kept = b.latent(w, &op)
	} else {
		op.Key = b.scaled(b.ordered(b.joined(w.key, w.keyBeside, w.keyLayout, "key"), w.keyOrder, "key"), w.keyScales, w.element, "key")
		op.Value = b.canonical(w.value, w.valLayout, "value")
	}
	if a.Sinks != nil {
		op.SinkLogits = b.floats("sink_logits", w.element, a.Sinks)
	}
	if w.explicit != nil {
		op.AttentionBias = w.explicit.value
		b.nodes, b.constants = append(b.nodes, w.explicit.nodes...), append(b.constants, w.explicit.constants...)
	}
	if w.counted != nil {
		op.CacheLength, op.TotalLength = b.cacheLength(w), w.counted.Total
	}
	if w.position != nil {
		op.PositionIDs = b.int64s(w.position)
	}
	if a.Drawn.Range > 0 {
		op.PositionIDs = b.drawn(a.Drawn, op.Query, op.PositionIDs)
	}
	b.masked(&op, w, a.Mask)
	if op.PositionIDs == "" && op.AttentionMask != "" && a.Chunk == 0 && limited(a.Bands) {
		op.PositionIDs = b.fromFirstReal(op.AttentionMask, op.Query, op.CacheLength)
	}
	if a.Encoding.Layout == rope.Interleaved {
		op.RotaryLayout = "interleaved"
	}
	if a.Cache == rope.Raw {
		op.Cache = "raw"
	}
	if a.Encoding.ExactAngles {
		op.ExactAngles = 1
	}
	for _, f := range a.Encoding.Frequencies {
		op.Frequencies = append(op.Frequencies, float32(f))
	}
	lowerPositions(&op, a)
	back := b.restore(w.output, w.outLayout)
	op.Output = back.from
	node, err := op.Node(w.name)
	if err != nil {
		return nil, nil, err
	}
	b.nodes = append(append(b.nodes, convert(node)), kept...)
	b.nodes = append(b.nodes, back.nodes...)
	return b.nodes, b.constants, nil
}

// masked writes which keys a query sees.
func (b *builder) masked(op *customop.RotaryAttention, w wiring, m rope.Mask) {
	op.Window, op.FirstKeys = m.Window, m.FirstKeys
	if m.Causal {
		op.Causal = 1
	}
	if m.Padding {
		op.AttentionMask = b.int64s(w.mask)
		if m.FirstKeys > 0 {
			op.FirstKeysShown = 1
		}
	}
	if m.Documents != rope.NoDocuments {
		op.DocumentIDs = w.documents
		op.DocumentMask = "intra"
		if m.Documents == rope.AnchorDocument {
			op.DocumentMask = "anchor"
		}
	}
	if m.Restart {
		op.DocumentRestart, op.DocumentStart = 1, m.Start
	}
}

// convert turns the op's node into a node of a graph.
func convert(n customop.Node) *onnx.Node {
	out := onnx.NewNode(n.OpType, n.Inputs, n.Outputs)
	out.Name, out.Domain = n.Name, n.Domain
	for _, a := range n.Attributes {
		switch a.Kind {
		case customop.Int:
			out.Attributes = append(out.Attributes, onnx.IntAttr(a.Name, a.Int))
		case customop.Float:
			out.Attributes = append(out.Attributes, onnx.FloatAttr(a.Name, a.Float))
		case customop.Text:
			out.Attributes = append(out.Attributes, onnx.StringAttr(a.Name, a.Text))
		case customop.Ints:
			out.Attributes = append(out.Attributes, onnx.IntsAttr(a.Name, a.Ints...))
		case customop.Floats:
			out.Attributes = append(out.Attributes, onnx.FloatsAttr(a.Name, a.Floats...))
		}
	}
	return out
}

// builder makes the nodes around an op.
type builder struct {
	stem      string
	nodes     []*onnx.Node
	constants []*onnx.Tensor
}

func (b *builder) value(part string) string { return fmt.Sprintf("%s/%s", b.stem, part) }

func (b *builder) constant(part string, values ...int64) string {
	name := b.value(part)
	b.constants = append(b.constants, int64Tensor(name, []int64{int64(len(values))}, values...))
	return name
}

// scalar is a constant without dimensions.
func (b *builder) scalar(part string, x int64) string {
	b.constants = append(b.constants, int64Tensor(b.value(part), []int64{}, x))
	return b.value(part)
}

// size makes a dimension of a value, a scalar.
func (b *builder) size(value string, axis int, part string) string {
	return b.dim(b.add("Shape", []string{value}, b.value(part+"_dims")), axis, part)
}

// dim takes one of a value's dimensions, a scalar.
func (b *builder) dim(dims string, axis int, part string) string {
	one := b.add("Slice", []string{dims, b.constant(part+"_from", int64(axis)), b.constant(part+"_to", int64(axis)+1)}, b.value(part+"_dim"))
	return b.add("Squeeze", []string{one}, b.value(part))
}

// into puts what was made into a graph, in front of a node; with nil at its end,
// from where order puts it in front of its readers.
func (b *builder) into(g *onnx.Graph, before *onnx.Node) {
	for _, c := range b.constants {
		g.AddInitializer(c)
	}
	for _, n := range b.nodes {
		g.InsertNode(before, n)
	}
}

// floats makes a constant of an element type.
func (b *builder) floats(part string, t onnx.DataType, values []float64) string {
	name := b.value(part)
	list := make([]float32, len(values))
	for i, x := range values {
		list[i] = float32(x)
	}
	dims := []int64{int64(len(list))}
	if !short(t) {
		b.constants = append(b.constants, float32Tensor(name, dims, list...))
		return name
	}
	b.constants = append(b.constants, float32Tensor(name+"_float", dims, list...))
	b.nodes = append(b.nodes, cast(name+"_float", name, t))
	return name
}

func (b *builder) add(op string, inputs []string, output string, attrs ...*onnx.Attribute) string {
	n := onnx.NewNode(op, inputs, []string{output}, attrs...)
	n.Name = output
	b.nodes = append(b.nodes, n)
	return output
}

// int64s returns an integer input as the op wants it.
func (b *builder) int64s(v *onnx.ValueInfo) string {
	if v.Type == onnx.Int64 {
		return v.Name
	}
	return b.add("Cast", []string{v.Name}, b.value(v.Name+"_int64"), onnx.IntAttr("to", int64(onnx.Int64)))
}

// canonical brings a hidden state into [batch, heads, length, channels].
func (b *builder) canonical(value string, ly layout, part string) string {
	if ly.all > 0 {
		return b.canonical(b.unpacked(value, ly, part), layout{axes: ly.axes, heads: ly.heads, channels: ly.channels, rows: ly.rows}, part)
	}
	if slices.Contains(ly.axes, unitAxis) {
		return b.canonical(b.compact(value, &ly, part), ly, part)
	}
	switch {
	case ly.canonical():
		return value
	case ly.is(batchAxis, rowAxis, mergedAxis):
		split := b.add("Reshape", []string{value, b.constant(part+"_shape", 0, 0, ly.heads, ly.channels)}, b.value(part+"_split"))
		return b.add("Transpose", []string{split}, b.value(part), onnx.IntsAttr("perm", 0, 2, 1, 3))
	case ly.is(batchHeadAxis, rowAxis, channelAxis):
		// [batch·heads, length, channels]: the batch is what is left.
		width := b.add("Shape", []string{value}, b.value(part+"_dims"))
		rest := b.add("Slice", []string{width, b.constant(part+"_from", 1), b.constant(part+"_to", 3)}, b.value(part+"_rest"))
		shape := b.add("Concat", []string{b.constant(part+"_front", -1, ly.heads), rest}, b.value(part+"_shape"), onnx.IntAttr("axis", 0))
		return b.add("Reshape", []string{value, shape}, b.value(part))
	}
	perm := make([]int64, 4)
	for i, a := range ly.axes {
		switch a {
		case batchAxis:
			perm[0] = int64(i)
		case headAxis:
			perm[1] = int64(i)
		case rowAxis:
			perm[2] = int64(i)
		case channelAxis:
			perm[3] = int64(i)
		}
	}
	return b.add("Transpose", []string{value}, b.value(part), onnx.IntsAttr("perm", perm...))
}

// ordered puts the channels of [batch, heads, length, channels] into another order.
func (b *builder) ordered(value string, order []int64, part string) string {
	if order == nil {
		return value
	}
	return b.add("Gather", []string{value, b.constant(part+"_order", order...)}, b.value(part+"_ordered"), onnx.IntAttr("axis", 3))
}

// compact takes out dimensions of one element, which stand behind batch and rows,
// and makes the layout that of the result.
func (b *builder) compact(value string, ly *layout, part string) string {
	var axes []axis
	var shape []int64
	for _, a := range ly.axes {
		size := int64(0) // as it is
		switch a {
		case unitAxis:
			continue
		case headAxis:
			size = ly.heads
		case channelAxis:
			size = ly.channels
		case mergedAxis:
			size = ly.heads * ly.channels
		}
		axes, shape = append(axes, a), append(shape, size)
	}
	ly.axes = axes
	return b.add("Reshape", []string{value, b.constant(part+"_compact_shape", shape...)}, b.value(part+"_compact"))
}

// unpacked takes the heads of one of query, key and value out of a value that
// holds others too.
func (b *builder) unpacked(value string, ly layout, part string) string {
	for i, a := range ly.axes {
		step := int64(1)
		switch a {
		case mergedAxis:
			step = ly.channels
		case headAxis:
		default:
			continue
		}
		return b.add("Slice", []string{value, b.constant(part+"_begin", ly.first*step), b.constant(part+"_end", (ly.first+ly.heads)*step),
			b.constant(part+"_axis", int64(i))}, b.value(part+"_only"))
	}
	return value
}

// tail is what stands between the op's output and the value it replaces.
type tail struct {
	from  string
	nodes []*onnx.Node
}

// restore brings [batch, heads, length, channels] into the form that the
// exporter's output has.
func (b *builder) restore(output string, ly layout) tail {
	if ly.canonical() {
		return tail{from: output}
	}
	inner := &builder{stem: b.stem}
	from := b.value("output")
	switch {
	case ly.is(batchHeadAxis, rowAxis, channelAxis):
		dims := inner.add("Shape", []string{from}, b.value("output_dims"))
		rest := inner.add("Slice", []string{dims, inner.constant("output_from", 2), inner.constant("output_to", 4)}, b.value("output_rest"))
		shape := inner.add("Concat", []string{inner.constant("output_front", -1), rest}, b.value("output_shape"), onnx.IntAttr("axis", 0))
		inner.add("Reshape", []string{from, shape}, output)
	case ly.is(batchAxis, rowAxis, mergedAxis):
		swapped := inner.add("Transpose", []string{from}, b.value("output_rows"), onnx.IntsAttr("perm", 0, 2, 1, 3))
		inner.add("Reshape", []string{swapped, inner.constant("output_shape", 0, 0, -1)}, output)
	default:
		perm := make([]int64, 4)
		place := map[axis]int64{batchAxis: 0, headAxis: 1, rowAxis: 2, channelAxis: 3}
		for i, a := range ly.axes {
			perm[i] = place[a]
		}
		inner.add("Transpose", []string{from}, output, onnx.IntsAttr("perm", perm...))
	}
	b.constants = append(b.constants, inner.constants...)
	return tail{from: from, nodes: inner.nodes}
}
