package score

import (
	"context"
	"errors"
	"math"
	"math/rand/v2"
	"slices"

	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/bisect"
	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/dim"
	"github.com/rope-rewrite/rope-rewrite/rope"
)

// Masked is the value below which a key counts as hidden. It is an absolute value: with
// the row's maximum subtracted, a row of −FLT_MAX would look visible.
const Masked = -9e3

// MaxStatic is the largest number of elements of the mask of a model with a static length.
const MaxStatic = 1 << 25

// maxWhole is the largest number of elements of a mask that is computed for all pairs of
// tokens.
const maxWhole = 1 << 24

// structure reads from rows without padding whether the mask is causal and how large its
// window is. With a bias it reads causality only.
func (s *Scorer) structure(ctx context.Context, rng *rand.Rand, fit *Fit) error {
	pt := s.within(dim.Point{B: 2, L: 5, P: 4})
	out, err := s.unpadded(ctx, rng, pt)
	if err != nil {
		return err
	}
	fit.Mask.Causal = !s.mayHide() // a query that sees no key may average all keys, the later ones too
	for r, row := range out {
		_, _, i := s.place(pt, r)
		for j := pt.P + i + 1; j < pt.P+pt.L; j++ {
			if row[j] > Masked { // a later key is visible
				fit.Mask.Causal = false
			}
		}
	}
	few := s.clamped(dim.Point{B: 1, L: 3})
	if first, err := s.unpadded(ctx, rng, few); err != nil {
		return err
	} else if fit.Mask.Bias {
		for _, row := range first {
			// A query that sees no key may average all keys, the later ones too.
			if slices.Max(row[:few.L]) <= Masked {
				fit.Mask.Causal = false
			}
		}
	}
	if s.whole && !s.ends() {
		// What few tokens show need not hold for many: the bias has all of the mask.
		fit.Mask.Causal = false
		s.longest = 1
		for (s.longest+2)*(s.longest+2)*s.Fed.Heads <= maxWhole && s.longest < 2047 {
			s.longest++
		}
		fit.Tokens = dim.Longest + 1
		return nil
	}
	// One row with as many keys as possible: the last query and all keys before it.
	s.longest, err = bisect.Farthest(s.clamped(dim.Point{B: 1, L: 1, P: dim.Longest}).P, func(past int64) (int64, error) {
		rows, err := s.unpadded(ctx, rng, dim.Point{B: 1, L: 1, P: past})
		if err == nil && fit.byDistance && slices.ContainsFunc(rows, s.overflown) {
			s.overflows, err = true, errors.New("its biases exceed what hides keys")
		}
		if err == nil {
			out = rows
		}
		return past, err
	})
	if err != nil {
		return err
	}
	fit.Tokens = s.longest + 1
	if f := s.Loaded.Table.Static; f.P > 0 {
		fit.Tokens = f.P + f.L
	}
	if fit.Mask.Causal {
		if fit.Mask.Causal, err = s.hidesLater(ctx, rng); err != nil {
			return err
		}
	}
	if fit.Mask.Bias {
		fit.Mask.Padding, err = s.hidesPadding(ctx, rng)
		return err
	}
	fit.Mask.Padding = s.Mask != ""
	if fit.byDistance {
		err := s.distance(ctx, rng, fit)
		if err != nil && s.longest > 1 && s.longest < dim.Longest && !s.ends() {
			// The end of a table of n numbers is a single one for n + 1 tokens, which broadcasts to all.
			s.longest, fit.Tokens = s.longest-1, fit.Tokens-1
			err = s.distance(ctx, rng, fit)
		}
		return err
	}
	seen := int64(0)
	for _, v := range out[0][:s.longest+1] {
		seen += dim.OneIf(v > Masked)
	}
	if seen <= s.longest {
		fit.Mask.Window = seen
	}
	return nil
}

// overflown reports whether a row has no number, or one so large that together with it the lowest
// number of the scores' type hides no key.
func (s *Scorer) overflown(row []float32) bool {
	most := math.MaxFloat32
	if s.precision() == rope.Float16 {
		const largest = 65504
		most = largest + Masked
	}
	return slices.ContainsFunc(row, func(v float32) bool { return !(float64(v) <= most) })
}

// unpadded returns the softmax's input for scores of zero without padding, and for large
// numbers of what is added to them.
func (s *Scorer) unpadded(ctx context.Context, rng *rand.Rand, pt dim.Point) ([][]float32, error) {
	given, err := s.given(rng, pt, slices.Repeat([]int64{1}, int(pt.B*(pt.L+pt.P))))
	if err != nil {
		return nil, err
	}
	s.feedLarge(rng, given)
	return s.ZeroRows(ctx, pt, given)
}

// Keys are the keys that are visible to one query.
type Keys struct {
	from, to int64     // the others are hidden by causality or the window
	padding  []int64   // 0 for keys of padded tokens; nil where these are not hidden
	bias     []float32 // Masked or less for keys that the bias hides; nil without
}

// Shown returns the keys that are visible to query i of row b of the batch, in a sample:
// by the mask, and by the bias of the sample's row r of scores.
func (f *Fit) Shown(smp Sample, r int, b, i int64) Keys {
	total, own := smp.Pt.Keys(), smp.Pt.P+i
	k := Keys{to: total}
	if f.Mask.Causal {
		k.to = min(k.to, own+1)
	}
	if w := f.Mask.Window; w > 0 {
		k.from, k.to = max(own-w+1, 0), min(k.to, own+w)
	}
	if f.Mask.Padding {
		k.padding = smp.Mask[b*total : (b+1)*total]
	}
	if smp.Base != nil {
		k.bias = smp.Base[r]
	}
	return k
}

// Has reports whether key j is among them.
func (k *Keys) Has(j int64) bool {
	return j >= k.from && j < k.to && (k.padding == nil || k.padding[j] != 0) && (k.bias == nil || k.bias[j] > Masked)
}

// First returns the first of them, −1 when there is none.
func (k *Keys) First() int64 {
	for j := k.from; j < k.to; j++ {
		if k.Has(j) {
			return j
		}
	}
	return -1
}
