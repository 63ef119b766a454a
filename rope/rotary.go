package rope

import (
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/rope-rewrite/rope-rewrite/internal/short"
)

// Rotary says how ApplyRotary rotates the heads of a tensor. Names are those of Transformer
// Engine and FlashAttention, and of the op Rotary, which has no part of a sequence on several
// machines.
type Rotary struct {
	Encoding Encoding

	// TensorFormat is the order of the tensor's dimensions: "bshd" (also ""), "sbhd" or "bhsd" with
	// b sequences of s tokens of h heads of d channels, or "thd" for sequences packed one behind
	// the other.
	TensorFormat string

	// PositionIDs are the positions of the tokens [batch or 1, length], for "thd" [tokens], with
	// Encoding.Axes that for each axis. nil: a token stands at its place in its sequence, moved by
	// SeqlenOffsets.
	PositionIDs   []int64
	CuSeqlens     []int32 // for "thd": sequence i has the tokens from CuSeqlens[i] to CuSeqlens[i+1]
	SeqlenOffsets []int32 // position of the first token of each sequence, or one for all; nil: 0
	MaxSeqlen     int64   // with Encoding.LengthDependent: how many positions the call reaches; 0: the largest position + 1

	Inverse bool // turns the other way, as a backward pass needs it: the transpose of the rotation
	Inplace bool // writes into the argument, and returns it

	// With CPSize n > 1 the tensor holds what rank CPRank of n has of each sequence (context
	// parallelism): of 2n chunks of equal length chunk CPRank and chunk 2n − 1 − CPRank, one behind
	// the other. CuSeqlens are those of the whole sequences. (Transformer Engine, cp_size and
	// cp_rank.)
	CPSize, CPRank int
}

// ApplyRotary rotates the heads of a tensor of a shape, in float32. It returns a new tensor, or
// x itself with Inplace. The error says what does not fit.
func ApplyRotary(x []float32, shape []int, r Rotary) ([]float32, error) {
	if err := r.Check(len(x), shape); err != nil {
		return nil, err
	}
	e := r.Encoding.At(r.reach(shape))
	if !r.Inplace {
		x = slices.Clone(x)
	}
	d := r.dimensions(shape)
	pairs := len(e.Frequencies)
	cos, sin := make([]float32, pairs), make([]float32, pairs)
	for b := range d.batch {
		for s := range d.length {
			for i, omega := range e.Frequencies {
				position := float64(r.position(d, b, s, i))
				angle := position * omega
				if !e.ExactAngles {
					angle = float64(float32(position) * float32(omega))
				}
				if r.Inverse {
					angle = -angle
				}
				cos[i], sin[i] = float32(e.EffectiveGain()*math.Cos(angle)), float32(e.EffectiveGain()*math.Sin(angle))
			}
			for h := range d.heads {
				at := b*d.batchStride + s*d.lengthStride + h*d.headStride + e.Offset
				turn(x[at:at+2*pairs], cos, sin, e.Layout)
			}
		}
	}
	return x, nil
}

// turn rotates the channels of one head.
func turn(x, cos, sin []float32, layout Layout) {
	for i := range cos {
		first, second := i, i+len(cos)
		if layout == Interleaved {
			first, second = 2*i, 2*i+1
		}
		a, b := x[first], x[second]
		x[first], x[second] = a*cos[i]-b*sin[i], b*cos[i]+a*sin[i]
	}
}

// dimensions are a tensor's sizes and the steps between its elements.
type dimensions struct {
	batch, length, heads                  int // one row of packed tokens
	batchStride, lengthStride, headStride int
}

func (r Rotary) dimensions(shape []int) dimensions {
	d := shape[len(shape)-1]
	switch r.TensorFormat {
	case "sbhd":
		return dimensions{shape[1], shape[0], shape[2], shape[2] * d, shape[1] * shape[2] * d, d}
	case "bhsd":
		return dimensions{shape[0], shape[2], shape[1], shape[1] * shape[2] * d, d, shape[2] * d}
	case "thd":
		return dimensions{1, shape[0], shape[1], 0, shape[1] * d, d}
	}
	return dimensions{shape[0], shape[1], shape[2], shape[1] * shape[2] * d, shape[2] * d, d}
}

func (r Rotary) packed() bool { return r.TensorFormat == "thd" }

func (r Rotary) ranks() int { return max(1, r.CPSize) }

// position returns where pair i of the token at a place of row b stands.
func (r Rotary) position(d dimensions, b, s, i int) int64 {
	if r.PositionIDs != nil {
		rows := len(r.PositionIDs) / (r.axes() * d.length)
		axis := 0
		if r.Encoding.Axes != nil {
			axis = r.Encoding.Axes[i]
		}
		return r.PositionIDs[(axis*rows+b%rows)*d.length+s]
	}
	sequence, length := b, d.length
	if r.packed() {
		for sequence = 0; int(r.CuSeqlens[sequence+1])/r.ranks() <= s; {
			sequence++
		}
		s -= int(r.CuSeqlens[sequence]) / r.ranks()
		length = int(r.CuSeqlens[sequence+1]-r.CuSeqlens[sequence]) / r.ranks()
	}
	if half := length / 2; r.ranks() > 1 {
		chunk := r.CPRank
		if s >= half {
			s, chunk = s-half, 2*r.CPSize-1-r.CPRank
		}
		s += chunk * half
	}
	return int64(s) + r.offset(sequence)
}

// axes counts the positions of a token.
func (r Rotary) axes() int {
	if r.Encoding.Axes == nil {
		return 1
	}
	return slices.Max(r.Encoding.Axes) + 1
}

func (r Rotary) offset(sequence int) int64 {
	switch len(r.SeqlenOffsets) {
	case 0:
		return 0
	case 1:
		return int64(r.SeqlenOffsets[0])
	}
	return int64(r.SeqlenOffsets[sequence])
}

// reach returns how many positions the call reaches, on all ranks together.
func (r Rotary) reach(shape []int) (end int64) {
	if r.MaxSeqlen > 0 {
		return r.MaxSeqlen
	}
	for _, p := range r.PositionIDs {
		end = max(end, p+1)
	}
	if r.PositionIDs != nil {
		return end
	}
	for i := range r.sequences(shape) {
		if n := r.wholeLength(shape, i); n > 0 {
			end = max(end, int64(n)+r.offset(i))
		}
	}
	return end
}

func (r Rotary) sequences(shape []int) int {
	if r.packed() {
		return len(r.CuSeqlens) - 1
	}
	return r.dimensions(shape).batch
}

// wholeLength returns the tokens of a sequence on all ranks.
func (r Rotary) wholeLength(shape []int, sequence int) int {
	if r.packed() {
		return int(r.CuSeqlens[sequence+1] - r.CuSeqlens[sequence])
	}
	return r.dimensions(shape).length * r.ranks()
}

// Check refuses a tensor of so many elements and a shape that the rotation does not fit.
func (r Rotary) Check(elements int, shape []int) error {
	rank := 4
	switch r.TensorFormat {
	case "", "bshd", "sbhd", "bhsd":
	case "thd":
		rank = 3
	default:
		return fmt.Errorf("tensor format %q: it must be bshd, sbhd, bhsd or thd", short.Name(r.TensorFormat))
	}
	product := 1
	for _, n := range shape {
		product *= n
	}
	if len(shape) != rank || elements != product || slices.ContainsFunc(shape, func(n int) bool { return n < 0 }) {
		return fmt.Errorf("a tensor of %d elements does not have shape %v with the %d dimensions of its format", elements, shape, rank)
	}
	e := r.Encoding
	if e.Offset < 0 || e.Offset+e.RotaryDim() > shape[rank-1] {
		return fmt.Errorf("%d frequencies from channel %d on rotate channels beyond the head size %d", len(e.Frequencies), e.Offset, shape[rank-1])
	}
	if e.Axes != nil && (len(e.Axes) != len(e.Frequencies) || r.PositionIDs == nil) {
		return fmt.Errorf("%d axes for %d frequencies need as many, and position ids", len(e.Axes), len(e.Frequencies))
	}
	if err := r.checkRanks(shape); err != nil {
		return err
	}
	return r.checkPositions(shape)
}

func (r Rotary) checkRanks(shape []int) error {
	switch {
	case r.CPSize < 0 || r.CPRank < 0 || r.CPRank >= r.ranks():
		return fmt.Errorf("rank %d of %d does not exist", r.CPRank, r.ranks())
	case r.ranks() > 1 && r.PositionIDs != nil:
		return errors.New("position ids are those of the rank's tokens: they go without CPSize")
	case r.ranks() > 1 && !r.packed() && r.dimensions(shape).length%2 != 0:
		return fmt.Errorf("a rank has two chunks of equal length, but the tensor has %d tokens", r.dimensions(shape).length)
	}
	return nil
}

func (r Rotary) checkPositions(shape []int) error {
	d := r.dimensions(shape)
	if r.PositionIDs != nil {
		if r.CuSeqlens != nil || r.SeqlenOffsets != nil {
			return errors.New("position ids say all positions: they go without CuSeqlens and SeqlenOffsets")
		}
		if n, row := len(r.PositionIDs), r.axes()*d.length; n != row && n != row*d.batch {
			return fmt.Errorf("%d position ids do not fit %d axes, %d rows and %d tokens", n, r.axes(), d.batch, d.length)
		}
		return nil
	}
	if r.packed() != (r.CuSeqlens != nil) {
		return errors.New("CuSeqlens and the format thd are given together, or position ids")
	}
	if r.packed() {
		if err := r.checkBounds(d.length); err != nil {
			return err
		}
	}
	if n := len(r.SeqlenOffsets); n > 1 && n != r.sequences(shape) {
		return fmt.Errorf("%d SeqlenOffsets for %d sequences", n, r.sequences(shape))
	}
	for i, offset := range r.SeqlenOffsets {
		if offset < 0 {
			return fmt.Errorf("SeqlenOffsets[%d] is %d: it must not be negative", i, offset)
		}
	}
	return nil
}

// checkBounds refuses CuSeqlens of other sequences than `tokens` tokens of a rank.
func (r Rotary) checkBounds(tokens int) error {
	if len(r.CuSeqlens) == 0 || r.CuSeqlens[0] != 0 {
		return errors.New("CuSeqlens must begin with 0")
	}
	for i, end := range r.CuSeqlens[1:] {
		if n := int(end - r.CuSeqlens[i]); n < 0 {
			return fmt.Errorf("CuSeqlens[%d] is %d after %d: they must not descend", i+1, end, r.CuSeqlens[i])
		} else if r.ranks() > 1 && n%(2*r.ranks()) != 0 {
			return fmt.Errorf("sequence %d has %d tokens, which %d ranks cannot cut into %d chunks", i, n, r.ranks(), 2*r.ranks())
		}
	}
	if last := int(r.CuSeqlens[len(r.CuSeqlens)-1]); last/r.ranks() != tokens {
		return fmt.Errorf("CuSeqlens end with %d, but the tensor has %d tokens of each of %d ranks", last, tokens, r.ranks())
	}
	return nil
}
