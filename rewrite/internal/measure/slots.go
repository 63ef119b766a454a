package measure

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"

	"github.com/rope-rewrite/rope-rewrite/internal/engine"
	"github.com/rope-rewrite/rope-rewrite/internal/short"
	"github.com/rope-rewrite/rope-rewrite/onnx"
	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/dim"
	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/eval"
	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/graph"
	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/site"
)

// Slots says how a site's cache of fixed size is written: new keys and values go to
// consecutive rows, from the one on that an input tells.
type Slots struct {
	Input *onnx.ValueInfo
	Rows  int64 // of the buffers; 0 where they may have any number

	// Consecutive says that the graph reads more of the input than its first number: what it
	// computes was measured for consecutive ones alone.
	Consecutive bool
}

// slotsKnown refuses a site whose cache has a fixed size where it cannot be said how it is
// written.
func slotsKnown(t *eval.ShapeTable, s *site.Sized) error {
	for _, b := range []site.Branch{s.Key, s.Value} {
		c := b.Cache
		if c == nil || c.Places == "" {
			continue
		}
		if t.Slots.Refused != nil {
			return refuseSlots(c, t.Slots.Refused)
		}
	}
	return nil
}

func refuseSlots(c *site.CacheUpdate, why error) error {
	return graph.Refuse(c.Concat, "its cache has a fixed size, and new keys and values are not known to be written right after the earlier tokens: %v. For methods that change only frequencies, give --target onnx; for others, export the model with a growing cache (--kv fixed then gives it a fixed capacity)", why)
}

// slotted checks that the caches of a site are written as a list is appended to: a call's
// keys and values go to the rows from the one on that the input tells, all other rows stay.
// It returns nil for a site whose cache grows.
func slotted(ctx context.Context, ev *eval.Evaluator, s *site.Sized, ly *site.Layouts) (*Slots, error) {
	if !ev.Table.Slotted() || s.Key.Cache == nil {
		return nil, nil
	}
	out := &Slots{Input: ev.Table.Slots.Input, Rows: ev.Table.Slots.Rows}
	for _, v := range []struct {
		cache *site.CacheUpdate
		rows  dim.Layout
	}{{s.Key.Cache, ly.KeyCached}, {s.Value.Cache, ly.ValueCached}} {
		c := v.cache
		if c.Places == "" {
			return nil, refuseSlots(c, fmt.Errorf("only one of key and value is written so"))
		}
		loaded, refusal := ev.Open(ctx, c.Concat, "its cache", []string{c.Present}, []string{c.Past, c.NewRows})
		if refusal != nil {
			return nil, refusal
		}
		w := writing{loaded, c, v.rows, rand.New(rand.NewPCG(19, 20))}
		err := w.appends(ctx, out)
		loaded.Session.Close()
		if err == nil {
			err = everyPlace(ctx, ev, c)
		}
		if err != nil {
			return nil, refuseSlots(c, err)
		}
	}
	return out, nil
}

// writing evaluates how rows are written into one cache.
type writing struct {
	*eval.Loaded
	cache *site.CacheUpdate
	rows  dim.Layout // of the new rows
	rng   *rand.Rand
}

// appends returns an error where a call writes otherwise than a list is appended to. It
// notes in out whether more than the input's first number counts.
func (w writing) appends(ctx context.Context, out *Slots) error {
	for _, v := range w.Piece.Inputs {
		if v.Name != out.Input.Name {
			return fmt.Errorf("it also depends on the input %q", short.Name(v.Name))
		}
	}
	calls := []dim.Point{{B: 1, L: 1}, {B: 2, L: 5}, {B: 3, L: 4, P: 6}, {B: 2, L: 1, P: 9}, {B: 1, L: 7, P: 2}, {B: 1, L: 1, P: dim.Longest}, {B: 2, L: 3, P: dim.Longest}}
	for call := range dim.SmallCalls {
		call.B = 2
		calls = append(calls, call)
	}
	for _, call := range calls {
		if n := w.Table.Slots.Rows; n > 0 {
			call.L = min(call.L, n)
			call.P = min(call.P, n-call.L)
		} else {
			call.P = min(call.P, 100)
		}
		places, err := w.Table.Places(call.L, call.P)
		if err != nil {
			return err
		}
		if err := w.appended(ctx, call, places); err != nil {
			return err
		}
		if places.Len() < 2 {
			continue
		}
		if places, err = w.Table.Scattered(w.rng, call); err != nil {
			return err
		}
		out.Consecutive = out.Consecutive || w.appended(ctx, call, places) != nil
	}
	return nil
}

// appended returns an error where a call that is told these places does not write to the
// rows from call.P on.
func (w writing) appended(ctx context.Context, call dim.Point, places engine.Tensor) error {
	run := w.Table.Around(call, 3)
	past, rows := dim.Evaluate(w.Table.Dims[w.cache.Past], run), dim.Evaluate(w.Table.Dims[w.cache.NewRows], run)
	numbers := func(name string, dims []int64) engine.Tensor {
		x := make([]float32, engine.Elements(dims))
		for i := range x {
			x[i] = float32(w.rng.IntN(1024) - 512) // exact in 16 bits too
		}
		return w.Piece.State(name, x, dims...)
	}
	feeds := map[string]engine.Tensor{w.cache.Past: numbers(w.cache.Past, past), w.cache.NewRows: numbers(w.cache.NewRows, rows)}
	if len(w.Piece.Inputs) > 0 {
		feeds[w.Piece.Inputs[0].Name] = places
	}
	result, err := w.Run(ctx, run, feeds)
	if err != nil {
		return err
	}
	got := result[w.cache.Present]
	if !slices.Equal(got.Dims, past) {
		return fmt.Errorf("%v rows become %v", past, got.Dims)
	}
	want, added := feeds[w.cache.Past].Values(), feeds[w.cache.NewRows].Values()
	for b := range past[0] {
		for h := range past[1] {
			for i := range call.L {
				for c := range past[3] {
					want[((b*past[1]+h)*past[2]+call.P+i)*past[3]+c] = added[w.rows.Index(rows, b, h, i, c)]
				}
			}
		}
	}
	for i, x := range got.Values() {
		if x != want[i] {
			row := int64(i) / past[3] % past[2]
			return fmt.Errorf("after a call with %d tokens that belong in the rows from %d on, row %d is not as expected", call.L, call.P, row)
		}
	}
	return nil
}

// mostPlaces is how many places of a single token are evaluated.
const mostPlaces = 4096

// everyPlace returns an error where the indices of a Scatter do not move on with the place of
// a token: each of them must be the same everywhere, or grow as the place does.
func everyPlace(ctx context.Context, ev *eval.Evaluator, c *site.CacheUpdate) error {
	loaded, err := ev.LoadFlat(ctx, []string{c.Places})
	if err != nil {
		return err
	}
	defer loaded.Session.Close()
	at := func(place int64) ([]float64, error) {
		feed, err := ev.Table.Places(1, place)
		if err != nil {
			return nil, err
		}
		run := ev.Table.Around(dim.Point{B: 1, L: 1, P: place}, 1)
		results, err := loaded.Run(ctx, run, map[string]engine.Tensor{ev.Table.Slots.Input.Name: feed})
		if err != nil {
			return nil, err
		}
		return results[c.Places+eval.FlatSuffix].Values(), nil
	}
	first, err := at(0)
	if err != nil {
		return err
	}
	second, err := at(1)
	if err != nil {
		return err
	}
	last := int64(mostPlaces)
	if n := ev.Table.Slots.Rows; n > 0 {
		last = min(last, n)
	}
	for place := range last {
		now, err := at(place)
		if err != nil {
			return err
		}
		for i, x := range now {
			if len(now) != len(first) || x != first[i]+float64(place)*(second[i]-first[i]) {
				return fmt.Errorf("token %d is written to row %g", place, x)
			}
		}
	}
	return nil
}
