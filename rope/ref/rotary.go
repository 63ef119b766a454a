package ref

import (
	"slices"

	"github.com/rope-rewrite/rope-rewrite/rope"
)

// Rotary is rope.ApplyRotary in float64, one element after the other: its token's sequence is
// written out, then its position is looked up there, then its pair is turned.
func Rotary(x []float64, shape []int, r rope.Rotary) ([]float64, error) {
	return rotary[float64](x, shape, r)
}

// RotaryFloat32 is Rotary in float32, the cosines and sines too. Only the angle is as in Rotary.
func RotaryFloat32(x []float64, shape []int, r rope.Rotary) ([]float64, error) {
	return rotary[float32](x, shape, r)
}

func rotary[T float](x []float64, shape []int, r rope.Rotary) ([]float64, error) {
	if err := r.Check(len(x), shape); err != nil {
		return nil, err
	}
	stand, reach := standing(shape, r)
	if r.MaxSeqlen > 0 {
		reach = r.MaxSeqlen
	}
	e := r.Encoding.At(reach)
	if r.Inverse {
		e.Frequencies = append([]float64(nil), e.Frequencies...)
		for i := range e.Frequencies {
			e.Frequencies[i] = -e.Frequencies[i]
		}
	}
	out := make([]float64, 0, len(x))
	size := shape[len(shape)-1]
	for at := 0; at < len(x); at += size {
		token := stand[tokenOf(at/size, shape, r.TensorFormat)]
		head := rotatePairs(e, vector[T](x, at/size, size), func(pair int) float64 {
			if e.Axes == nil {
				return float64(token[0])
			}
			return float64(token[e.Axes[pair]])
		})
		for _, v := range head {
			out = append(out, float64(v))
		}
	}
	return out, nil
}

// tokenOf returns the row and the place of a tensor's head, counted in memory.
func tokenOf(head int, shape []int, format string) [2]int {
	switch format {
	case "sbhd":
		return [2]int{head / shape[2] % shape[1], head / (shape[2] * shape[1])}
	case "bhsd":
		return [2]int{head / (shape[2] * shape[1]), head % shape[2]}
	case "thd":
		return [2]int{0, head / shape[1]}
	}
	return [2]int{head / (shape[2] * shape[1]), head / shape[2] % shape[1]}
}

// standing returns the positions of every token [row, place], one for each axis, and how far
// the sequences reach on all ranks.
func standing(shape []int, r rope.Rotary) (map[[2]int][]int64, int64) {
	rows, length := shape[0], shape[1]
	switch r.TensorFormat {
	case "sbhd":
		rows, length = shape[1], shape[0]
	case "bhsd":
		length = shape[2]
	case "thd":
		rows, length = 1, shape[0]
	}
	all, reach := map[[2]int][]int64{}, int64(0)
	for i, p := range r.PositionIDs { // [axes, rows or 1, length]
		given := 1
		if r.Encoding.Axes == nil {
			given = len(r.PositionIDs) / length
		} else if axes := slices.Max(r.Encoding.Axes) + 1; len(r.PositionIDs) == axes*rows*length {
			given = rows
		}
		for b := range rows {
			if given == 1 || b == i/length%given {
				all[[2]int{b, i % length}] = append(all[[2]int{b, i % length}], p)
			}
		}
		reach = max(reach, p+1)
	}
	if r.PositionIDs != nil {
		return all, reach
	}
	ranks := max(1, r.CPSize)
	lengths := make([]int, rows)
	for b := range lengths {
		lengths[b] = length * ranks
	}
	if r.TensorFormat == "thd" {
		lengths = nil
		for i := range len(r.CuSeqlens) - 1 {
			lengths = append(lengths, int(r.CuSeqlens[i+1]-r.CuSeqlens[i]))
		}
	}
	next := [2]int{}
	for i, n := range lengths {
		offset := int64(0)
		if len(r.SeqlenOffsets) > 0 {
			offset = int64(r.SeqlenOffsets[min(i, len(r.SeqlenOffsets)-1)])
		}
		var whole []int64
		for s := range n {
			whole = append(whole, offset+int64(s))
			reach = max(reach, offset+int64(s)+1)
		}
		if r.TensorFormat != "thd" {
			next = [2]int{i, 0}
		}
		for _, p := range ofRank(whole, ranks, r.CPRank) {
			all[next] = []int64{p}
			next[1]++
		}
	}
	return all, reach
}

// ofRank returns what a rank holds of a sequence: all of it, or two of its 2·ranks chunks.
func ofRank(whole []int64, ranks, rank int) []int64 {
	if ranks == 1 {
		return whole
	}
	chunk := len(whole) / (2 * ranks)
	last := 2*ranks - 1 - rank
	return append(append([]int64(nil), whole[rank*chunk:(rank+1)*chunk]...), whole[last*chunk:(last+1)*chunk]...)
}
