package main

import (
	"fmt"
	"math"

	"github.com/rope-rewrite/rope-rewrite/internal/decoder"
	"github.com/rope-rewrite/rope-rewrite/internal/npz"
)

// golden is a sequence and the logits that it must give; testdata/README.md
// says where they come from.
type golden struct {
	sequence decoder.Sequence
	want     []float32 // [rows, vocabulary]
	first    int64     // row of the batch's rows that want begins with
}

// readGolden reads a method's golden; padded ones hold only the tokens of the
// second sequence that are no padding.
func readGolden(path, key string, padded bool) (golden, error) {
	var g golden
	f, err := npz.Open(path)
	if err != nil {
		return g, err
	}
	defer f.Close()
	suffix := ""
	if padded {
		suffix = "_pad"
	}
	s := &g.sequence
	for name, into := range map[string]*[]int64{"ids": &s.IDs, "mask": &s.Mask, "pos": &s.Positions} {
		data, shape, err := f.Int64(name + suffix)
		if err != nil {
			return g, err
		}
		if len(shape) != 2 {
			return g, fmt.Errorf("%s: %s%s has %d dimensions, 2 were expected", path, name, suffix, len(shape))
		}
		*into = data
		s.Batch, s.Length = int64(shape[0]), int64(shape[1])
	}
	if padded {
		for g.first = s.Length; g.first < s.Batch*s.Length && s.Mask[g.first] == 0; g.first++ {
		}
	}
	g.want, _, err = f.Float32(key + suffix)
	return g, err
}

// difference is the largest between the logits of a batch, [Batch × Length,
// vocabulary], and those that the golden has.
func (g golden) difference(logits []float64) (float64, error) {
	width := int64(len(logits)) / (g.sequence.Batch * g.sequence.Length)
	logits = logits[g.first*width:]
	if len(logits) != len(g.want) {
		return 0, fmt.Errorf("the model gives %d logits, the golden has %d", len(logits), len(g.want))
	}
	largest := 0.0
	for i, x := range logits {
		largest = math.Max(largest, math.Abs(x-float64(g.want[i]))) // NaN wins
	}
	return largest, nil
}
