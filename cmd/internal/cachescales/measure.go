package cachescales

import (
	"context"
	"errors"
	"fmt"
	"math"

	"github.com/rope-rewrite/rope-rewrite/internal/decoder"
	"github.com/rope-rewrite/rope-rewrite/internal/engine"
	"github.com/rope-rewrite/rope-rewrite/onnx"
	"github.com/rope-rewrite/rope-rewrite/rewrite"
)

// Options says how scales are measured. The zero value measures one scale for a cache, in this process.
type Options struct {
	Rewrite    rewrite.Options // the libraries and the worker that run the model; its Progress is told what is done
	PerChannel bool            // a scale for each channel of each kv head
}

// Result is what was measured.
type Result struct {
	Tokens int
	Scales map[int]rewrite.CacheScales // by layer
	Left   []rewrite.Site              // layers that have no scales, because they cannot be rewritten
}

// Measure runs a model on texts, each in one call with an empty cache.
func Measure(ctx context.Context, path string, texts [][]int64, opts Options) (*Result, error) {
	m, err := onnx.Open(path)
	if err != nil {
		return nil, err
	}
	defer m.Close()
	say := opts.Rewrite.Progress
	if say == nil {
		say = func(string) {}
	}
	if _, _, err := rewrite.ReadOps(m); err != nil { // which say where each layer's cache is
		o := opts.Rewrite
		o.AllowUnchanged, o.Output.NoFallback = true, true
		if _, err := rewrite.Rewrite(ctx, m, o); err != nil {
			return nil, fmt.Errorf("%s: %w", path, err)
		}
	}
	ops, left, err := rewrite.ReadOps(m)
	if err != nil {
		return nil, err
	}
	eng, err := engine.Open(engine.Config{Runtime: opts.Rewrite.Evaluation.Runtime, Library: opts.Rewrite.Evaluation.Library}, opts.Rewrite.Evaluation.Worker)
	if err != nil {
		return nil, err
	}
	defer eng.Close()
	say("running the model")
	d, err := decoder.Open(ctx, eng, path, decoder.Options{})
	if err != nil {
		return nil, err
	}
	defer d.Close()
	if err := measurable(d, texts); err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	r := &Result{Scales: map[int]rewrite.CacheScales{}, Left: left}
	largest := map[string]*peaks{}
	for _, text := range texts {
		s := d.Padded([][]int64{text}, int64(len(text)))
		out, err := d.All(ctx, decoder.Step{Batch: 1, Length: s.Length, IDs: s.IDs, Mask: s.Mask, Positions: s.Positions})
		if err != nil {
			return nil, err
		}
		for _, c := range d.Caches {
			if largest[c.Present] == nil {
				largest[c.Present] = &peaks{}
			}
			largest[c.Present].add(out[c.Present], opts.PerChannel)
		}
		r.Tokens += len(text)
	}
	for _, op := range ops {
		key, value := largest[op.Op.PresentKey], largest[op.Op.PresentValue]
		if key == nil || value == nil {
			continue // of another text, or none
		}
		of := rewrite.CacheScales{Key: key.scales(), Value: value.scales()}
		if of.Key == nil || of.Value == nil {
			return nil, fmt.Errorf("%s: the cache of layer %d holds numbers that are not finite on this text, so it has no scales", path, op.Layer)
		}
		r.Scales[op.Layer] = of
	}
	if len(r.Scales) == 0 {
		return nil, fmt.Errorf("%s: no layer that can be rewritten has a cache, so there are no scales to measure", path)
	}
	return r, nil
}

// measurable refuses a model or texts that cannot be run so.
func measurable(d *decoder.Decoder, texts [][]int64) error {
	if !d.Cached() {
		return errors.New("it has no key-value cache, so there are no scales to measure; export it with one")
	}
	if t, _ := d.CacheType(); t == onnx.Int8 {
		return errors.New("its caches are int8 already; measure the original")
	}
	for _, text := range texts {
		n := int64(len(text))
		switch {
		case d.Length > 0 && n != d.Length:
			return fmt.Errorf("it takes exactly %d tokens in each call; give --length %d", d.Length, d.Length)
		case d.Capacity > 0 && n > d.Capacity:
			return fmt.Errorf("its cache holds %d tokens, and the text has %d; give --length %d", d.Capacity, n, d.Capacity)
		}
		for _, id := range text {
			if d.Vocabulary > 0 && (id < 0 || id >= d.Vocabulary) {
				return fmt.Errorf("the text has the token %d, but the model's tokens are 0 to %d", id, d.Vocabulary-1)
			}
		}
	}
	return nil
}

// peaks are the largest magnitudes of a cache: one, or one for each channel of each head.
type peaks struct{ list []float64 }

// add takes a cache [1, heads, tokens, size].
func (p *peaks) add(cache engine.Tensor, perChannel bool) {
	heads, tokens, size := int(cache.Dims[1]), int(cache.Dims[2]), int(cache.Dims[3])
	if p.list == nil {
		p.list = make([]float64, 1)
		if perChannel {
			p.list = make([]float64, heads*size)
		}
	}
	for i, x := range cache.Values() {
		at := (i/(tokens*size)*size + i%size) % len(p.list)
		p.list[at] = max(p.list[at], math.Abs(x)) // of NaN NaN
	}
}

// scales are those that the largest magnitudes need, nil where one is not finite. A channel that was always
// zero gets that of the largest one.
func (p *peaks) scales() (list []float32) {
	highest := 0.0
	for _, x := range p.list {
		highest = max(highest, x)
	}
	for _, x := range p.list {
		if x == 0 {
			x = highest
		}
		if x == 0 {
			x = 1 // all are zero
		}
		scale := float32(x / 127)
		if !(scale > 0) || math.IsInf(float64(scale), 0) {
			return nil
		}
		list = append(list, scale)
	}
	return list
}
