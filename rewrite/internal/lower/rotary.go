package lower

import (
	"fmt"
	"math"
	"slices"

	"github.com/rope-rewrite/rope-rewrite/customop"
	"github.com/rope-rewrite/rope-rewrite/internal/short"
	"github.com/rope-rewrite/rope-rewrite/onnx"
	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/dim"
	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/ir"
	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/measure"
	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/site"
	"github.com/rope-rewrite/rope-rewrite/rope"
)

// turning is what Binding has for a rotation without its attention.
type turning struct {
	rotated  [2]string        // query and key behind the rotation
	layouts  [2]dim.Layout    // of these
	factors  [2]float64       // on all their channels, beside the encoding's gain
	pastRows int64            // which dimension of PastKey counts tokens
	written  *customop.Rotary // the inputs and outputs of an op that is in the model already; nil for most
}

// bindRotation returns the binding of a rotation without its attention. It returns an error where the
// model's layout of query or key cannot be written.
func bindRotation(s *site.Sized, m *measure.Measured) (Binding, error) {
	results := s.Results()
	t := &turning{
		rotated: [2]string{results[0], results[1]},
		layouts: [2]dim.Layout{m.Layouts.QueryOperand, m.Layouts.KeyCached},
		factors: [2]float64{m.Rotated.Query, m.Rotated.Key},
	}
	b := Binding{
		Name: "rope_rewrite/" + s.Output(), Element: s.Graph.Element(s.Query.Boundary),
		Query: s.Query.Boundary, Key: s.Key.Boundary, PastKey: s.Key.Past(),
		queryParts: s.Query.Boundaries()[1:], keyParts: s.Key.Boundaries()[1:],
		queryOrder: m.QueryOrder, keyOrder: m.KeyOrder,
		QueryLayout: m.Layouts.Query, KeyLayout: m.Layouts.Key,
		Position: m.Position, Computed: m.Computed, turning: t,
	}
	for i, ly := range t.layouts {
		if slices.Contains(ly.Axes, dim.UnitAxis) {
			return b, fmt.Errorf("%q has a dimension of one element beside heads and channels", short.Name(t.rotated[i]))
		}
	}
	if b.PastKey != "" && m.Position == nil && m.Computed == nil {
		past, err := dim.LayoutOf(s.Table.Dims[b.PastKey], s.Alone)
		if err != nil {
			return b, fmt.Errorf("the past keys %q have an unexpected shape: %w", short.Name(b.PastKey), err)
		}
		t.pastRows = int64(slices.Index(past.Axes, dim.RowAxis))
	}
	return b, nil
}

// formats are the orders of dimensions that the op Rotary takes, the usual one of attention first.
var formats = []struct {
	name string
	axes []dim.Axis
}{
	{"bhsd", []dim.Axis{dim.BatchAxis, dim.HeadAxis, dim.RowAxis, dim.ChannelAxis}},
	{"bshd", []dim.Axis{dim.BatchAxis, dim.RowAxis, dim.HeadAxis, dim.ChannelAxis}},
	{"sbhd", []dim.Axis{dim.RowAxis, dim.BatchAxis, dim.HeadAxis, dim.ChannelAxis}},
}

// rotaryNodes returns the op Rotary with an encoding, and the nodes around it that bring query and key to
// a layout of the op and back to those of the model. They are in topological order.
func rotaryNodes(binding Binding, e rope.Encoding) (nodes []*onnx.Node, constants []*onnx.Tensor, err error) {
	b := &ir.Builder{Stem: binding.Name}
	t := binding.turning
	var op customop.Rotary
	var after []*onnx.Node
	if t.written != nil {
		op = *t.written
	} else {
		op.TensorFormat = binding.format()
		op.Query, op.Key = binding.Query, binding.Key
		if op.TensorFormat == "" {
			op.TensorFormat = formats[0].name
			op.Query = Ordered(b, joined(b, binding.Query, binding.queryParts, binding.QueryLayout, "query"), binding.queryOrder, "query")
			op.Key = Ordered(b, joined(b, binding.Key, binding.keyParts, binding.KeyLayout, "key"), binding.keyOrder, "key")
		}
		if op.PositionIDs = binding.positions(b); op.PositionIDs == "" && binding.PastKey != "" {
			dims := b.AddAs("past_dims", "Shape", []string{binding.PastKey})
			past := b.AddAs("past", "Slice", []string{dims, b.Constant("past_from", t.pastRows), b.Constant("past_to", t.pastRows+1)})
			op.SeqlenOffsets = b.AddAs("offset", "Cast", []string{past}, onnx.IntAttr("to", int64(onnx.Int32)))
		}
		outputs := []*string{&op.RotatedQuery, &op.RotatedKey}
		for i, part := range []string{"rotated_query", "rotated_key"} {
			from, tail := binding.behind(b, i, part, op.TensorFormat)
			*outputs[i], after = from, append(after, tail...)
		}
	}
	var turned customop.RotaryAttention
	setEncoding(&turned, e)
	op.SetRotation(turned)
	node, err := op.Node(binding.Name)
	if err != nil {
		return nil, nil, err
	}
	b.Nodes = append(append(b.Nodes, ir.FromCustom(node)), after...)
	return b.Nodes, b.Constants, nil
}

// format returns the order of dimensions that query and key have before and behind the rotation; "" where
// these differ, or where the model's channels have to be rearranged.
func (binding Binding) format() string {
	t := binding.turning
	if binding.queryOrder != nil || binding.keyOrder != nil {
		return ""
	}
	for _, f := range formats {
		same := true
		for _, ly := range []dim.Layout{binding.QueryLayout, binding.KeyLayout, t.layouts[0], t.layouts[1]} {
			same = same && ly.Is(f.axes...) && ly.Parts == nil && ly.All == 0
		}
		if same {
			return f.name
		}
	}
	return ""
}

// behind returns the op's output number i, and the nodes that make the model's own value of it.
func (binding Binding) behind(b *ir.Builder, i int, part, format string) (from string, nodes []*onnx.Node) {
	t := binding.turning
	scaled := math.Abs(t.factors[i]-1) > 16*ir.Float32eps
	last := t.rotated[i]
	if scaled {
		last = b.Value(part + "_times")
	}
	if from = last; format != binding.format() {
		restored := restore(b, last, t.layouts[i], part)
		from, nodes = restored.from, restored.nodes
	}
	if scaled {
		inner := &ir.Builder{Stem: b.Stem}
		inner.AddTo(t.rotated[i], "Mul", []string{last, inner.Floats(part+"_factor", binding.Element, []float64{t.factors[i]})})
		b.Constants, nodes = append(b.Constants, inner.Constants...), append(nodes, inner.Nodes...)
	}
	return from, nodes
}
