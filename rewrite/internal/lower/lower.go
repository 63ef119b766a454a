package lower

import (
	"slices"

	"github.com/rope-rewrite/rope-rewrite/customop"
	"github.com/rope-rewrite/rope-rewrite/onnx"
	"github.com/rope-rewrite/rope-rewrite/rewrite/fused"
	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/dim"
	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/ir"
	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/measure"
	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/site"
	"github.com/rope-rewrite/rope-rewrite/rope"
)

// Binding is what a lowered site reads and writes.
type Binding struct {
	Name                              string // of the op's node, and the stem of what is made beside it
	Query, Key, Value                 string
	Latent                            *measure.Latent
	queryParts, keyParts              []string // the values whose channels stand behind theirs; nil for most
	PastKey, PastValue                string
	Output, PresentKey, PresentValue  string
	Position, Mask                    *onnx.ValueInfo
	Documents, CacheLength            string // graph inputs, empty without
	LengthTracked                     *fused.CountedCache
	Bias                              *BiasSubgraph // the model's own bias, nil without
	Element                           onnx.DataType // of query, key and value
	QueryLayout, KeyLayout, ValLayout dim.Layout
	queryOrder, keyOrder              []int64 // see lifted
	QueryScales, KeyScales            []loweredScale
	OutLayout                         dim.Layout
}

func Bind(s *site.Sized, l *measure.Measured) (w Binding, err error) {
	w = Binding{
		Element: s.Graph.Element(s.Query.Boundary),
		Name:    "rope_rewrite/" + s.Output(),
		Query:   s.Query.Boundary, Key: s.Key.Boundary, Value: s.Value.Boundary,
		queryParts: s.Query.Boundaries()[1:], keyParts: s.Key.Boundaries()[1:],
		Output:   s.Output(),
		Position: l.Position, Mask: l.Mask, LengthTracked: s.LengthTracked,
		queryOrder: l.QueryOrder, keyOrder: l.KeyOrder,
		QueryLayout: l.Layouts.Query, KeyLayout: l.Layouts.Key, ValLayout: l.Layouts.Value, OutLayout: l.Layouts.Output,
	}
	if w.QueryScales, err = loweredScales(s.Query, s.Graph, s.Table, l.QueryNorms); err != nil {
		return w, err
	}
	if w.KeyScales, err = loweredScales(s.Key, s.Graph, s.Table, l.KeyNorms); err != nil {
		return w, err
	}
	w.PastKey, w.PastValue = s.Key.Past(), s.Value.Past()
	if c := s.Key.Update(); c != nil {
		w.PresentKey = c.Present
	}
	w.Latent = l.Latent
	if s.Value.Cache != nil {
		w.PresentValue = s.Value.Cache.Present
	}
	if l.Attention.Mask.Bias {
		w.Bias, err = writeBias(s, l)
	}
	return w, err
}

// Nodes writes the op for a value, and the nodes around it that bring its
// inputs into the op's form. All are in topological order.
func Nodes(w Binding, a rope.Attention) (nodes []*onnx.Node, constants []*onnx.Tensor, err error) {
	b := &ir.Builder{Stem: w.Name}
	op := customop.RotaryAttention{
		Query:        scaled(b, Ordered(b, joined(b, w.Query, w.queryParts, w.QueryLayout, "query"), w.queryOrder, "query"), w.QueryScales, w.Element, "query"),
		PastKey:      w.PastKey,
		PastValue:    w.PastValue,
		PresentKey:   w.PresentKey,
		PresentValue: w.PresentValue,
		CacheLength:  w.CacheLength,
		NumHeads:     int64(a.Heads),
		KVNumHeads:   int64(a.KVHeads),
		Scale:        float32(a.EffectiveScale()),
		Gain:         float32(a.Encoding.EffectiveGain()),
		RotaryOffset: int64(a.Encoding.Offset),
		Softcap:      float32(a.Softcap),
	}
	var kept []*onnx.Node // what the model's cache is made of
	if w.Latent != nil {
		kept = latent(b, w, &op)
	} else {
		op.Key = scaled(b, Ordered(b, joined(b, w.Key, w.keyParts, w.KeyLayout, "key"), w.keyOrder, "key"), w.KeyScales, w.Element, "key")
		op.Value = Canonical(b, w.Value, w.ValLayout, "value")
	}
	if a.Sinks != nil {
		op.SinkLogits = b.Floats("sink_logits", w.Element, a.Sinks)
	}
	if w.Bias != nil {
		op.AttentionBias = w.Bias.value
		b.Nodes, b.Constants = append(b.Nodes, w.Bias.nodes...), append(b.Constants, w.Bias.constants...)
	}
	if w.LengthTracked != nil {
		op.CacheLength, op.TotalLength = cacheLength(b, w), w.LengthTracked.Total
	}
	if w.Position != nil {
		op.PositionIDs = b.Int64s(w.Position)
	}
	if a.Drawn.Range > 0 {
		op.PositionIDs = drawn(b, a.Drawn, op.Query, op.PositionIDs)
	}
	masked(b, &op, w, a.Mask)
	if op.PositionIDs == "" && op.AttentionMask != "" && a.Chunk == 0 && limited(a.Bands) {
		op.PositionIDs = fromFirstReal(b, op.AttentionMask, op.Query, op.CacheLength)
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
	back := restore(b, w.Output, w.OutLayout)
	op.Output = back.from
	node, err := op.Node(w.Name)
	if err != nil {
		return nil, nil, err
	}
	b.Nodes = append(append(b.Nodes, convert(node)), kept...)
	b.Nodes = append(b.Nodes, back.nodes...)
	return b.Nodes, b.Constants, nil
}

// masked writes which keys a query sees.
func masked(b *ir.Builder, op *customop.RotaryAttention, w Binding, m rope.Mask) {
	op.Window, op.FirstKeys = m.Window, m.FirstKeys
	if m.Causal {
		op.Causal = 1
	}
	if m.Padding {
		op.AttentionMask = b.Int64s(w.Mask)
		if m.FirstKeys > 0 {
			op.FirstKeysShown = 1
		}
	}
	if m.Documents != rope.NoDocuments {
		op.DocumentIDs = w.Documents
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

// Canonical brings a hidden state into [batch, heads, length, channels].
func Canonical(b *ir.Builder, value string, ly dim.Layout, part string) string {
	if ly.All > 0 {
		return Canonical(b, unpacked(b, value, ly, part), dim.Layout{Axes: ly.Axes, Heads: ly.Heads, Channels: ly.Channels, Rows: ly.Rows}, part)
	}
	if slices.Contains(ly.Axes, dim.UnitAxis) {
		return Canonical(b, compact(b, value, &ly, part), ly, part)
	}
	switch {
	case ly.Canonical():
		return value
	case ly.Is(dim.BatchAxis, dim.RowAxis, dim.MergedAxis):
		split := b.Add("Reshape", []string{value, b.Constant(part+"_shape", 0, 0, ly.Heads, ly.Channels)}, b.Value(part+"_split"))
		return b.Add("Transpose", []string{split}, b.Value(part), onnx.IntsAttr("perm", 0, 2, 1, 3))
	case ly.Is(dim.BatchHeadAxis, dim.RowAxis, dim.ChannelAxis):
		// [batch·heads, length, channels]: the batch is what is left.
		width := b.Add("Shape", []string{value}, b.Value(part+"_dims"))
		rest := b.Add("Slice", []string{width, b.Constant(part+"_from", 1), b.Constant(part+"_to", 3)}, b.Value(part+"_rest"))
		shape := b.Add("Concat", []string{b.Constant(part+"_front", -1, ly.Heads), rest}, b.Value(part+"_shape"), onnx.IntAttr("axis", 0))
		return b.Add("Reshape", []string{value, shape}, b.Value(part))
	}
	perm := make([]int64, 4)
	for i, a := range ly.Axes {
		switch a {
		case dim.BatchAxis:
			perm[0] = int64(i)
		case dim.HeadAxis:
			perm[1] = int64(i)
		case dim.RowAxis:
			perm[2] = int64(i)
		case dim.ChannelAxis:
			perm[3] = int64(i)
		}
	}
	return b.Add("Transpose", []string{value}, b.Value(part), onnx.IntsAttr("perm", perm...))
}

// Ordered puts the channels of [batch, heads, length, channels] into another order.
func Ordered(b *ir.Builder, value string, order []int64, part string) string {
	if order == nil {
		return value
	}
	return b.Add("Gather", []string{value, b.Constant(part+"_order", order...)}, b.Value(part+"_ordered"), onnx.IntAttr("axis", 3))
}

// compact takes out dimensions of one element, which stand behind batch and rows,
// and makes the layout that of the result.
func compact(b *ir.Builder, value string, ly *dim.Layout, part string) string {
	var axes []dim.Axis
	var shape []int64
	for _, a := range ly.Axes {
		size := int64(0) // as it is
		switch a {
		case dim.UnitAxis:
			continue
		case dim.HeadAxis:
			size = ly.Heads
		case dim.ChannelAxis:
			size = ly.Channels
		case dim.MergedAxis:
			size = ly.Heads * ly.Channels
		}
		axes, shape = append(axes, a), append(shape, size)
	}
	ly.Axes = axes
	return b.Add("Reshape", []string{value, b.Constant(part+"_compact_shape", shape...)}, b.Value(part+"_compact"))
}

// unpacked takes the heads of one of query, key and value out of a value that
// holds others too.
func unpacked(b *ir.Builder, value string, ly dim.Layout, part string) string {
	for i, a := range ly.Axes {
		step := int64(1)
		switch a {
		case dim.MergedAxis:
			step = ly.Channels
		case dim.HeadAxis:
		default:
			continue
		}
		return b.Add("Slice", []string{value, b.Constant(part+"_begin", ly.First*step), b.Constant(part+"_end", (ly.First+ly.Heads)*step),
			b.Constant(part+"_axis", int64(i))}, b.Value(part+"_only"))
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
func restore(b *ir.Builder, output string, ly dim.Layout) tail {
	if ly.Canonical() {
		return tail{from: output}
	}
	inner := &ir.Builder{Stem: b.Stem}
	from := b.Value("output")
	switch {
	case ly.Is(dim.BatchHeadAxis, dim.RowAxis, dim.ChannelAxis):
		dims := inner.Add("Shape", []string{from}, b.Value("output_dims"))
		rest := inner.Add("Slice", []string{dims, inner.Constant("output_from", 2), inner.Constant("output_to", 4)}, b.Value("output_rest"))
		shape := inner.Add("Concat", []string{inner.Constant("output_front", -1), rest}, b.Value("output_shape"), onnx.IntAttr("axis", 0))
		inner.Add("Reshape", []string{from, shape}, output)
	case ly.Is(dim.BatchAxis, dim.RowAxis, dim.MergedAxis):
		swapped := inner.Add("Transpose", []string{from}, b.Value("output_rows"), onnx.IntsAttr("perm", 0, 2, 1, 3))
		inner.Add("Reshape", []string{swapped, inner.Constant("output_shape", 0, 0, -1)}, output)
	default:
		perm := make([]int64, 4)
		place := map[dim.Axis]int64{dim.BatchAxis: 0, dim.HeadAxis: 1, dim.RowAxis: 2, dim.ChannelAxis: 3}
		for i, a := range ly.Axes {
			perm[i] = place[a]
		}
		inner.Add("Transpose", []string{from}, output, onnx.IntsAttr("perm", perm...))
	}
	b.Constants = append(b.Constants, inner.Constants...)
	return tail{from: from, nodes: inner.Nodes}
}
