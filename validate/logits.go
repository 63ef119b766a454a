package validate

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/rope-rewrite/rope-rewrite/internal/decoder"
	"github.com/rope-rewrite/rope-rewrite/internal/engine"
	"github.com/rope-rewrite/rope-rewrite/provenance"
	"github.com/rope-rewrite/rope-rewrite/rewrite"
)

// roundings is how many times the original is computed with other roundings, at most.
const roundings = 8

// fewRoundings is how many are enough to see that methods make more of a difference than rounding.
const fewRoundings = 3

// clear is how many times above what rounding was seen to do a difference is that no other rounding
// would explain.
const clear = 64

// compare runs both models, one after the other, so that one at a time is in memory, and measures
// how their logits differ.
func (v *validation) compare(ctx context.Context) error {
	own, err := v.both(ctx, decoder.Options{})
	if unloaded := (*decoder.LoadError)(nil); errors.As(err, &unloaded) && v.result.Short && ctx.Err() == nil {
		first := err
		if own, err = v.both(ctx, decoder.Options{Emulated: true}); err != nil {
			return first
		}
		v.note("ONNX Runtime has no kernels here for the original's 16-bit type, so its results were computed in float32 and rounded.")
	}
	if err != nil {
		return err
	}
	r := v.result
	for i, k := range v.kinds {
		s := v.sequences[i]
		x, y := own[i], v.logits[i]
		if len(x) != len(y) {
			return fmt.Errorf("%s: the models give %d and %d logits", k.name, len(x), len(y))
		}
		c := Case{Name: k.name}
		low, high := math.Inf(1), math.Inf(-1)
		for j, token := range real(s, x) {
			if math.IsNaN(x[j]) || math.IsNaN(y[j]) || math.IsInf(x[j]-y[j], 0) {
				return fmt.Errorf("%s: a logit of token %d is %g in the original and %g in the patched model", k.name, token, x[j], y[j])
			}
			low, high = min(low, x[j]), max(high, x[j])
		}
		c.Difference, c.Range = distance(s, x, y), high-low
		c.Measures = measure(x, y, s.Mask, int(s.Length))
		r.Cases = append(r.Cases, c)
	}
	if v.costs() {
		v.clock.begin(runExact, "")
		exact, _, err := v.runAs(ctx, v.original, decoder.Options{}, false)
		if err != nil {
			return err
		}
		patched := v.logits
		if r.Fast {
			if patched, _, err = v.runAs(ctx, v.patched, decoder.Options{}, true); err != nil {
				return err
			}
		}
		for i := range r.Cases {
			s := v.sequences[i]
			r.Cases[i].Cost = &Cost{distance(s, exact[i], patched[i]), measure(exact[i], patched[i], s.Mask, int(s.Length))}
		}
	}
	if r.Short {
		v.clock.begin(runWide, "")
		wide, _, err := v.run(ctx, v.original, decoder.Options{Wide: true}, false)
		if err != nil {
			return err
		}
		for i := range r.Cases {
			c, s := &r.Cases[i], v.sequences[i]
			c.OriginalError, c.PatchedError = distance(s, own[i], wide[i]), distance(s, v.logits[i], wide[i])
		}
	}
	v.own = own
	return nil
}

// both runs the original and the patched model, and notes how the original could not be run.
func (v *validation) both(ctx context.Context, as decoder.Options) (own [][]float64, err error) {
	v.clock.begin(runOriginal, "")
	own, alone, err := v.run(ctx, v.original, as, false)
	for unrun := (*notRun)(nil); errors.As(err, &unrun) && len(v.kinds) > 1; {
		v.note(fmt.Sprintf("%s: not compared, because the original does not run this way (%v).", v.kinds[unrun.kind].name, unrun.error))
		v.kinds, v.sequences = slices.Delete(v.kinds, unrun.kind, unrun.kind+1), slices.Delete(v.sequences, unrun.kind, unrun.kind+1)
		own, alone, err = v.run(ctx, v.original, as, false)
	}
	if err != nil {
		return nil, err
	}
	for i, why := range alone {
		if why != nil {
			v.note(fmt.Sprintf("%s: the original runs only one row at a time (%v), so its rows were run one by one.", v.kinds[i].name, why))
		}
	}
	v.clock.begin(runPatched, "")
	v.logits, _, err = v.run(ctx, v.patched, as, true)
	return own, err
}

// rounding measures what rounding alone does to the original: without graph optimisations and,
// where that does not explain the differences, with every number rounded once more at random.
func (v *validation) rounding(ctx context.Context) error {
	r, own := v.result, v.own
	v.logits = nil // they were compared, and are as large as what comes
	ways := []decoder.Options{{AsWritten: true}}
	for seed := range roundings {
		ways = append(ways, decoder.Options{Rounded: true, Seed: seed})
	}
	for i, as := range ways {
		r.Same = r.same()
		if methods := r.Claim != nil && r.Claim.Changes; methods && r.expected() && (i > fewRoundings || i > 0 && r.clearlyOther()) {
			return nil // methods make the difference
		}
		if i > 0 && (r.Same && r.expected() || r.Short || r.altered()) {
			return nil
		}
		if i == 0 {
			v.clock.begin(runUnoptimised, "")
		} else {
			v.clock.begin(runRounded, fmt.Sprintf(", %d of at most %d", i, roundings))
		}
		other, _, err := v.run(ctx, v.original, as, false)
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if err != nil {
			continue // it runs in one way only
		}
		for i := range r.Cases {
			c := &r.Cases[i]
			if len(other[i]) == len(own[i]) {
				c.Rounding = max(c.Rounding, distance(v.sequences[i], own[i], other[i])/c.Range)
				r.Rounding = max(r.Rounding, c.Rounding)
			}
		}
	}
	r.Same = r.same()
	return nil
}

// run gives a model's logits of each kind. alone says why it ran row by row, where it did; the patched
// model may not.
func (v *validation) run(ctx context.Context, path string, as decoder.Options, patched bool) (logits [][]float64, alone []error, err error) {
	switch {
	case patched || as.Model != nil:
	case v.scaled != nil:
		as.Held = v.held()
	default:
		as.Stored = v.stored
	}
	if v.result.Fast && (patched || isFast(v.before)) {
		as.Change = rewrite.InExactPrecision
	}
	return v.runAs(ctx, path, as, patched)
}

// isFast reports whether a model's ops have precision fast, by its record.
func isFast(r *provenance.Record) bool {
	return r != nil && slices.ContainsFunc(r.Edits, func(e provenance.Edit) bool { return e.What == "precision" && e.Given == "fast" })
}

// runAs is run with caches and products as the options and the model have them.
func (v *validation) runAs(ctx context.Context, path string, as decoder.Options, patched bool) (logits [][]float64, alone []error, err error) {
	d, err := decoder.Open(ctx, v.eng, path, as)
	if err != nil {
		return nil, nil, err
	}
	defer d.Close()
	return v.feed(ctx, d, patched)
}

// notRun says that a model does not run a kind of input, one of validation.kinds.
type notRun struct {
	kind int
	error
}

func (n *notRun) Unwrap() error { return n.error }

func (v *validation) feed(ctx context.Context, d *decoder.Decoder, patched bool) (logits [][]float64, alone []error, err error) {
	for i, k := range v.kinds {
		var out []float64
		var why error
		if patched && k.ragged {
			out, err = d.Ragged(ctx, v.sequences[i], k.chunks[0])
		} else {
			out, err = d.Chunks(ctx, v.sequences[i], k.chunks...)
		}
		if err != nil && !patched && ctx.Err() == nil {
			if out, why = d.RowByRow(ctx, v.sequences[i], k.chunks...); why == nil {
				why, err = err, nil
			}
		}
		if err != nil && (ctx.Err() != nil || errors.Is(err, engine.ErrTimeout) || errors.Is(err, engine.ErrDied)) {
			return nil, nil, fmt.Errorf("%s: %w", k.name, err)
		}
		if err != nil {
			return nil, nil, fmt.Errorf("%s: %w", k.name, &notRun{i, err})
		}
		logits, alone = append(logits, out), append(alone, why)
	}
	return logits, alone, nil
}

// real yields the places of the logits of tokens that are no padding, with the token's place in
// its row.
func real(s decoder.Sequence, logits []float64) func(func(i, token int) bool) {
	width := len(logits) / len(s.Mask)
	return func(yield func(i, token int) bool) {
		for i := range logits {
			if at := i / width; s.Mask[at] != 0 && !yield(i, at%int(s.Length)) {
				return
			}
		}
	}
}

// distance is the largest difference of two models' logits. NaN counts as infinite.
func distance(s decoder.Sequence, a, b []float64) (largest float64) {
	for i := range real(s, a) {
		off := math.Abs(a[i] - b[i])
		if math.IsNaN(off) {
			return math.Inf(1)
		}
		largest = max(largest, off)
	}
	return largest
}
