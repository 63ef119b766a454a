package reach_test

import (
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/rope-rewrite/rope-rewrite/internal/decoder"
	"github.com/rope-rewrite/rope-rewrite/internal/engine"
	"github.com/rope-rewrite/rope-rewrite/internal/testruntime"
	"github.com/rope-rewrite/rope-rewrite/rewrite"
	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/tests/kit"
)

// An export that takes one token a call is known for any number of cached tokens, as transformers' exporter makes it.
// Where a mask changes only far behind the first calls, the patched model has that change, too.
func TestOneTokenACall(t *testing.T) {
	testruntime.Require(t)
	const cached = 1001 // more than 3 · 333
	for name, change := range map[string]func(p *kit.Patient, past, keys string) string{
		"as exported": nil,
		"a distance": func(p *kit.Patient, past, keys string) string {
			at := p.Op("Add", p.Op("Add", keys, p.Int(333)), p.Op("Add", p.Int(333), p.Int(333))) // no number of the graph is this distance
			return p.Op("Not", p.Op("Equal", past, at))
		},
		"a number of cached tokens": func(p *kit.Patient, past, keys string) string {
			rest := p.Op("Sub", p.Op("Sub", past, p.Int(333)), p.Op("Add", p.Int(333), p.Int(333)))
			return p.Op("Or", p.Op("Less", rest, p.Int(0)), p.Op("Greater", keys, p.Int(7)))
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			path := kit.Model("llama__transformers-step/decode")
			export := path
			if change != nil {
				p := kit.PatientAt(t, path)
				p.VisibleIf(func() string {
					past := p.Size("input.cache.layers.0.keys", 2)
					keys := p.Op("Range", p.Int(0), p.Op("Add", past, p.Int(1)), p.Int(1))
					return change(p, past, keys)
				})
				path = p.Saved()
			}
			patched, report := kit.Patch(t, path, rewrite.Options{})
			if reach := report.Reach(); reach.AnyLength != 2 || reach.String() != "" {
				t.Errorf("it is known for any number of tokens in %d layers%v, 2 were expected: %v", reach.AnyLength, reach, reach.Limited)
			}
			a, b, plain := afterCached(t, path, cached), afterCached(t, patched, cached), afterCached(t, export, cached)
			if d := furthest(a, plain); change != nil && d < 1e-4 {
				t.Errorf("with %d cached tokens the condition changes logits by %g of their range alone", cached, d)
			}
			if d := furthest(a, b); !(d < 1e-6) {
				t.Errorf("with %d cached tokens the patched model is off by %g of the logits' range", cached, d)
			}
		})
	}
}

// afterCached are the logits of one token behind so many cached ones, whose keys and values are drawn.
func afterCached(t *testing.T, path string, cached int64) []float64 {
	t.Helper()
	d := kit.Open(t, path)
	step := decoder.Step{Batch: 1, Length: 1, IDs: []int64{9}, Positions: []int64{cached}, Mask: slices.Repeat([]int64{1}, int(cached)+1)}
	rng := rand.New(rand.NewPCG(3, 7))
	for _, c := range d.Caches {
		values := make([]float32, c.Heads*cached*c.Size)
		for i := range values {
			values[i] = float32(rng.NormFloat64())
		}
		step.Cache = append(step.Cache, engine.Float32s(values, 1, c.Heads, cached, c.Size))
	}
	out, _, err := d.Run(t.Context(), step)
	if err != nil {
		t.Fatal(err)
	}
	return out.Values()
}
