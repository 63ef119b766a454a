package plainonnx

import (
	"errors"
	"fmt"
	"math"

	"github.com/rope-rewrite/rope-rewrite/onnx"
	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/ir"
	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/lower"
	"github.com/rope-rewrite/rope-rewrite/rope"
)

// maskChange is a softmax of the model that is to see fewer keys.
type maskChange struct {
	softmax   *onnx.Node
	kind      onnx.DataType // element type of its scores
	mask      rope.Mask
	padding   *onnx.ValueInfo // the model's own padding mask [batch, total], nil without one
	documents string          // the graph input with document ids
}

// maskChange returns the change that gives a site the wanted mask, or an error where
// hiding keys from its own softmax does not give this mask.
func (s Site) maskChange() (maskChange, error) {
	have, want := s.Measured.Attention.Mask, s.Want.Mask
	n := s.Site.Softmax
	switch {
	case s.Scope.Where != "":
		return maskChange{}, fmt.Errorf("it stands in %s, where --target onnx changes no mask; leave it out", s.Scope.Where)
	case s.Scope.View.AsWritten(n) != n:
		return maskChange{}, fmt.Errorf("its softmax is inside %s (%s), whose mask --target onnx does not change; leave it out", ir.Label(s.Scope.View.AsWritten(n)), s.Scope.View.AsWritten(n).OpType)
	case s.Measured.Layouts.Sinks != 0:
		return maskChange{}, errors.New("its softmax has a column for sinks, whose mask --target onnx does not change; leave it out")
	case want.Restart:
		return maskChange{}, errors.New("positions that begin anew in each document need the op; leave --target onnx out")
	case want.FirstKeys > have.FirstKeys && have.Window > 0:
		return maskChange{}, fmt.Errorf("its own window of %d keys hides the first keys, and --target onnx can only hide more; leave it out", have.Window)
	}
	h := maskChange{softmax: n, kind: s.Scope.View.Element(n.Inputs[0]), mask: want, documents: s.Documents}
	if have.Padding {
		h.padding = s.Measured.Mask
	}
	return h, nil
}

// write puts the mask before the softmax. Keys that the model itself hides stay hidden. A
// query that sees no key gives all keys the same weight.
func (c maskChange) write(g *onnx.Graph) {
	scores := c.softmax.Inputs[0]
	b := &ir.Builder{Stem: "rope_rewrite/" + scores}
	lowest := map[onnx.DataType]float64{onnx.Float16: -65504, onnx.BFloat16: -0x1.fep127}[c.kind]
	if lowest == 0 {
		lowest = -math.MaxFloat32
	}
	b.Constants = append(b.Constants, ir.FloatTensor(b.Value("lowest"), c.kind, []int64{}, lowest))
	c.softmax.Inputs[0] = b.Add("Where", []string{visible(b, c, scores), scores, b.Value("lowest")}, b.Value("shown"))
	b.Into(g, c.softmax)
}

// visible computes which query sees which key, as a bool that broadcasts to the scores
// [batch, heads, length, total].
func visible(b *ir.Builder, c maskChange, scores string) string {
	dims := b.Add("Shape", []string{scores}, b.Value("dims"))
	length, total := b.Dim(dims, 2, "length"), b.Dim(dims, 3, "total")
	past := b.Add("Sub", []string{total, length}, b.Value("past"))
	var shown []string
	if m := c.mask; m.Causal || m.Window > 0 {
		keys := b.Add("Range", []string{b.Scalar("zero", 0), total, b.Scalar("one", 1)}, b.Value("keys")) // [total]
		rows := b.Add("Range", []string{past, total, b.Value("one")}, b.Value("rows"))
		queries := b.Add("Reshape", []string{rows, b.Constant("column", -1, 1)}, b.Value("queries")) // [length, 1]
		distance := b.Add("Sub", []string{queries, keys}, b.Value("distance"))
		if m.Causal {
			behind := b.Add("Less", []string{distance, b.Value("zero")}, b.Value("behind"))
			shown = append(shown, b.Add("Not", []string{behind}, b.Value("causal")))
		}
		if m.Window > 0 {
			size := b.Scalar("window_size", m.Window)
			near := b.Add("Less", []string{b.Add("Abs", []string{distance}, b.Value("far")), size}, b.Value("near"))
			if m.FirstKeys > 0 {
				near = b.Add("Or", []string{near, firstKeys(b, c, keys)}, b.Value("window"))
			}
			shown = append(shown, near)
		}
	}
	if c.mask.Documents != rope.NoDocuments {
		from := b.Add("Reshape", []string{past, b.Constant("list", 1)}, b.Value("past_list"))
		to := b.Add("Reshape", []string{total, b.Value("list")}, b.Value("total_list"))
		theirs := b.Add("Reshape", []string{c.documents, b.Constant("as_keys", 0, 1, 1, -1)}, b.Value("key_documents"))
		own := b.Add("Slice", []string{c.documents, from, to, b.Constant("tokens", 1)}, b.Value("own_documents"))
		mine := b.Add("Reshape", []string{own, b.Constant("as_queries", 0, 1, -1, 1)}, b.Value("query_documents"))
		same := b.Add("Equal", []string{mine, theirs}, b.Value("same_document"))
		reader := b.Add("Equal", []string{mine, b.Scalar("reader_id", -1)}, b.Value("reader"))
		sees := b.Add("Or", []string{same, reader}, b.Value("documents"))
		if c.mask.Documents == rope.AnchorDocument {
			anchor := b.Add("Equal", []string{theirs, b.Scalar("anchor_id", 0)}, b.Value("anchor"))
			sees = b.Add("Or", []string{sees, anchor}, b.Value("documents_anchor"))
		}
		shown = append(shown, sees)
	}
	all := shown[0]
	for i, v := range shown[1:] {
		all = b.Add("And", []string{all, v}, b.Value(fmt.Sprintf("visible_%d", i)))
	}
	return all
}

// firstKeys computes which keys are among the first of their row, padding not counted. How
// many these are is in the mask.
func firstKeys(b *ir.Builder, c maskChange, keys string) string {
	count := b.Scalar("first_keys", c.mask.FirstKeys)
	if c.padding == nil {
		return b.Add("Less", []string{keys, count}, b.Value("first"))
	}
	before := b.Add("CumSum", []string{lower.Real(b, b.Int64s(c.padding)), b.Value("one")}, b.Value("real_before"), onnx.IntAttr("exclusive", 1))
	rows := b.Add("Reshape", []string{before, b.Constant("as_first_keys", 0, 1, 1, -1)}, b.Value("rows_before"))
	return b.Add("Less", []string{rows, count}, b.Value("first"))
}
