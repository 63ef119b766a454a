package capture

import (
	"context"
	"fmt"

	"github.com/rope-rewrite/rope-rewrite/internal/decoder"
	"github.com/rope-rewrite/rope-rewrite/rope/ref"
)

// Layer is what one attention layer read and gave. Query, Key, Value (before the rotation),
// Positions and the masks are the Problem's, with its shapes; so is Attention, as the node
// means it, after its methods.
type Layer struct {
	Layer int    // by the order of the attention layers in the model, also those that are not captured
	Node  string // the op's name
	ref.Problem
	Output []float64 // [Batch, Heads, Length, ValueSize]
}

// Input is what a model is fed in one call.
type Input struct {
	Batch, Length int64
	IDs           []int64 // [Batch, Length]
	Mask          []int64 // [Batch, past + Length], 0 for padding
	Positions     []int64 // [Batch, Length] or [axes, Batch, Length]
	Documents     []int64 // [Batch, past + Length]; nil puts every token into document 1
	Cache         Cache   // of the call before; the zero value for the first
}

// Tokens is the input of one row without padding, in one call.
func Tokens(ids ...int64) Input {
	in := Input{Batch: 1, Length: int64(len(ids)), IDs: ids}
	for i := range in.Length {
		in.Mask, in.Positions = append(in.Mask, 1), append(in.Positions, i)
	}
	return in
}

// Random draws rows of so many tokens: two, the second padded, or as many as the model takes.
func (m *Model) Random(length int64, seed uint64) Input {
	s := m.decoder.Random(length, length, seed)
	return Input{Batch: s.Batch, Length: s.Length, IDs: s.IDs, Mask: s.Mask, Positions: s.Positions, Documents: s.Documents}
}

// TakesPositions reports whether the model is fed position ids; else it counts tokens itself.
func (m *Model) TakesPositions() bool { return m.decoder.TakesPositions() }

// Cache is what a call leaves to the next one.
type Cache struct{ tensors decoder.Cache }

// Run is what one call gave.
type Run struct {
	Layers []Layer // those of Model.Ops
	Cache  Cache   // for the next call
}

// Run runs one call of the model.
func (m *Model) Run(ctx context.Context, in Input) (*Run, error) {
	out, err := m.decoder.All(ctx, decoder.Step{Batch: in.Batch, Length: in.Length, IDs: in.IDs, Mask: in.Mask, Positions: in.Positions, Documents: in.Documents, Cache: in.Cache.tensors})
	if err != nil {
		return nil, err
	}
	run := &Run{Cache: Cache{m.decoder.Present(out)}}
	for i, op := range m.Ops {
		p, err := problem(op, m.taps[i], out)
		if err != nil {
			return nil, fmt.Errorf("layer %d: %w", op.Layer, err)
		}
		output := out[m.taps[i].output]
		run.Layers = append(run.Layers, Layer{Layer: op.Layer, Node: op.Node.Name, Problem: p, Output: heads(output, p.Attention.Heads)})
	}
	return run, nil
}
