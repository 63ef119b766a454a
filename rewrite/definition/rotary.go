package definition

import (
	"cmp"
	"slices"

	"github.com/rope-rewrite/rope-rewrite/customop"
	"github.com/rope-rewrite/rope-rewrite/onnx"
	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/ir"
)

// rotaryForm is what decides about the structure of a body of Rotary, beside the rotation.
type rotaryForm struct {
	format  string // tensor_format, "" for an attention
	inverse bool
}

// The inputs of Rotary by their place.
const (
	rotaryQuery = iota
	rotaryKey
	rotaryPositions
	rotaryBounds
	rotaryOffsets
	rotaryReach
)

func isRotary(n *onnx.Node) bool { return slices.Contains(customop.RotarySpec.OpTypes(), n.OpType) }

// ReadRotary reads a node of Rotary, under any of its names.
func ReadRotary(n *onnx.Node) (customop.Rotary, error) {
	return customop.ParseRotary(ir.ToCustom(n))
}

// readRotary reads a node as an attention with the same rotation, and its form.
func readRotary(n *onnx.Node) (customop.RotaryAttention, form, error) {
	op, err := ReadRotary(n)
	if err != nil {
		return customop.RotaryAttention{}, form{}, err
	}
	turning := op.Rotation()
	f := formOf(n, turning, false)
	f.rotary = rotaryForm{format: cmp.Or(op.TensorFormat, "bshd"), inverse: op.Inverse == 1}
	return turning, f, nil
}

// spec is the specification of the form's op.
func (f form) spec() customop.Spec {
	if f.rotary.format != "" {
		return customop.RotarySpec
	}
	return customop.RotaryAttentionSpec
}

// rotary writes the body of Rotary.
func (w *body) rotary() {
	inputs := customop.RotarySpec.Inputs
	for _, v := range slices.Concat(inputs, customop.RotarySpec.Outputs) {
		w.made[v.Name] = 1
	}
	w.names.query = inputs[rotaryQuery].Name
	if w.given(rotaryReach) {
		w.names.total = inputs[rotaryReach].Name
	}
	w.sizes.positions = w.rotaryPositions()
	w.sizes.text = w.sizes.positions
	w.freqs = w.frequencies()
	by := w.placed(w.angles(w.sizes.positions))
	for i, output := range customop.RotarySpec.Outputs[:w.outputs] {
		x := w.element32(inputs[i].Name, inputs[i].Name)
		if w.packed() {
			x = w.unsqueeze(inputs[i].Name+"_row", x, 0)
		}
		turned := w.turned(inputs[i].Name, x, by)
		if w.packed() {
			turned = w.op(inputs[i].Name+"_tokens", "Squeeze", []string{turned, w.ints(0)})
		}
		kind, from := w.like(turned)
		w.result(output.Name, kind, from)
	}
}

func (w *body) packed() bool { return w.form.rotary.format == "thd" }

// placed gives cos and sin [batch or 1, 1, tokens, pairs] the order of the tensor's dimensions,
// and turns the other way for the inverse.
func (w *body) placed(a angles) angles {
	if w.form.rotary.inverse {
		a.sin = w.op("sin_inverse", "Neg", []string{a.sin})
	}
	perm := map[string][]int64{"bshd": {0, 2, 1, 3}, "sbhd": {2, 0, 1, 3}, "thd": {0, 2, 1, 3}}[w.form.rotary.format]
	if perm == nil {
		return a
	}
	return angles{w.op("cos_placed", "Transpose", []string{a.cos}, onnx.IntsAttr("perm", perm...)), w.op("sin_placed", "Transpose", []string{a.sin}, onnx.IntsAttr("perm", perm...))}
}

// rotaryPositions are the positions of the tokens [batch or 1, length], with axes in front where
// a token has several.
func (w *body) rotaryPositions() string {
	inputs := customop.RotarySpec.Inputs
	if w.given(rotaryPositions) {
		given := inputs[rotaryPositions].Name
		switch {
		case !w.packed():
			return given
		case w.axes:
			return w.unsqueeze("positions", given, 1)
		}
		return w.unsqueeze("positions", given, 0)
	}
	lengthAxis := map[string]int64{"bshd": 1, "sbhd": 0, "bhsd": 2, "thd": 0}[w.form.rotary.format]
	length := w.scalar("length", w.size("length", w.names.query, lengthAxis))
	places := w.op("places", "Range", []string{w.int(0), length, w.int(1)})
	offsets := ""
	if w.given(rotaryOffsets) {
		offsets = w.op("offsets", "Cast", []string{inputs[rotaryOffsets].Name}, onnx.IntAttr("to", int64(onnx.Int64)))
	}
	if !w.packed() {
		row := w.unsqueeze("places_row", places, 0)
		if offsets == "" {
			return row
		}
		return w.op("positions", "Add", []string{w.unsqueeze("offsets_column", offsets, 1), row})
	}
	return w.unsqueeze("positions", w.packedPositions(places, offsets), 0)
}

// packedPositions are the positions of packed tokens [tokens], which stand at `places`.
func (w *body) packedPositions(places, offsets string) string {
	bounds := w.op("bounds", "Cast", []string{customop.RotarySpec.Inputs[rotaryBounds].Name}, onnx.IntAttr("to", int64(onnx.Int64)))
	ends := w.slice("ends", bounds, w.ints(1), w.end(), 0)
	// A token's sequence has the number of those that end before it.
	before := w.op("ended", "LessOrEqual", []string{w.unsqueeze("ends_row", ends, 0), w.unsqueeze("places_column", places, 1)})
	sequence := w.total("sequence", w.op("ended_number", "Cast", []string{before}, onnx.IntAttr("to", int64(onnx.Int64))), 1, 0)
	own := w.op("places_of_sequence", "Sub", []string{places, w.op("starts", "Gather", []string{bounds, sequence})})
	if offsets == "" {
		return own
	}
	each := w.op("offsets_each", "Expand", []string{offsets, w.op("sequences", "Shape", []string{ends})})
	return w.op("places_moved", "Add", []string{own, w.op("offsets_of_tokens", "Gather", []string{each, sequence})})
}
