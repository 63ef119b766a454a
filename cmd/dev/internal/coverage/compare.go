package coverage

import (
	"context"
	"fmt"
	"math"
	"slices"

	"github.com/rope-rewrite/rope-rewrite/internal/decoder"
	"github.com/rope-rewrite/rope-rewrite/internal/engine"
	"github.com/rope-rewrite/rope-rewrite/internal/npz"
)

// truth is what transformers computes in float64, as export.py wrote it, with
// and without padding on the left.
type truth [2]struct {
	sequence decoder.Sequence
	logits   []float32 // in one call
	decode   []float32 // through transformers' own cache; nil without one
}

// prefill is how many tokens go before the single ones, as in models.py.
const prefill = 20

func readTruth(path string) (truth, error) {
	f, err := npz.Open(path)
	if err != nil {
		return truth{}, err
	}
	defer f.Close()
	return truthOf(f, "")
}

// truthOf is what f has for a method, as methods.py names it, or for "".
func truthOf(f *npz.File, method string) (t truth, err error) {
	for i, suffix := range []string{"", "_pad"} {
		s := &t[i].sequence
		for name, into := range map[string]*[]int64{"ids": &s.IDs, "mask": &s.Mask, "pos": &s.Positions} {
			data, shape, err := f.Int64(name + suffix)
			if err != nil {
				return t, err
			}
			*into = data
			s.Batch, s.Length = int64(shape[len(shape)-2]), int64(shape[len(shape)-1])
		}
		if t[i].logits, _, err = f.Float32("logits" + suffix + method); err != nil {
			return t, err
		}
		if decode := "decode" + suffix + method; slices.Contains(f.Keys(), decode) {
			if t[i].decode, _, err = f.Float32(decode); err != nil {
				return t, err
			}
		}
	}
	return t, nil
}

// compare runs the original and the patched model. The patched one may be off
// from the truth by twice what the original is, and from the original by as
// much. An export that does not compute what transformers does is held to the
// original alone, within what validate grants.
func (r *Result) compare(ctx context.Context, program string, t truth, original, patched string, approximate bool) error {
	eng, err := engine.NewWorker(engine.Config{Threads: 1}, program)
	if err != nil {
		return err
	}
	defer eng.Close()
	var models [2]*decoder.Decoder
	for i, path := range []string{original, patched} {
		if models[i], err = decoder.Open(ctx, eng, path, decoder.Options{}); err != nil {
			if i == 0 {
				r.Broken = err.Error()
				return nil
			}
			return err
		}
		defer models[i].Close()
	}
	var parts []measured
	ran := 0
	for i, padded := range []string{"", ", padded on the left"} {
		if i == 1 && models[0].LengthTracked {
			continue // its cache tracks the length of each row, which takes padding on the right only
		}
		for way, lengths := range ways(models[0]) {
			for _, s := range batches(t[i].sequence) {
				want := t[i].logits
				if way == "single tokens" && t[i].decode != nil {
					want = t[i].decode
				}
				first, err := models[0].Chunks(ctx, s.Sequence, cut(lengths, s.Length)...)
				if err != nil {
					if r.Broken == "" {
						r.Broken = way + padded + ": " + err.Error()
					}
					continue
				}
				ran++
				second, err := models[1].Chunks(ctx, s.Sequence, cut(lengths, s.Length)...)
				if err != nil {
					r.Wrong = way + padded + ": " + err.Error()
					return nil
				}
				m := measured{what: fmt.Sprintf("%s%s, batch %d", way, padded, s.Batch), sequence: s, calls: cut(lengths, s.Length), want: want}
				m.noise, m.off, m.between, m.span = distances(s, want, first, second)
				if math.IsNaN(m.noise) {
					r.Broken, ran = way+padded+": it gives NaN", ran-1
					continue
				}
				if math.IsNaN(m.off) {
					r.Wrong = way + padded + ": it gives NaN"
					return nil
				}
				r.Noise, r.Patched = max(r.Noise, m.noise), max(r.Patched, m.off)
				parts = append(parts, m)
			}
		}
	}
	for _, m := range parts {
		wrong := m.wrong(r.Noise, approximate)
		if wrong == "" {
			continue
		}
		rounded, err := m.rounding(ctx, eng, original, patched, r.Noise)
		if err != nil && !approximate { // what is quantised may have no float64
			return err
		}
		if rounded == "" {
			r.Wrong = wrong
		} else {
			r.Rounded = wrong + ", " + rounded
		}
	}
	if ran > 0 {
		r.Broken = "" // it runs at batch 1, or without padding; what runs was compared
	}
	return nil
}

// tolerance is the share of the logits' range that two models may always differ by.
const tolerance = 1e-4

// measured is what one way of running both models gave.
type measured struct {
	what                string
	noise, off, between float64 // of the original and of the patched model from the truth; from each other
	span                float64 // of the original's logits
	sequence            part
	calls               []int64   // lengths
	want                []float32 // the truth
}

// wrong says how the patched model differs, or "". noise is the farthest that
// the original is off in any way: one way of a few rows is too small a sample
// to say how much it rounds.
func (m measured) wrong(noise float64, approximate bool) string {
	off, bound := m.off, limit(noise, m.span)
	if !approximate && noise > tolerance*m.span {
		off, bound = m.between, tolerance*m.span
	}
	if off <= bound && m.between <= bound {
		return ""
	}
	return fmt.Sprintf("%s: off by %.2g, the original by %.2g; %.2g between them", m.what, m.off, m.noise, m.between)
}

// ways are lengths of calls, of which a last one takes the rest.
func ways(d *decoder.Decoder) map[string][]int64 {
	if !d.Cached() {
		return map[string][]int64{"one call": nil}
	}
	return map[string][]int64{
		"one call":      nil,
		"two calls":     {11},
		"single tokens": slices.Concat([]int64{prefill}, slices.Repeat([]int64{1}, 64)),
	}
}

// limit bounds the patched model's distance from the truth and from the
// original. Where a few values happen to come out exact, the noise of a sum in
// float32 is the least that is granted.
func limit(noise, span float64) float64 { return 2 * max(noise, span*1e-6) }

// part is a sequence, or one row of it.
type part struct {
	decoder.Sequence
	row int64 // the first
}

// batches are the whole batch and its rows alone.
func batches(s decoder.Sequence) []part {
	list := []part{{Sequence: s}}
	for b := range s.Batch {
		list = append(list, part{row: b, Sequence: s.Row(b)})
	}
	return list
}

// cut makes calls of the given lengths, as far as the tokens go, and one of the rest.
func cut(lengths []int64, total int64) (calls []int64) {
	for _, n := range lengths {
		if n = min(n, total); n > 0 {
			calls = append(calls, n)
			total -= n
		}
	}
	if total > 0 {
		calls = append(calls, total)
	}
	return calls
}

// distances compares real tokens: of both models from the truth, and from each
// other.
func distances(s part, want []float32, first, second []float64) (noise, off, between, span float64) {
	width := len(first) / len(s.Mask)
	start := int(s.row*s.Length) * width
	low, high := math.Inf(1), math.Inf(-1)
	for i, x := range first {
		if s.Mask[i/width] == 0 {
			continue
		}
		y := float64(want[start+i])
		low, high = min(low, y), max(high, y)
		noise, off, between = larger(noise, x-y), larger(off, second[i]-y), larger(between, x-second[i])
	}
	return noise, off, between, high - low
}

// larger is NaN if either is.
func larger(a, b float64) float64 {
	if math.IsNaN(a) || math.IsNaN(b) {
		return math.NaN()
	}
	return max(a, math.Abs(b))
}
