package validate

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"

	"github.com/rope-rewrite/rope-rewrite/internal/decoder"
	"github.com/rope-rewrite/rope-rewrite/internal/engine"
	"github.com/rope-rewrite/rope-rewrite/internal/signature"
	"github.com/rope-rewrite/rope-rewrite/onnx"
	"github.com/rope-rewrite/rope-rewrite/provenance"
	"github.com/rope-rewrite/rope-rewrite/rewrite"
	"github.com/rope-rewrite/rope-rewrite/rope"
)

// UnrunError says why the original cannot be run here, so that nothing could be shown.
type UnrunError struct{ Err error }

func (e *UnrunError) Error() string { return e.Err.Error() }
func (e *UnrunError) Unwrap() error { return e.Err }

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
	// Rounding is how much the original differs from itself, as a share of the range, when it is
	// computed in another way: without graph optimisations, and with every number rounded once
	// more at random. It is 0 if that could not be run.
	Rounding float64 `json:"rounding,omitempty"`

	// Expected compares the patched model with the original after the same methods; nil if it
	// has no methods, or if both are the same graph.
	Expected *Expected `json:"expected,omitempty"`

	// Cost compares the patched model with the original as it is, where the patched model's caches
	// have another element type, or it multiplies bfloat16 (Report.Fast), and its methods are the
	// original's: what that costs. nil of others.
	Cost *Cost `json:"cost,omitempty"`
}

// Cost is how far a model with caches of another element type, or with products of bfloat16, is from the
// original.
type Cost struct {
	Difference float64 `json:"difference"` // largest, of logits
	Measures
}

// CostlyKL is the mean KL divergence, in nats a token, above which smaller caches cost more than a
// service should take without a look: perplexity grows by about 1 %.
const CostlyKL = 0.01

// Costly returns the case in which smaller caches cost most, where that is more than CostlyKL; nil where it
// is less, or not known.
func (r *Report) Costly() (most *Case) {
	for i, c := range r.Cases {
		if c.Cost != nil && c.Cost.KL > CostlyKL && (most == nil || c.Cost.KL > most.Cost.KL) {
			most = &r.Cases[i]
		}
	}
	return most
}

// Expected compares a patched model with the model that its record describes.
type Expected struct {
	Difference float64 `json:"difference"` // largest, of logits

	// Of a model in 16 bits: how far the described and the patched model are from the described
	// one computed in float32.
	ExpectedError float64 `json:"expected_error,omitempty"`
	PatchedError  float64 `json:"patched_error,omitempty"`
}

// Share is the difference as a share of the range.
func (c Case) Share() float64 { return c.Difference / c.Range }

// Report is what a comparison found.
type Report struct {
	Original  string   `json:"original"`
	Patched   string   `json:"patched"`
	Cases     []Case   `json:"cases"`
	Tolerance float64  `json:"tolerance,omitempty"` // of the range, where one was given
	Rounding  float64  `json:"rounding,omitempty"`  // largest of the cases
	Same      bool     `json:"same"`                // the logits are the original's
	Short     bool     `json:"short"`               // the original has 16-bit numbers: the patched model's error may be twice the original's
	Notes     []string `json:"notes"`               // what the comparison does not show

	// CacheType is the element type of the patched model's caches where the original's is another one:
	// float16, bfloat16 or int8. The logits are then compared with those of the original whose caches
	// are rounded alike between calls.
	CacheType string `json:"cache_type,omitempty"`

	// FixedScales says that these are int8 with fixed scales, as GroupQueryAttention has them. The original's
	// attention then reads all keys and values rounded alike, those of a call among them.
	FixedScales bool `json:"fixed_scales,omitempty"`

	// Fast says that the patched model is one in float32 whose record has precision fast: its prompts
	// are multiplied in bfloat16 where the CPU does that. The logits are compared without it.
	Fast bool `json:"fast,omitempty"`

	Verdict Verdict `json:"verdict"`

	// Claim is what the patched model's record says, compared layer by layer; nil where it has
	// no record.
	Claim *Claim `json:"claim,omitempty"`

	// Rebuilt compares the patched model's file with the original, rewritten anew as the record says; nil where that
	// could not be done, or was not asked for.
	Rebuilt *Rebuilt `json:"rebuilt,omitempty"`

	// Fallback is what was seen of a fallback that the comparison of graphs does not cover; nil where
	// the model has none, or one that this version wrote.
	Fallback *Fallback `json:"fallback,omitempty"`
}

// Options says what is compared, and on what. The zero value does what the command does, in this
// process.
type Options struct {
	// Rewrite has the libraries and the worker that run both models; a worker keeps a hostile
	// graph from ending this process. Its Progress is told what is being done. What methods are
	// compared the models' records say.
	Rewrite rewrite.Options

	Length      int64     // tokens of each sequence, at least MinLength; 0 means DefaultLength, or that of the longest of Rows
	Rows        [][]int64 // the tokens of the user's own texts, a row each (ReadText, ReadPrompts, ReadArrays); nil draws some
	Tolerance   float64   // largest allowed difference as a share of the range; 0 means twice what rounding does to the original
	OutputsOnly bool      // compare only outputs, on what is fed: not the file, nor what its record says
}

const (
	DefaultLength = 64
	MinLength     = 8 // for a prefill, chunks and single tokens to differ
)

// Run compares two model files. The error says why they could not be compared; what the
// comparison found is the report's Verdict.
func Run(ctx context.Context, original, patched string, opts Options) (*Report, error) {
	r := opts.Rewrite
	eng, err := engine.Open(engine.Config{Runtime: r.Evaluation.Runtime, Library: r.Evaluation.Library}, r.Evaluation.Worker)
	if err != nil {
		return nil, err
	}
	defer eng.Close()
	v := &validation{eng: eng, original: original, patched: patched, opts: opts}
	if v.clock.say = r.Progress; v.clock.say == nil {
		v.clock.say = func(string) {}
	}
	v.result = &Report{Original: original, Patched: patched, Tolerance: opts.Tolerance, Notes: []string{}}
	v.clock.say("loading both models")
	if err := v.readRecords(); err != nil {
		return nil, err
	}
	if err := v.look(); err != nil {
		return nil, err
	}
	asked := !opts.OutputsOnly
	layers := asked && v.record != nil
	v.clock.absent = [stages]bool{runExact: !v.costs(), runWide: !v.result.Short, rewriteAgain: !asked, runExpected: !layers, compareLayers: !layers, runRounded: v.result.Short}
	if err := v.compare(ctx); err != nil {
		return nil, err
	}
	if asked {
		if err := v.compareFile(ctx); err != nil {
			return nil, err
		}
		if err := v.compareFallback(ctx); err != nil {
			return nil, err
		}
	}
	if err := v.rounding(ctx); err != nil {
		return nil, err
	}
	v.result.Verdict = v.result.verdict(opts.OutputsOnly)
	return v.result, nil
}

// validation is one comparison on its way.
type validation struct {
	eng               engine.Engine
	original, patched string
	opts              Options
	clock             clock

	kinds       []kind
	sequences   []decoder.Sequence // of the kinds
	own, logits [][]float64        // of the original and of the patched model, of each kind

	scaled []rewrite.ScaledCache // caches of the patched model with fixed scales; nil for most
	stored onnx.DataType         // the element type of the patched model's caches; 0 where the original has it too

	before, record *provenance.Record // of the models; nil where there is none
	result         *Report
}

// costs reports whether the patched model can be compared with the original as it is, for what its smaller
// caches or its products of bfloat16 cost: its methods are the original's.
func (v *validation) costs() bool {
	return (v.stored != 0 || v.result.Fast) && reflect.DeepEqual(methods(v.before), methods(v.record))
}

// look reads what both models take and give, refuses those that cannot be compared, and decides what is
// fed.
func (v *validation) look() error {
	first, err := decoder.Look(v.original)
	if unfed := (*decoder.FeedError)(nil); errors.As(err, &unfed) {
		return &UnrunError{err}
	}
	if err != nil {
		return err
	}
	second, err := decoder.Look(v.patched)
	if err != nil {
		return err
	}
	v.result.Short = first.Short
	v.result.Fast = !first.Short && isFast(v.record)
	was, count := first.CacheType()
	is, caches := second.CacheType()
	if was != is && count == caches {
		v.stored, v.result.CacheType, v.result.FixedScales = is, is.String(), v.scaled != nil
	}
	switch {
	case first.Cached() != second.Cached():
		return errors.New("one model has a key-value cache and the other has none")
	case count != caches || len(first.Memory) != len(second.Memory):
		return fmt.Errorf("the models have %d and %d inputs for caches", count+len(first.Memory), caches+len(second.Memory))
	case first.Vocabulary != second.Vocabulary:
		return fmt.Errorf("the models have vocabularies of %d and %d tokens", first.Vocabulary, second.Vocabulary)
	}
	return v.feeds(first, second)
}

// feeds decides what is fed, and in how many calls.
func (v *validation) feeds(first, second *decoder.Decoder) error {
	longest := int64(0)
	for i, row := range v.opts.Rows {
		longest = max(longest, int64(len(row)))
		for _, t := range row {
			if n := first.Vocabulary; t < 0 || n > 0 && t >= n {
				return fmt.Errorf("row %d has the token %d, but the model's tokens are 0 to %d", i, t, n-1)
			}
		}
	}
	length := max(v.opts.Length, longest)
	if length == 0 {
		length = DefaultLength
	}
	if fixed := first.Length; fixed > 0 {
		if v.opts.Rows != nil {
			return fmt.Errorf("%s takes exactly %d tokens in each call, so other rows cannot be fed", v.original, fixed)
		}
		v.fixed(first, fixed)
		return nil
	}
	if length < MinLength {
		return fmt.Errorf("a length of %d is too short to compare prefill and decode; at least %d is needed", length, MinLength)
	}
	for i, d := range []*decoder.Decoder{first, second} {
		if c := d.Capacity; c > 0 && c < length {
			return fmt.Errorf("the cache of %s holds %d tokens, and sequences of %d are fed; give --length %d, or rewrite the model with a larger capacity", []string{v.original, v.patched}[i], c, length, c)
		}
	}
	if first.Takes(signature.Documents) || second.Takes(signature.Documents) {
		v.note("Every row is fed as one document, so a mask over documents hides nothing. Rows with several documents were not run.")
	}
	v.kinds = kinds(length, first.Cached())
	if second.Rows > 0 {
		v.kinds = append(v.kinds, kind{name: "rows of different length", chunks: v.kinds[len(v.kinds)-1].chunks, ragged: true})
	}
	// GroupQueryAttention counts tokens, and a ring keeps a row's first ones: padding on the left would end the call.
	unpadded, counts := "", v.record != nil && strings.HasPrefix(v.record.Target, string(rewrite.Contrib)) && !first.LengthTracked
	switch {
	case counts:
		unpadded = "GroupQueryAttention takes no padding on the left"
	case v.record != nil && keepsFirst(v.record):
		unpadded = "a ring with first keys takes no padding on the left"
	}
	rows := v.opts.Rows
	switch {
	case unpadded != "" && rows != nil:
		rows = slices.DeleteFunc(slices.Clone(rows), func(row []int64) bool { return int64(len(row)) < longest })
		if len(rows) < len(v.opts.Rows) {
			v.note(fmt.Sprintf("Rows of less than %d tokens were not run, because %s.", longest, unpadded))
		}
	case unpadded != "":
		v.note(fmt.Sprintf("The rows have no padding, because %s.", unpadded))
	}
	for i, k := range v.kinds {
		s := first.Random(k.chunks[0], length, uint64(i))
		switch {
		case rows != nil:
			s = first.Padded(rows, k.chunks[0])
		case counts, unpadded != "" && !k.ragged:
			withoutPadding(length, s.Mask, s.Positions)
		}
		v.sequences = append(v.sequences, s)
	}
	return nil
}

// fixed is what a model is fed that takes so many tokens in each call: one call, and where its cache
// grows or is length-tracked also calls that follow.
func (v *validation) fixed(d *decoder.Decoder, length int64) {
	calls := []int64{1}
	if d.Cached() && d.Filled() == 0 {
		calls = append(calls, max(2, MinLength/length))
	}
	for i, n := range calls {
		v.kinds = append(v.kinds, kind{name: fmt.Sprintf("%d calls of %d tokens", n, length), chunks: slices.Repeat([]int64{length}, int(n))})
		v.sequences = append(v.sequences, d.Random(length, n*length, uint64(i)))
	}
	if v.opts.Length > 0 && v.opts.Length != length {
		v.note(fmt.Sprintf("The model takes %d tokens in each call, so that is what was fed.", length))
	}
}

// keepsFirst reports whether caches are rings that keep first keys, by the model's record.
func keepsFirst(r *provenance.Record) bool {
	ring := slices.ContainsFunc(r.Edits, func(e provenance.Edit) bool { return e.Setting("ring").Equal(rope.Bool(true)) })
	first := slices.ContainsFunc(r.Edits, func(e provenance.Edit) bool {
		return e.What == rope.MaskAxis.String() && e.Setting("count").Kind() != rope.Absent
	})
	return ring && (first || slices.ContainsFunc(r.Sites, func(s provenance.Site) bool { return s.Original.Mask.FirstKeys > 0 }))
}

// withoutPadding makes tokens of padding, in rows of that length.
func withoutPadding(length int64, mask, positions []int64) {
	for i := range mask {
		mask[i] = 1
	}
	for i := range positions {
		positions[i] = int64(i) % length
	}
}

func (v *validation) note(text string) { v.result.Notes = append(v.result.Notes, text) }

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
