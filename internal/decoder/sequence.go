package decoder

import (
	"cmp"
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
)

// Sequence is a batch of whole sequences.
type Sequence struct {
	Batch, Length        int64
	IDs, Mask, Positions []int64 // [Batch, Length]; Positions also [axes, Batch, Length], as in signature.Call
	Documents            []int64 // the same; nil puts every token into document 1
}

// Row is one sequence of the batch by itself.
func (s Sequence) Row(b int64) Sequence {
	from, to := b*s.Length, (b+1)*s.Length
	row := Sequence{Batch: 1, Length: s.Length, IDs: s.IDs[from:to], Mask: s.Mask[from:to]}
	for at := from; at < int64(len(s.Positions)); at += s.Batch * s.Length {
		row.Positions = append(row.Positions, s.Positions[at:at+s.Length]...)
	}
	if s.Documents != nil {
		row.Documents = s.Documents[from:to]
	}
	return row
}

// positions are those of some places of all rows, on each axis.
func (s Sequence) positions(start, length int64) (list []int64) {
	for row := int64(0); row < int64(len(s.Positions)); row += s.Length {
		list = append(list, s.Positions[row+start:row+start+length]...)
	}
	return list
}

// Random makes two rows of random tokens, or as many as the model takes, the second with padding on
// the left.
// Where the cache tracks the length of each row, the padding is on the right of
// the first call, which takes first tokens. Every case should have a seed of its
// own: on the same tokens the largest difference of two models would often be the
// very same number in all of them, at a token that comes out bit for bit equal
// however the sequence is cut.
func (d *Decoder) Random(first, length int64, seed uint64) Sequence {
	vocabulary := d.Vocabulary
	if vocabulary == 0 {
		vocabulary = 100
	}
	rng := rand.New(rand.NewPCG(9, seed))
	s := Sequence{Batch: cmp.Or(d.Batch, 2), Length: length}
	from, to := int64(0), length/5
	if d.LengthTracked {
		from, to = first-min(length/5, first/2), first
	}
	for b := range s.Batch {
		position := int64(0)
		for i := range length {
			s.IDs = append(s.IDs, rng.Int64N(vocabulary))
			if b == 1 && i >= from && i < to {
				s.Mask, s.Positions = append(s.Mask, 0), append(s.Positions, 1)
				continue
			}
			s.Mask, s.Positions = append(s.Mask, 1), append(s.Positions, position)
			position++
		}
	}
	return s
}

// Padded makes a batch of rows of tokens, shorter ones with padding on the left. Where the cache
// tracks the length of each row, the padding is on the right of the first call, which takes first
// tokens.
func (d *Decoder) Padded(rows [][]int64, first int64) Sequence {
	length := 0
	for _, row := range rows {
		length = max(length, len(row))
	}
	s := Sequence{Batch: int64(len(rows)), Length: int64(length)}
	for _, row := range rows {
		to := length - len(row)
		from := 0
		if d.LengthTracked {
			from, to = int(first)-to, int(first)
		}
		next := 0
		for i := range length {
			if i >= from && i < to {
				s.IDs, s.Mask, s.Positions = append(s.IDs, row[0]), append(s.Mask, 0), append(s.Positions, 1)
				continue
			}
			s.IDs, s.Mask, s.Positions = append(s.IDs, row[next]), append(s.Mask, 1), append(s.Positions, int64(next))
			next++
		}
	}
	return s
}

// Chunks evaluates a sequence in calls of the given lengths, whose sum is the
// sequence's, and returns the logits [Batch][Length][vocabulary] as one
// tensor's values. A model without cache takes only one chunk.
func (d *Decoder) Chunks(ctx context.Context, s Sequence, lengths ...int64) ([]float64, error) {
	if d.LengthTracked && s.Batch > 1 && slices.ContainsFunc(lengths[min(1, len(lengths)):], func(n int64) bool { return n > 1 }) {
		return d.RowByRow(ctx, s, lengths...)
	}
	var cache Cache
	var out []float64
	var vocabulary int64
	start := int64(0)
	for _, length := range lengths {
		step := Step{Batch: s.Batch, Length: length, Cache: cache, Positions: s.positions(start, length)}
		for b := range s.Batch {
			row := b * s.Length
			step.IDs = append(step.IDs, s.IDs[row+start:row+start+length]...)
			step.Mask = append(step.Mask, s.Mask[row:row+start+length]...)
			if s.Documents != nil {
				step.Documents = append(step.Documents, s.Documents[row:row+start+length]...)
			}
		}
		logits, next, err := d.Run(ctx, step)
		if err != nil {
			return nil, err
		}
		if d := logits.Dims; len(d) != 3 || d[0] != s.Batch || d[1] != length || out != nil && d[2] != vocabulary {
			return nil, fmt.Errorf("its logits have the shape %v; expected [%d %d vocabulary]", d, s.Batch, length)
		}
		vocabulary = logits.Dims[2]
		if out == nil {
			out = make([]float64, s.Batch*s.Length*vocabulary)
		}
		values := logits.Values()
		for b := range s.Batch {
			copy(out[(b*s.Length+start)*vocabulary:], values[b*length*vocabulary:(b+1)*length*vocabulary])
		}
		cache, start = next, start+length
	}
	return out, nil
}

// RowByRow is Chunks with each sequence of the batch by itself.
func (d *Decoder) RowByRow(ctx context.Context, s Sequence, lengths ...int64) ([]float64, error) {
	var out []float64
	for b := range s.Batch {
		logits, err := d.Chunks(ctx, s.Row(b), lengths...)
		if err != nil {
			return nil, err
		}
		out = append(out, logits...)
	}
	return out, nil
}

// Ragged evaluates a sequence with padding on the left in a cache of fixed
// capacity and without its padding: every row stands at index 0 and has a past
// of its own. The first prefill places are one call, in which shorter rows are
// filled up on the right, and the others single tokens. The logits are those
// of Chunks, zero for padding.
func (d *Decoder) Ragged(ctx context.Context, s Sequence, prefill int64) ([]float64, error) {
	if d.Rows == 0 {
		return nil, fmt.Errorf("%s: rows of different length need a cache of fixed capacity", d.path)
	}
	skipped := make([]int64, s.Batch) // padding of each row
	for b := range skipped {
		for s.Mask[int64(b)*s.Length+skipped[b]] == 0 {
			skipped[b]++
		}
	}
	var cache Cache
	var out []float64
	for start := int64(0); start < s.Length; {
		length := int64(1)
		if start == 0 {
			length = prefill
		}
		step := Step{Batch: s.Batch, Length: length, Cache: cache}
		width := start + length // as long as the longest row
		for b, skip := range skipped {
			row := s.IDs[int64(b)*s.Length:][:s.Length]
			held := max(start-skip, 0)
			step.Pasts = append(step.Pasts, held)
			for i := held; i < held+length; i++ {
				at := min(i+skip, start+length-1) // the last token fills up
				step.IDs, step.Positions = append(step.IDs, row[at]), append(step.Positions, i)
			}
			for j := range width {
				real, document := int64(0), int64(1)
				if at := j + skip; at < start+length {
					real = 1
					if s.Documents != nil {
						document = s.Documents[int64(b)*s.Length+at]
					}
				}
				step.Mask, step.Documents = append(step.Mask, real), append(step.Documents, document)
			}
		}
		logits, next, err := d.Run(ctx, step)
		if err != nil {
			return nil, err
		}
		vocabulary := logits.Dims[2]
		if out == nil {
			out = make([]float64, s.Batch*s.Length*vocabulary)
		}
		values := logits.Values()
		for b, skip := range skipped {
			for i := range length {
				at := max(start, skip) + i
				if at < start+length {
					copy(out[(int64(b)*s.Length+at)*vocabulary:], values[(int64(b)*length+i)*vocabulary:][:vocabulary])
				}
			}
		}
		cache, start = next, start+length
	}
	return out, nil
}
