package rope

import "slices"

// Clone returns a copy that shares no memory with a.
func (a Attention) Clone() Attention {
	a.Encoding.Frequencies = slices.Clone(a.Encoding.Frequencies)
	a.Encoding.LengthDependent.Long = slices.Clone(a.Encoding.LengthDependent.Long)
	a.Sinks = slices.Clone(a.Sinks)
	a.Bands = slices.Clone(a.Bands)
	return a
}
