// Package rope describes rotary attention as values, and the methods that
// change it as functions from value to value. It knows mathematics
// only: no graphs, files or kernels.
//
// An [Attention] holds everything that one attention layer computes: its
// [Encoding] (frequencies, gain, layout), the position map ([Band]), the
// [Mask], and the score's scale and softcap. A [Spec] names a [Method] with its
// parameters; [Spec.Apply] returns the changed Attention and leaves its
// argument unchanged:
//
//	spec, err := rope.ParseSpec(rope.ScalingAxis, "yarn:factor=4,original_max_position_embeddings=2048")
//	edited, warnings, err := spec.Apply(attention, rope.Context{})
//
// Specs come from text ([ParseSpec]), from Hugging Face's dictionaries
// ([ParseRopeParameters]), or from Go. [Methods] lists what there is.
//
// # Numbers
//
// Frequencies are float64, and every method rounds the ones that it writes to
// float32, the type in which the op takes them: what a reference computes from
// the value is what the op computes. Where transformers' own float32 rounding
// shows in the result (the powers of the base, YaRN's ramp) it is repeated;
// frequencies match transformers' inv_freq to a few units in the last place.
//
// A negative frequency turns its pair the other way. Methods act on how fast
// pairs turn: what they make of a pair turns the way it did.
//
// # Adding a method
//
// Write one file with a Method value, add it to the table in table.go and a
// vector to its test; then run go generate, which writes docs/methods.md.
//
// Package ref, below this one, computes an Attention in float64; package encoding has position
// encodings other than rotary ones.
package rope

//go:generate go run ../cmd/dev/gendocs -o ../docs/methods.md
