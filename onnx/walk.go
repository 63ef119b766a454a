package onnx

import "iter"

// tensors yields every tensor of the model: those of its graphs, functions and
// attributes at any depth.
func (m *Model) tensors() iter.Seq[*Tensor] {
	return func(yield func(*Tensor) bool) { yieldTensors(m, yield) }
}

// yieldTensors walks the views below v.
func yieldTensors(v view, yield func(*Tensor) bool) bool {
	if t, ok := v.(*Tensor); ok {
		return yield(t)
	}
	for _, child := range children(v) {
		if !yieldTensors(child, yield) {
			return false
		}
	}
	return true
}

// children lists the views directly inside v.
func children(v view) (out []view) {
	for _, f := range v.fields() {
		if f.child != nil {
			out = append(out, f.child)
		}
	}
	return out
}
