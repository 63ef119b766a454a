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

// hiding is a softmax of the model that is to see fewer keys.
type hiding struct {
	softmax   *onnx.Node
	kind      onnx.DataType // of its scores
	mask      rope.Mask
	padding   *onnx.ValueInfo // the model's own mask [batch, total], nil without one
	documents string          // the graph input with document ids
}

// hiding says what has to be hidden before a site's own softmax, or why that
// does not give the mask that is wanted.
func (r Site) hiding() (hiding, error) {
	have, want := r.Measured.Attention.Mask, r.Want.Mask
	n := r.Site.Softmax
	switch {
	case r.Scope.Where != "":
		return hiding{}, fmt.Errorf("it stands in %s, where --target onnx changes no mask; leave it out", r.Scope.Where)
	case r.Scope.View.AsWritten(n) != n:
		return hiding{}, fmt.Errorf("its softmax is inside %s (%s), whose mask --target onnx does not change; leave it out", ir.Label(r.Scope.View.AsWritten(n)), r.Scope.View.AsWritten(n).OpType)
	case r.Measured.Layouts.Sinks != 0:
		return hiding{}, errors.New("its softmax has a column for sinks, whose mask --target onnx does not change; leave it out")
	case want.Restart:
		return hiding{}, errors.New("positions that begin anew in each document need the op; leave --target onnx out")
	case want.FirstKeys > have.FirstKeys && have.Window > 0:
		return hiding{}, fmt.Errorf("its own window of %d keys hides the first keys, and --target onnx can only hide more; leave it out", have.Window)
	}
	h := hiding{softmax: n, kind: r.Scope.View.Element(n.Inputs[0]), mask: want, documents: r.Documents}
	if have.Padding {
		h.padding = r.Measured.Mask
	}
	return h, nil
}

// write puts the mask in front of the softmax. What the model hides by itself
// stays hidden; a row that sees nothing weighs all keys alike.
func (h hiding) write(g *onnx.Graph) {
	scores := h.softmax.Inputs[0]
	b := &ir.Builder{Stem: "rope_rewrite/" + scores}
	lowest := map[onnx.DataType]float64{onnx.Float16: -65504, onnx.BFloat16: -0x1.fep127}[h.kind]
	if lowest == 0 {
		lowest = -math.MaxFloat32
	}
	b.Constants = append(b.Constants, ir.FloatTensor(b.Value("lowest"), h.kind, []int64{}, lowest))
	h.softmax.Inputs[0] = b.Add("Where", []string{visible(b, h, scores), scores, b.Value("lowest")}, b.Value("shown"))
	b.Into(g, h.softmax)
}

// visible makes who sees whom, for scores [batch, heads, length, total].
func visible(b *ir.Builder, h hiding, scores string) string {
	dims := b.Add("Shape", []string{scores}, b.Value("dims"))
	length, total := b.Dim(dims, 2, "length"), b.Dim(dims, 3, "total")
	past := b.Add("Sub", []string{total, length}, b.Value("past"))
	var shown []string
	if m := h.mask; m.Causal || m.Window > 0 {
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
				near = b.Add("Or", []string{near, firstKeys(b, h, keys)}, b.Value("window"))
			}
			shown = append(shown, near)
		}
	}
	if h.mask.Documents != rope.NoDocuments {
		from := b.Add("Reshape", []string{past, b.Constant("list", 1)}, b.Value("past_list"))
		to := b.Add("Reshape", []string{total, b.Value("list")}, b.Value("total_list"))
		theirs := b.Add("Reshape", []string{h.documents, b.Constant("as_keys", 0, 1, 1, -1)}, b.Value("key_documents"))
		own := b.Add("Slice", []string{h.documents, from, to, b.Constant("tokens", 1)}, b.Value("own_documents"))
		mine := b.Add("Reshape", []string{own, b.Constant("as_queries", 0, 1, -1, 1)}, b.Value("query_documents"))
		same := b.Add("Equal", []string{mine, theirs}, b.Value("same_document"))
		reader := b.Add("Equal", []string{mine, b.Scalar("reader_id", -1)}, b.Value("reader"))
		sees := b.Add("Or", []string{same, reader}, b.Value("documents"))
		if h.mask.Documents == rope.AnchorDocument {
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

// firstKeys says of which keys fewer than the mask's first keys stand before
// them in their row, padding not counted.
func firstKeys(b *ir.Builder, h hiding, keys string) string {
	count := b.Scalar("first_keys", h.mask.FirstKeys)
	if h.padding == nil {
		return b.Add("Less", []string{keys, count}, b.Value("first"))
	}
	before := b.Add("CumSum", []string{lower.Real(b, b.Int64s(h.padding)), b.Value("one")}, b.Value("real_before"), onnx.IntAttr("exclusive", 1))
	rows := b.Add("Reshape", []string{before, b.Constant("as_first_keys", 0, 1, 1, -1)}, b.Value("rows_before"))
	return b.Add("Less", []string{rows, count}, b.Value("first"))
}
