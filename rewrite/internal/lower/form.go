package lower

import (
	"github.com/rope-rewrite/rope-rewrite/customop"
	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/measure"
)

// Form says how a site is written, in the words of reports and records. "" is the fused op.
type Form string

const (
	OwnNodes   Form = "own nodes"           // the model's own, changed
	Inlined    Form = "inlined"             // the fallback's nodes, in the graph
	GroupQuery Form = "GroupQueryAttention" // ONNX Runtime's op
	Rotary     Form = "Rotary"              // the op Rotary before the model's own nodes of the attention
)

// Told reports whether what a site computes can be read or measured in this form.
func (f Form) Told() bool { return f != Inlined }

// IsOp reports whether a site in this form has an op of this project.
func (f Form) IsOp() bool { return f == "" || f == Rotary }

// Replaced reports whether nodes other than the op replaced the model's own.
func (f Form) Replaced() bool { return f == Inlined || f == GroupQuery }

// What reports and records call the kinds of key-value caches.
const (
	NoCache            = "none"
	GrowingCache       = "growing"
	LengthTrackedCache = "length-tracked" // each row has a length
	FixedCache         = "fixed"          // its buffers have one size
)

// CacheOf names the cache of a site that was measured.
func CacheOf(m *measure.Measured) string {
	switch {
	case m.Slots != nil:
		return FixedCache
	case m.LengthTracked != nil:
		return LengthTrackedCache
	case m.Layouts.Cached:
		return GrowingCache
	}
	return NoCache
}

// CacheOfOp names the cache of an op; otherwise is for an op without one.
func CacheOfOp(op customop.RotaryAttention, otherwise string) string {
	switch {
	case op.TotalLength != "":
		return LengthTrackedCache
	case op.CacheLength != "":
		return FixedCache
	case op.PastKey != "":
		return GrowingCache
	}
	return otherwise
}
