package rewrite

import (
	"errors"
	"fmt"
	"math"

	"github.com/rope-rewrite/rope-rewrite/onnx"
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
func (r retabled) hiding() (hiding, error) {
	have, want := r.lifted.attention.Mask, r.want.Mask
	n := r.site.softmax
	switch {
	case r.scope.where != "":
		return hiding{}, fmt.Errorf("it stands in %s, where --target onnx changes no mask; leave it out", r.scope.where)
	case r.scope.view.asWritten(n) != n:
		return hiding{}, fmt.Errorf("its softmax is inside %s (%s), whose mask --target onnx does not change; leave it out", label(r.scope.view.asWritten(n)), r.scope.view.asWritten(n).OpType)
	case r.lifted.layouts.sinks != 0:
		return hiding{}, errors.New("its softmax has a column for sinks, whose mask --target onnx does not change; leave it out")
	case want.Restart:
		return hiding{}, errors.New("positions that begin anew in each document need the op; leave --target onnx out")
	case want.FirstKeys > have.FirstKeys && have.Window > 0:
		return hiding{}, fmt.Errorf("its own window of %d keys hides the first keys, and --target onnx can only hide more; leave it out", have.Window)
	}
	h := hiding{softmax: n, kind: r.scope.view.element(n.Inputs[0]), mask: want, documents: r.documents}
	if have.Padding {
		h.padding = r.lifted.mask
	}
	return h, nil
}

// write puts the mask in front of the softmax. What the model hides by itself
// stays hidden; a row that sees nothing weighs all keys alike.
func (h hiding) write(g *onnx.Graph) {
	scores := h.softmax.Inputs[0]
	b := &builder{stem: "rope_rewrite/" + scores}
	lowest := map[onnx.DataType]float64{onnx.Float16: -65504, onnx.BFloat16: -0x1.fep127}[h.kind]
	if lowest == 0 {
		lowest = -math.MaxFloat32
	}
	b.constants = append(b.constants, floatTensor(b.value("lowest"), h.kind, []int64{}, lowest))
	h.softmax.Inputs[0] = b.add("Where", []string{b.visible(h, scores), scores, b.value("lowest")}, b.value("shown"))
	b.into(g, h.softmax)
}

// visible makes who sees whom, for scores [batch, heads, length, total].
func (b *builder) visible(h hiding, scores string) string {
	dims := b.add("Shape", []string{scores}, b.value("dims"))
	length, total := b.dim(dims, 2, "length"), b.dim(dims, 3, "total")
	past := b.add("Sub", []string{total, length}, b.value("past"))
	var shown []string
	if m := h.mask; m.Causal || m.Window > 0 {
		keys := b.add("Range", []string{b.scalar("zero", 0), total, b.scalar("one", 1)}, b.value("keys")) // [total]
		rows := b.add("Range", []string{past, total, b.value("one")}, b.value("rows"))
		queries := b.add("Reshape", []string{rows, b.constant("column", -1, 1)}, b.value("queries")) // [length, 1]
		distance := b.add("Sub", []string{queries, keys}, b.value("distance"))
		if m.Causal {
			behind := b.add("Less", []string{distance, b.value("zero")}, b.value("behind"))
			shown = append(shown, b.add("Not", []string{behind}, b.value("causal")))
		}
		if m.Window > 0 {
			size := b.scalar("window_size", m.Window)
			near := b.add("Less", []string{b.add("Abs", []string{distance}, b.value("far")), size}, b.value("near"))
			if m.FirstKeys > 0 {
				near = b.add("Or", []string{near, b.firstKeys(h, keys)}, b.value("window"))
			}
			shown = append(shown, near)
		}
	}
	if h.mask.Documents != rope.NoDocuments {
		from := b.add("Reshape", []string{past, b.constant("list", 1)}, b.value("past_list"))
		to := b.add("Reshape", []string{total, b.value("list")}, b.value("total_list"))
		theirs := b.add("Reshape", []string{h.documents, b.constant("as_keys", 0, 1, 1, -1)}, b.value("key_documents"))
		own := b.add("Slice", []string{h.documents, from, to, b.constant("tokens", 1)}, b.value("own_documents"))
		mine := b.add("Reshape", []string{own, b.constant("as_queries", 0, 1, -1, 1)}, b.value("query_documents"))
		same := b.add("Equal", []string{mine, theirs}, b.value("same_document"))
		reader := b.add("Equal", []string{mine, b.scalar("reader_id", -1)}, b.value("reader"))
		sees := b.add("Or", []string{same, reader}, b.value("documents"))
		if h.mask.Documents == rope.AnchorDocument {
			anchor := b.add("Equal", []string{theirs, b.scalar("anchor_id", 0)}, b.value("anchor"))
			sees = b.add("Or", []string{sees, anchor}, b.value("documents_anchor"))
		}
		shown = append(shown, sees)
	}
	all := shown[0]
	for i, v := range shown[1:] {
		all = b.add("And", []string{all, v}, b.value(fmt.Sprintf("visible_%d", i)))
	}
	return all
}

// firstKeys says of which keys fewer than the mask's first keys stand before
// them in their row, padding not counted.
func (b *builder) firstKeys(h hiding, keys string) string {
	count := b.scalar("first_keys", h.mask.FirstKeys)
	if h.padding == nil {
		return b.add("Less", []string{keys, count}, b.value("first"))
	}
	before := b.add("CumSum", []string{b.real(b.int64s(h.padding)), b.value("one")}, b.value("real_before"), onnx.IntAttr("exclusive", 1))
	rows := b.add("Reshape", []string{before, b.constant("as_first_keys", 0, 1, 1, -1)}, b.value("rows_before"))
	return b.add("Less", []string{rows, count}, b.value("first"))
}
