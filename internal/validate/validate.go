package validate

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/rope-rewrite/rope-rewrite/internal/decoder"
	"github.com/rope-rewrite/rope-rewrite/internal/engine"
	"github.com/rope-rewrite/rope-rewrite/internal/signature"
)

// Case is one way of running both models.
type Case struct {
	Name       string  `json:"name"`
	Difference float64 `json:"difference"` // largest, of logits
	Range      float64 `json:"range"`      // largest minus smallest logit of the original

	// Of a model in 16 bits: how far the two are from the original computed in
	// float32; 0 of others.
	OriginalError float64 `json:"original_error,omitempty"`
	PatchedError  float64 `json:"patched_error,omitempty"`

	Measures
	// Rounding is how far the original is off from itself, as a share of the range, when ONNX
	// Runtime runs it as the exporter wrote it, without graph optimisations: what rounding
	// alone does. It is 0 where that could not be run.
	Rounding float64 `json:"rounding,omitempty"`
}

// Share is the difference as a share of the range.
func (c Case) Share() float64 { return c.Difference / c.Range }

// same applies the rule: a difference within the tolerance or, where arithmetic
// of 16 bits sets another measure, at most twice the original's own error.
func (c Case) same(tolerance float64) bool {
	return c.Share() <= tolerance || c.OriginalError > 0 && c.PatchedError <= 2*c.OriginalError
}

// Result is what a comparison found.
type Result struct {
	Original  string   `json:"original"`
	Patched   string   `json:"patched"`
	Cases     []Case   `json:"cases"`
	Tolerance float64  `json:"tolerance"` // of the range
	Same      bool     `json:"same"`
	Short     bool     `json:"short"` // the original has 16-bit numbers: the patched model may err by twice what the original does
	Notes     []string `json:"notes"` // what the comparison does not show

	Verdict Verdict `json:"verdict"`

	// Claim is what the patched model's record says, compared layer by layer; nil where it has
	// no record, or no node of the op.
	Claim *Claim `json:"claim,omitempty"`
}

// Verdict is what a comparison comes to. A model that was given another meaning must compute that,
// and any other the same as the original.
type Verdict string

const (
	Same         Verdict = "same"
	Different    Verdict = "different"
	AsClaimed    Verdict = "as claimed"
	NotAsClaimed Verdict = "not as claimed"
	NotShown     Verdict = "not shown" // it claims another meaning, and no attention could be compared with it
)

// Holds reports whether the patched model is what it should be.
func (v Verdict) Holds() bool { return v == Same || v == AsClaimed }

func (r *Result) verdict() Verdict {
	switch {
	case r.Claim != nil && len(r.Claim.Methods) > 0 && len(r.Claim.Layers) == 0 && r.Claim.Holds:
		return NotShown
	case r.Claim != nil && len(r.Claim.Methods) > 0 && r.Claim.Holds:
		return AsClaimed
	case r.Claim != nil && len(r.Claim.Methods) > 0:
		return NotAsClaimed
	case r.Same:
		return Same
	}
	return Different
}

// Options says what is fed. The zero value is what the command does.
type Options struct {
	Length    int64        // tokens of each sequence, at least MinLength; 0 means DefaultLength, or that of the longest of Rows
	Rows      [][]int64    // the tokens of the user's own texts, a row each; nil draws some
	Tolerance float64      // largest allowed difference as a share of the range; 0 means DefaultTolerance
	Progress  func(string) // told what is being done; may be nil
}

const (
	DefaultLength    = 64
	DefaultTolerance = 1e-4
	MinLength        = 8 // for a prefill, chunks and single tokens to differ
)

// Run compares two model files.
func Run(ctx context.Context, eng engine.Engine, original, patched string, opts Options) (*Result, error) {
	for _, row := range opts.Rows {
		opts.Length = max(opts.Length, int64(len(row)))
	}
	if opts.Length == 0 {
		opts.Length = DefaultLength
	}
	if opts.Tolerance == 0 {
		opts.Tolerance = DefaultTolerance
	}
	if opts.Progress == nil {
		opts.Progress = func(string) {}
	}
	if opts.Length < MinLength {
		return nil, fmt.Errorf("a length of %d is too short to compare prefill and decode; at least %d is needed", opts.Length, MinLength)
	}
	opts.Progress("loading both models")
	models, emulated, err := load(ctx, eng, original, patched)
	if err != nil {
		return nil, err
	}
	defer func() { models.close() }()
	if models[0].Cached() != models[1].Cached() {
		return nil, errors.New("one model has a key-value cache and the other has not")
	}
	if models[0].Vocabulary != models[1].Vocabulary {
		return nil, fmt.Errorf("the models have vocabularies of %d and %d tokens", models[0].Vocabulary, models[1].Vocabulary)
	}
	for i, row := range opts.Rows {
		for _, t := range row {
			if v := models[0].Vocabulary; t < 0 || v > 0 && t >= v {
				return nil, fmt.Errorf("row %d has the token %d, and the model's are 0 to %d", i, t, v-1)
			}
		}
	}
	for i, path := range []string{original, patched} {
		if c := models[i].Capacity; c > 0 && c < opts.Length {
			return nil, fmt.Errorf("%s has a cache of %d tokens, and sequences of %d are fed; give --length %d or rewrite it with a larger capacity", path, c, opts.Length, c)
		}
	}
	result := &Result{Original: original, Patched: patched, Tolerance: opts.Tolerance, Same: true, Short: models[wide] != nil, Notes: []string{}}
	if emulated {
		result.Notes = append(result.Notes, "ONNX Runtime lacks kernels of the original's 16-bit type here; what they would give was computed in float32 and rounded.")
	}
	if models[0].Takes(signature.Documents) || models[1].Takes(signature.Documents) {
		result.Notes = append(result.Notes, "Every row is fed as one document, in which a mask over documents hides nothing; what it does to several documents is another meaning, which is not compared.")
	}
	kinds := kinds(opts.Length, models[0].Cached())
	if models[1].Capacity > 0 {
		kinds = append(kinds, kind{name: "rows of different length", chunks: kinds[len(kinds)-1].chunks, ragged: true})
	}
	for i, kind := range kinds {
		opts.Progress(kind.name)
		s := models[0].Random(kind.chunks[0], opts.Length, uint64(i))
		if opts.Rows != nil {
			s = models[0].Padded(opts.Rows, kind.chunks[0])
		}
		c, alone, err := compare(ctx, models, s, kind)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", kind.name, err)
		}
		if alone != nil {
			result.Notes = append(result.Notes, fmt.Sprintf("%s: the original runs one row at a time only (%v). Its rows were run one by one.", kind.name, alone))
		}
		result.Cases = append(result.Cases, c)
		result.Same = result.Same && c.same(opts.Tolerance)
	}
	opts.Progress("layer by layer")
	models.close() // the patched model is loaded once more, with more outputs
	models = [len(models)]*decoder.Decoder{}
	if result.Claim, err = claim(ctx, eng, original, patched, min(opts.Length, DefaultLength)); err != nil {
		if ctx.Err() != nil {
			return nil, err
		}
		result.Notes = append(result.Notes, fmt.Sprintf("Its layers could not be looked at one by one: %v.", err))
	}
	result.Verdict = result.verdict()
	return result, nil
}

type kind struct {
	name   string
	chunks []int64
	ragged bool // the patched model, whose cache is fixed, gets its rows without padding
}

// kinds are the ways of running: token by token at most sixteen steps, so that
// long comparisons end.
func kinds(length int64, cached bool) []kind {
	list := []kind{{name: "prefill", chunks: []int64{length}}}
	if cached {
		first := length / 3
		steps := min(length/2, 16)
		list = append(list,
			kind{name: "prefill in two chunks", chunks: []int64{first, length - first}},
			kind{name: fmt.Sprintf("prefill, then %d single tokens", steps),
				chunks: slices.Concat([]int64{length - steps}, slices.Repeat([]int64{1}, int(steps)))})
	}
	return list
}

// models are the original, the patched model, of an original in 16 bits the original to be computed
// in float32, and the original without graph optimisations.
type models [4]*decoder.Decoder

const wide, asWritten = 2, 3

func load(ctx context.Context, eng engine.Engine, original, patched string) (m models, emulated bool, err error) {
	open := func(i int, path string, with func(context.Context, engine.Engine, string) (*decoder.Decoder, error)) {
		if err == nil {
			m[i], err = with(ctx, eng, path)
		}
	}
	open(0, original, decoder.Open)
	open(1, patched, decoder.Open)
	if err == nil && m[0].Short {
		open(wide, original, decoder.OpenWide)
	}
	if err != nil && ctx.Err() == nil {
		// ONNX Runtime lacks kernels of some types, which can be emulated.
		as := err
		m.close()
		m, err = models{}, nil
		open(0, original, decoder.OpenEmulated)
		open(1, patched, decoder.OpenEmulated)
		open(wide, original, decoder.OpenWide)
		if err != nil || !m[0].Short {
			m.close()
			return models{}, false, as
		}
		emulated = true
	}
	if err != nil {
		m.close()
		return m, emulated, err
	}
	if m[asWritten], err = decoder.OpenAsWritten(ctx, eng, original); err != nil && ctx.Err() == nil {
		m[asWritten], err = nil, nil // it runs optimised only; what rounding does is not shown then
	}
	return m, emulated, err
}

func (m models) close() {
	for _, d := range m {
		if d != nil {
			d.Close()
		}
	}
}

// compare runs the models on a sequence. alone says why the original ran row
// by row, where it did.
func compare(ctx context.Context, m models, s decoder.Sequence, k kind) (c Case, alone, err error) {
	c.Name = k.name
	var logits [len(m)][]float64
	for i, d := range m {
		switch {
		case d == nil:
			continue
		case k.ragged && i == 1:
			logits[i], err = d.Ragged(ctx, s, k.chunks[0])
		default:
			logits[i], err = d.Chunks(ctx, s, k.chunks...)
		}
		if err != nil && i != 1 && ctx.Err() == nil {
			alone = err
			if logits[i], err = d.RowByRow(ctx, s, k.chunks...); err != nil {
				err = alone
			}
		}
		if err != nil && i == asWritten && ctx.Err() == nil {
			logits[i], err = nil, nil // as where it cannot be opened
		}
		if err != nil {
			return c, alone, err
		}
	}
	if len(logits[0]) != len(logits[1]) {
		return c, alone, fmt.Errorf("the models give %d and %d logits", len(logits[0]), len(logits[1]))
	}
	width := len(logits[0]) / len(s.Mask)
	low, high := math.Inf(1), math.Inf(-1)
	for i, x := range logits[0] {
		if s.Mask[i/width] == 0 {
			continue
		}
		low, high = min(low, x), max(high, x)
		y := logits[1][i]
		if math.IsNaN(x) || math.IsNaN(y) {
			return c, alone, fmt.Errorf("a logit is %g in the original and %g in the patched model", x, y)
		}
		c.Difference = max(c.Difference, math.Abs(x-y))
		if m[wide] != nil {
			c.OriginalError = max(c.OriginalError, math.Abs(x-logits[wide][i]))
			c.PatchedError = max(c.PatchedError, math.Abs(y-logits[wide][i]))
		}
	}
	c.Range = high - low
	c.Measures = measure(logits[0], logits[1], s.Mask, int(s.Length))
	if len(logits[asWritten]) == len(logits[0]) {
		for i, x := range logits[0] {
			if s.Mask[i/width] != 0 {
				c.Rounding = max(c.Rounding, math.Abs(x-logits[asWritten][i])/c.Range)
			}
		}
	}
	return c, alone, nil
}
