package lower

import (
	"cmp"

	"github.com/rope-rewrite/rope-rewrite/customop"
	"github.com/rope-rewrite/rope-rewrite/onnx"
	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/dim"
	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/fused"
	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/ir"
	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/measure"
	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/positions"
	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/site"
	"github.com/rope-rewrite/rope-rewrite/rope"
)

// Binding says which values the op of one site reads and gives, and in which layouts.
type Binding struct {
	Name    string        // of the op's node; the names of most other new nodes begin with it
	Element onnx.DataType // of query, key and value

	Query, Key, Value    string
	queryParts, keyParts []string // values whose channels are concatenated after those of Query and Key; nil for most
	PastKey, PastValue   string

	Output, PresentKey, PresentValue string

	Precision string // the op's attribute; "" is its default, or that of the op that is there

	Position, Mask *onnx.ValueInfo     // graph inputs of the model; nil without
	Computed       *positions.Computed // positions that the graph computes itself; nil for most, and where the op counts tokens
	LengthTracked  *fused.LengthTrackedCache
	Slots          *measure.Slots // how the model's own buffers are written; nil where its cache grows
	Bias           *Bias          // the model's own bias on the scores; nil without
	inOrder        bool           // see measure.Measured

	ownLengths rope.LengthDependent // of a model that itself takes other frequencies in calls that reach farther; empty for most

	QueryLayout, KeyLayout, ValueLayout, OutputLayout dim.Layout

	queryOrder, keyOrder   []int64         // see measure.Measured
	QueryScales, KeyScales []loweredScale  // factors per token
	Latent                 *measure.Latent // of latent attention; nil for others

	written *customop.RotaryAttention // the inputs and outputs of an op that is in the model already; nil for most
	turning *turning                  // of a rotation without its attention, which has no more than query, key and positions; nil for others
}

// ExtraInputs are values that the op reads beside those of the model, "" without.
type ExtraInputs struct {
	Documents   string // document ids, int64 [batch, past + length]
	CacheLength string // tokens that a cache of fixed capacity holds, int32 [batch]
	CacheType   string // the op's attribute cache_type; "" leaves the model's type
	CacheRing   bool   // the cache of fixed capacity is a ring
}

// ScaleSuffix ends the names of the inputs and outputs with the scales of a cache of int8. They begin
// with that of the cache.
const ScaleSuffix = "_scale"

// Bind returns the binding of a measured site. It returns an error where the model's bias
// or a factor per token cannot be written.
func Bind(s *site.Sized, m *measure.Measured) (binding Binding, err error) {
	if m.Rotated != nil {
		return bindRotation(s, m)
	}
	binding = Binding{
		Element: s.Graph.Element(s.Query.Boundary),
		Name:    "rope_rewrite/" + s.Output(),
		Query:   s.Query.Boundary, Key: s.Key.Boundary, Value: s.Value.Boundary,
		queryParts: s.Query.Boundaries()[1:], keyParts: s.Key.Boundaries()[1:],
		Output:   s.Output(),
		Position: m.Position, inOrder: m.InOrder, Mask: m.Mask, LengthTracked: s.LengthTracked, Slots: m.Slots,
		queryOrder: m.QueryOrder, keyOrder: m.KeyOrder,
		QueryLayout: m.Layouts.Query, KeyLayout: m.Layouts.Key, ValueLayout: m.Layouts.Value, OutputLayout: m.Layouts.Output,
	}
	if binding.QueryScales, err = loweredScales(s.Query, s.Graph, s.Table, m.QueryNorms); err != nil {
		return binding, err
	}
	if binding.KeyScales, err = loweredScales(s.Key, s.Graph, s.Table, m.KeyNorms); err != nil {
		return binding, err
	}
	if !m.Rebuilt() {
		binding.Computed = m.Computed
	}
	if s.LengthTracked == nil {
		binding.ownLengths = m.Attention.Encoding.LengthDependent
	}
	binding.PastKey, binding.PastValue = s.Key.Past(), s.Value.Past()
	if c := s.Key.Update(); c != nil {
		binding.PresentKey = c.Present
	}
	binding.Latent = m.Latent
	if s.Value.Cache != nil {
		binding.PresentValue = s.Value.Cache.Present
	}
	if m.Attention.Mask.Bias {
		binding.Bias, err = writeBias(s, m)
	}
	return binding, err
}

// InModel returns the binding of the op as it is in the model, where it also gives what
// its bias may be computed from.
func (binding Binding) InModel(s *site.Sized) (_ Binding, err error) {
	if binding.Bias != nil {
		binding.Bias, err = binding.Bias.apart(s)
	}
	return binding, err
}

// Nodes returns the op that computes the attention a, and the nodes around it that bring
// inputs and output to the layouts of the op and of the model. They are in topological
// order. For a rotation without its attention the op is Rotary.
func Nodes(binding Binding, a rope.Attention, extra ExtraInputs) (nodes []*onnx.Node, constants []*onnx.Tensor, err error) {
	if binding.turning != nil {
		return rotaryNodes(binding, a.Encoding)
	}
	b := &ir.Builder{Stem: binding.Name}
	var op customop.RotaryAttention
	var after []*onnx.Node // the op: they give the model's own cache and output
	if binding.written != nil {
		op = *binding.written
	} else {
		op, after = connect(b, binding, a)
	}
	var tokens *counted
	if binding.countsPadding(a) {
		tokens = count(b, binding) // before what a method adds, so that a later edit finds it there
	}
	if binding.Computed != nil && a.Drawn.Range > 0 {
		op.PositionIDs = "" // those drawn stand in the order of indices, whatever number a row begins with
	}
	if binding.inOrder && ofDistances(a) {
		op.PositionIDs = "" // a map needs positions that follow one another in the whole row, as places do
	}
	setValue(b, &op, a, extra)
	if tokens != nil {
		op.PositionIDs = tokens.byRealTokens(b, op.PositionIDs)
	}
	op.Precision = cmp.Or(binding.Precision, op.Precision)
	node, err := op.Node(binding.Name)
	if err != nil {
		return nil, nil, err
	}
	b.Nodes = append(append(b.Nodes, ir.FromCustom(node)), after...)
	return b.Nodes, b.Constants, nil
}

// connect returns the op with its inputs and outputs, as far as these do not depend on
// what a method makes of the attention, and the nodes after it.
func connect(b *ir.Builder, binding Binding, a rope.Attention) (op customop.RotaryAttention, after []*onnx.Node) {
	op = customop.RotaryAttention{
		Query:        scaled(b, Ordered(b, joined(b, binding.Query, binding.queryParts, binding.QueryLayout, "query"), binding.queryOrder, "query"), binding.QueryScales, binding.Element, "query"),
		PastKey:      binding.PastKey,
		PastValue:    binding.PastValue,
		PresentKey:   binding.PresentKey,
		PresentValue: binding.PresentValue,
	}
	if binding.Latent != nil {
		after = latentKeys(b, binding, &op)
	} else {
		op.Key = scaled(b, Ordered(b, joined(b, binding.Key, binding.keyParts, binding.KeyLayout, "key"), binding.keyOrder, "key"), binding.KeyScales, binding.Element, "key")
		op.Value = Canonical(b, binding.Value, binding.ValueLayout, "value")
	}
	if a.Sinks != nil {
		op.SinkLogits = b.Floats("sink_logits", binding.Element, a.Sinks)
	}
	if binding.Bias != nil {
		op.AttentionBias = binding.Bias.value
		b.Nodes, b.Constants = append(b.Nodes, binding.Bias.Nodes...), append(b.Constants, binding.Bias.Constants...)
	}
	if binding.LengthTracked != nil {
		op.CacheLength, op.TotalLength = cacheLength(b, binding), binding.LengthTracked.Total
	}
	if binding.Slots != nil {
		op.CacheLength = slotLength(b, binding)
	}
	op.PositionIDs = binding.positions(b)
	if a.Mask.Padding {
		op.AttentionMask = b.Int64s(binding.Mask)
	}
	restored := restore(b, binding.Output, binding.OutputLayout, "output")
	op.Output = restored.from
	return op, append(after, restored.nodes...)
}

// setValue sets what the attention a says: all attributes, and the inputs that depend on
// its position map and on its mask.
func setValue(b *ir.Builder, op *customop.RotaryAttention, a rope.Attention, extra ExtraInputs) {
	op.NumHeads, op.KVNumHeads = int64(a.Heads), int64(a.KVHeads)
	op.Scale, op.Softcap = float32(a.EffectiveScale()), float32(a.Softcap)
	setEncoding(op, a.Encoding)
	op.CacheLength = cmp.Or(extra.CacheLength, op.CacheLength)
	op.CacheRing = dim.OneIf(extra.CacheRing)
	if op.CacheType = extra.CacheType; extra.CacheType == "int8" {
		op.PastKeyScale, op.PastValueScale = op.PastKey+ScaleSuffix, op.PastValue+ScaleSuffix
		op.PresentKeyScale, op.PresentValueScale = op.PresentKey+ScaleSuffix, op.PresentValue+ScaleSuffix
	}
	if a.Drawn.Range > 0 {
		op.PositionIDs = drawnPositions(b, a.Drawn, op.Query, op.PositionIDs)
	}
	setMask(op, extra.Documents, a.Mask)
	setDistance(op, a.Distance)
	if a.Cross {
		op.Cross = 1
	}
	if a.Chunk == 0 && limited(a.Bands) { // by the places in a text, whatever positions its first token has
		op.PositionIDs = ""
		if op.AttentionMask != "" {
			op.PositionIDs = fromFirstReal(b, op.AttentionMask, op.Query, op.CacheLength)
		}
	}
	if a.Cache == rope.Raw {
		op.Cache = "raw"
	}
	op.QueryFactors, op.KeyFactors = narrow(a.QueryFactors), narrow(a.KeyFactors)
	lowerPositions(op, a)
}

// setEncoding sets how query and key are rotated. Attributes that older libraries of the op do not know
// are left out where they have their default.
func setEncoding(op *customop.RotaryAttention, e rope.Encoding) {
	op.Frequencies, op.Gain, op.RotaryOffset = narrow(e.Frequencies), float32(e.EffectiveGain()), int64(e.Offset)
	if e.Layout == rope.Interleaved {
		op.RotaryLayout = "interleaved"
	}
	op.ExactAngles = dim.OneIf(e.ExactAngles)
	r := e.LengthDependent
	op.TrainedLength, op.LongFrequencies, op.DynamicNtk, op.DynamicLinear = r.Trained, narrow(r.Long), float32(r.NTK), dim.OneIf(r.Linear)
	for _, axis := range e.Axes {
		op.PositionAxes = append(op.PositionAxes, int64(axis))
	}
}

func narrow(list []float64) (out []float32) {
	for _, x := range list {
		out = append(out, float32(x))
	}
	return out
}

// setDistance sets the bias by distance.
func setDistance(op *customop.RotaryAttention, d rope.Distance) {
	op.DistanceSlopes, op.DistanceStarts, op.DistanceBiases = narrow(d.Slopes), d.Starts, nil
	for _, list := range d.Biases {
		op.DistanceBiases = append(op.DistanceBiases, narrow(list)...)
	}
	op.DistanceShown = dim.OneIf(d.Shown)
}

// setMask sets which keys a query sees. documents is the value with document ids.
func setMask(op *customop.RotaryAttention, documents string, m rope.Mask) {
	op.Window, op.FirstKeys = m.Window, m.FirstKeys
	if m.Causal {
		op.Causal = 1
	}
	if m.Padding && m.FirstKeys > 0 {
		op.FirstKeysShown = 1
	}
	if m.Documents != rope.NoDocuments {
		op.DocumentIDs = documents
		op.DocumentMask = "intra"
		if m.Documents == rope.AnchorDocument {
			op.DocumentMask = "anchor"
		}
	}
	if m.Restart {
		op.DocumentRestart, op.DocumentStart = 1, m.Start
	}
}
