package rope

import "slices"

// Clone returns a copy that shares no memory with a.
func (a Attention) Clone() Attention {
	a.Encoding.Frequencies = slices.Clone(a.Encoding.Frequencies)
	a.Encoding.LengthDependent.Long = slices.Clone(a.Encoding.LengthDependent.Long)
	a.Encoding.Axes = slices.Clone(a.Encoding.Axes)
	a.Sinks = slices.Clone(a.Sinks)
	a.QueryFactors, a.KeyFactors = slices.Clone(a.QueryFactors), slices.Clone(a.KeyFactors)
	a.Bands = slices.Clone(a.Bands)
	a.Distance.Slopes, a.Distance.Starts, a.Distance.Biases = slices.Clone(a.Distance.Slopes), slices.Clone(a.Distance.Starts), slices.Clone(a.Distance.Biases)
	for b, list := range a.Distance.Biases {
		a.Distance.Biases[b] = slices.Clone(list)
	}
	return a
}
