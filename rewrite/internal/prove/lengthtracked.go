package prove

import (
	"slices"

	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/dim"
	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/eval"
	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/measure"
)

// maxProofRows bounds rows · heads · channels of a cache in a proof. All caches of a
// proof together take some 20 times as many bytes.
const maxProofRows = 1 << 22

// lengthTrackedTrials returns trials that reach every part of an op on a length-tracked
// cache: a first call with padding on the right, decode from rows of different lengths, a
// chunk of a longer text, buffers with unused rows (which hold random numbers), and the
// last position of the model.
func lengthTrackedTrials(m *measure.Measured) []trial {
	a := m.Attention
	trained := a.Encoding.LengthDependent.Trained
	most := maxProofRows / int64(a.KVHeads*a.HeadSize)
	if trained > 0 { // a few calls at the length where frequencies change may take more
		most = max(most, min(trained+8, 4*most))
	}
	end := min(m.PositionLimit+1, most, farthestPosition)
	if m.LengthTracked.Limit > 0 {
		end = min(end, m.LengthTracked.Limit)
	}
	var list []trial
	// add takes the number of rows of past and each batch row's tokens after the call, the largest first.
	add := func(length, capacity int64, magnitude float64, tokens ...int64) {
		for i, n := range tokens {
			tokens[i] = max(min(n, end), 1)
		}
		capacity = max(capacity, 0) // a change of frequencies may be nearer to the start than a trial begins before it
		length, tokens = m.Static.WithinLengthTracked(length, tokens)
		total := slices.Max(tokens)
		if length > 1 && length > total {
			length = total
		}
		first := length == total
		if !first && capacity < total-length || first && capacity > 0 && capacity < total ||
			m.Static.L > 0 && capacity < total && capacity != total-length { // ONNX Runtime asks for this
			capacity = total
		}
		list = append(list, trial{
			pt: dim.Point{B: int64(len(tokens)), L: length, P: capacity}, magnitude: magnitude,
			positions: total - length, lengths: &eval.CacheLengths{Tokens: tokens, Total: total},
		})
	}
	add(5, 0, 1, 5)
	add(7, 0, 1, 7, 2, 5) // padded on the right
	add(6, 19, 1, 6, 3)   // into buffers with unused rows
	add(33, 0, 0.3, 33, 1, 20)
	add(1, 9, 1, 10, 4)     // decode, rows of different lengths
	add(1, 40, 1, 20, 7, 2) // the same in buffers with unused rows
	add(1, 300, 1, 301)
	add(8, 11, 1, 19) // a chunk of a longer text
	add(9, 40, 1, 22)
	add(70, 131, 1, 201)
	add(19, 25, 3, 25)
	add(8, max(end-8, 0), 1, end) // the last positions
	add(1, end-1, 3, end, end/2)
	if trained > 0 {
		add(1, trained-1, 1, trained, trained/2)
		add(1, trained, 1, trained+1, trained/2) // one row below the change, one beyond it
		add(6, trained-3, 1, trained+3)          // the cached keys were rotated by the frequencies before the change
		add(1, trained+40, 1, trained/2+1, 3)    // unused rows
		if trained < 256 {
			add(trained, 0, 1, trained, trained/2)
			add(trained+1, 0, 1, trained+1, trained/2)
		}
	}
	if w := a.Mask.Window; w > 0 && w < maxTriedPast {
		add(3, w+5, 1, w+8)
		add(1, w+9, 1, w+10, w, w+1)
	}
	return list
}

// lengthTrackedRows returns the kind of row of each element of a result: rows of tokens are
// compared, those of padding apart, and unused rows of a present not at all.
func (t trial) lengthTrackedRows(result int, m *measure.Measured) func(i int64) RowKind {
	if result == output {
		return RowsOfOutput(m, t.pt, func(b, i int64) RowKind {
			if t.lengths.Past(b, t.pt.L)+i < t.lengths.Tokens[b] {
				return Compared
			}
			return PaddedWithoutKeys
		})
	}
	channels := m.Layouts.Key.Channels
	if result == presentValue {
		channels = m.Layouts.Value.Channels
	}
	rows := max(t.pt.P, t.lengths.Total)
	return func(i int64) RowKind {
		row, b := i/channels%rows, i/channels/rows/m.Layouts.Key.Heads
		if row < t.lengths.Tokens[b] {
			return Compared
		}
		return unused
	}
}
