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
func (s Layer) maskChange() (maskChange, error) {
	have, want := s.Measured.Attention.Mask, s.Want.Mask
	n := s.Site.Softmax
	switch {
	case s.Scope.Where != "":
		return maskChange{}, fmt.Errorf("its mask is in %s", s.Scope.Where)
	case s.Scope.View.AsWritten(n) != n:
		return maskChange{}, fmt.Errorf("its softmax is inside %s (%s)", ir.Label(s.Scope.View.AsWritten(n)), s.Scope.View.AsWritten(n).OpType)
	case s.Measured.Layouts.Softmax.Folded:
		return maskChange{}, errors.New("its softmax has one dimension for batch and heads")
	case s.Measured.Layouts.Sinks != 0:
		return maskChange{}, errors.New("its softmax has a column for sinks")
	case want.Restart:
		return maskChange{}, errors.New("positions restart in each document")
	case want.FirstKeys > have.FirstKeys && have.Window > 0:
		return maskChange{}, fmt.Errorf("its own window of %d keys hides the first keys, and its own nodes can only hide more keys", have.Window)
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
	c.softmax.Inputs[0] = b.AddAs("shown", "Where", []string{visible(b, c, scores), scores, b.Value("lowest")})
	b.Into(g, c.softmax)
}

// visible computes which query sees which key, as a bool that broadcasts to the scores
// [batch, heads, length, total].
func visible(b *ir.Builder, c maskChange, scores string) string {
	dims := b.AddAs("dims", "Shape", []string{scores})
	length, total := b.NamedElement("length", dims, 2), b.NamedElement("total", dims, 3)
	past := b.AddAs("past", "Sub", []string{total, length})
	var shown []string
	if m := c.mask; m.Causal || m.Window > 0 {
		keys := b.AddAs("keys", "Range", []string{b.Scalar("zero", 0), total, b.Scalar("one", 1)}) // [total]
		rows := b.AddAs("rows", "Range", []string{past, total, b.Value("one")})
		queries := b.AddAs("queries", "Reshape", []string{rows, b.Constant("column", -1, 1)}) // [length, 1]
		distance := b.AddAs("distance", "Sub", []string{queries, keys})
		if m.Causal {
			behind := b.AddAs("behind", "Less", []string{distance, b.Value("zero")})
			shown = append(shown, b.AddAs("causal", "Not", []string{behind}))
		}
		if m.Window > 0 {
			size := b.Scalar("window_size", m.Window)
			near := b.AddAs("near", "Less", []string{b.AddAs("far", "Abs", []string{distance}), size})
			if m.FirstKeys > 0 {
				near = b.AddAs("window", "Or", []string{near, firstKeys(b, c, keys)})
			}
			shown = append(shown, near)
		}
	}
	if c.mask.Documents != rope.NoDocuments {
		from := b.AddAs("past_list", "Reshape", []string{past, b.Constant("list", 1)})
		to := b.AddAs("total_list", "Reshape", []string{total, b.Value("list")})
		theirs := b.AddAs("key_documents", "Reshape", []string{c.documents, b.Constant("as_keys", 0, 1, 1, -1)})
		own := b.AddAs("own_documents", "Slice", []string{c.documents, from, to, b.Constant("tokens", 1)})
		mine := b.AddAs("query_documents", "Reshape", []string{own, b.Constant("as_queries", 0, 1, -1, 1)})
		same := b.AddAs("same_document", "Equal", []string{mine, theirs})
		reader := b.AddAs("reader", "Equal", []string{mine, b.Scalar("reader_id", -1)})
		sees := b.AddAs("documents", "Or", []string{same, reader})
		if c.mask.Documents == rope.AnchorDocument {
			anchor := b.AddAs("anchor", "Equal", []string{theirs, b.Scalar("anchor_id", 0)})
			sees = b.AddAs("documents_anchor", "Or", []string{sees, anchor})
		}
		shown = append(shown, sees)
	}
	all := shown[0]
	for i, v := range shown[1:] {
		all = b.AddAs(fmt.Sprintf("visible_%d", i), "And", []string{all, v})
	}
	return all
}

// firstKeys computes which keys are among the first of their row, padding not counted. How
// many these are is in the mask.
func firstKeys(b *ir.Builder, c maskChange, keys string) string {
	count := b.Scalar("first_keys", c.mask.FirstKeys)
	if c.padding == nil {
		return b.AddAs("first", "Less", []string{keys, count})
	}
	before := b.AddAs("real_before", "CumSum", []string{lower.Real(b, b.Int64s(c.padding)), b.Value("one")}, onnx.IntAttr("exclusive", 1))
	rows := b.AddAs("rows_before", "Reshape", []string{before, b.Constant("as_first_keys", 0, 1, 1, -1)})
	return b.AddAs("first", "Less", []string{rows, count})
}
