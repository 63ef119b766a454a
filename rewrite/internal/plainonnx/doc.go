// Package plainonnx writes an edited rotation without the fused op: into the constants
// and nodes that the model itself has.
//
// It takes the sites with what was measured of them and what they are to compute, and
// changes the model in place. It can change the frequencies and the gain of a rotation,
// and hide more keys from a softmax. Then it has the model measured again and compares
// the rotations with the wanted ones.
//
// Everything else it refuses (Refused): position maps, temperatures, another cache, a scale
// where a part of the head is not rotated, constants that are also used for something that
// is not to change. The backend then inlines the fallback.
//
// Start with Layer and Write in write.go. constants.go finds and replaces frequencies and
// tables of cosines, classify.go recognises them by their values, tablelength.go says how
// many rows a table needs, lengthdependent.go writes frequencies that depend on the
// length of a call, mask.go hides keys.
//
// It is the uppermost package here, beside unread; the facade rewrite calls it for the
// target PlainONNX, where package lower is called for the target with the op.
package plainonnx
