package drift

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"math/rand/v2"

	"github.com/rope-rewrite/rope-rewrite/internal/engine"
	"github.com/rope-rewrite/rope-rewrite/rewrite"
	"github.com/rope-rewrite/rope-rewrite/validate/capture"
)

// Options says what is measured. Shifts must be given, and Tokens or Length.
type Options struct {
	Rewrite rewrite.Options // the libraries and the worker that run the model; its Progress is told what is done
	Tokens  []int64         // one row, two at least; nil draws some
	Length  int             // of the drawn ones
	Shifts  []int64         // of all positions, each compared with none
}

// Row is the drift in one arithmetic at one shift.
type Row struct {
	Arithmetic Arithmetic `json:"arithmetic"`
	Shift      int64      `json:"shift"`
	Drift                 // summed over the layers
	Control    Drift      `json:"control"` // of freshly drawn queries and keys
	Layers     []Drift    `json:"layers"`  // in the order of Result.Layers
}

// Left is a layer that was not measured.
type Left struct {
	Layer  int    `json:"layer"`
	Reason string `json:"reason"`
}

// Result is what Run found.
type Result struct {
	Tokens int       `json:"tokens"`
	Layers []int     `json:"layers"` // that were measured
	Left   []Left    `json:"left"`   // that were not
	Rows   []Row     `json:"rows"`
	Op     []OpDrift `json:"op"`
	Advice string    `json:"advice"`
}

// Run measures the drift of a model's attention layers. The control are normal numbers with the
// mean square that the layer's own queries and keys have: what is different of those is then
// not their size.
func Run(ctx context.Context, model string, opts Options) (*Result, error) {
	m, err := capture.Open(ctx, model, capture.Options{Rewrite: opts.Rewrite})
	if err != nil {
		return nil, err
	}
	defer m.Close()
	eng, err := engine.Open(engine.Config{Runtime: opts.Rewrite.Evaluation.Runtime, Library: opts.Rewrite.Evaluation.Library}, opts.Rewrite.Evaluation.Worker)
	if err != nil {
		return nil, err
	}
	defer eng.Close()
	r, err := measure(ctx, eng, m, opts)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", model, err)
	}
	return r, nil
}

// measure does so for a loaded model; eng runs the op by itself.
func measure(ctx context.Context, eng engine.Engine, m *capture.Model, opts Options) (*Result, error) {
	progress := opts.Rewrite.Progress
	if progress == nil {
		progress = func(string) {}
	}
	progress("running the model")
	tokens := opts.Tokens
	if tokens == nil {
		tokens = random(m.Vocabulary, opts.Length)
	}
	if length := int64(len(tokens)); m.Capacity > 0 && m.Capacity < length {
		return nil, fmt.Errorf("its cache holds %d tokens, and %d are fed; give --length %d", m.Capacity, length, m.Capacity)
	}
	run, err := m.Run(ctx, capture.Tokens(tokens...))
	if err != nil {
		return nil, err
	}
	r := &Result{Tokens: len(tokens), Layers: []int{}, Left: []Left{}}
	for _, k := range m.Skipped {
		r.Left = append(r.Left, Left{k.Layer, k.Reason})
	}
	for _, a := range Arithmetics() {
		for _, shift := range opts.Shifts {
			r.Rows = append(r.Rows, Row{Arithmetic: a, Shift: shift})
		}
	}
	for _, v := range variants() {
		for _, shift := range opts.Shifts {
			r.Op = append(r.Op, OpDrift{Type: typeName(v.element), Precision: v.precision, Cache: v.cache, Shift: shift})
		}
	}
	for i, l := range run.Layers {
		if reason := Unfit(l.Problem); reason != "" {
			r.Left = append(r.Left, Left{l.Layer, reason})
			continue
		}
		progress(fmt.Sprintf("layer %d of %d", i+1, len(run.Layers)))
		r.Layers = append(r.Layers, l.Layer)
		if err := r.layer(ctx, l, opts.Shifts); err != nil {
			return nil, fmt.Errorf("layer %d: %w", l.Layer, err)
		}
		if err := runOp(ctx, eng, m.Ops[i].Op, l, opts.Shifts, r.Op); err != nil {
			return nil, fmt.Errorf("layer %d: %w", l.Layer, err)
		}
	}
	if len(r.Layers) == 0 {
		return nil, fmt.Errorf("no attention layer of the model can be measured: %s", r.Left[0].Reason)
	}
	for i := range r.Op {
		r.Op[i].Prompt /= float64(len(r.Layers))
		r.Op[i].Next /= float64(len(r.Layers))
	}
	r.Advice = advice(r.Op)
	return r, nil
}

// random draws tokens.
func random(vocabulary int64, length int) (ids []int64) {
	rng := rand.New(rand.NewPCG(3, 0))
	for range length {
		ids = append(ids, rng.Int64N(cmp.Or(vocabulary, 100)))
	}
	return ids
}

// layer adds what one layer drifts to the rows.
func (r *Result) layer(ctx context.Context, l capture.Layer, shifts []int64) error {
	control := l.Problem
	rng := rand.New(rand.NewPCG(17, uint64(l.Layer)))
	control.Query, control.Key = fresh(rng, l.Query), fresh(rng, l.Key)
	for i, arithmetic := range Arithmetics() {
		still, drawn := Turn(l.Problem, arithmetic, 0), Turn(control, arithmetic, 0)
		for s, shift := range shifts {
			if err := ctx.Err(); err != nil {
				return err
			}
			own, err := Compare(l.Problem, still, Turn(l.Problem, arithmetic, shift))
			if err != nil {
				return err
			}
			other, err := Compare(control, drawn, Turn(control, arithmetic, shift))
			if err != nil {
				return err
			}
			row := &r.Rows[i*len(shifts)+s]
			row.Layers = append(row.Layers, own)
			row.add(own)
			row.Control.add(other)
		}
	}
	return nil
}

// fresh draws as many normal numbers with the same mean square.
func fresh(rng *rand.Rand, like []float64) []float64 {
	var square float64
	for _, x := range like {
		square += x * x
	}
	size := math.Sqrt(square / float64(len(like)))
	out := make([]float64, len(like))
	for i := range out {
		out[i] = size * rng.NormFloat64()
	}
	return out
}
