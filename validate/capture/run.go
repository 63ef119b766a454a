package capture

import (
	"context"
	"fmt"

	"github.com/rope-rewrite/rope-rewrite/internal/decoder"
	"github.com/rope-rewrite/rope-rewrite/internal/engine"
	"github.com/rope-rewrite/rope-rewrite/rope/ref"
)

// Layer is what one attention read and gave. Query, Key, Value (before the rotation),
// Positions and the masks are the Problem's, with its shapes; so is Attention, as the node
// means it, after its methods.
type Layer struct {
	Layer int    // by the order of the attentions in the model, those not captured counted
	Node  string // the op's name
	ref.Problem
	Output []float64 // [Batch, Heads, Length, ValueSize]
}

// Run is one call of a model.
type Run struct {
	Layers []Layer       // those of Model.Ops
	Logits engine.Tensor // [Batch, Length, vocabulary], or the last token's [Batch, 1, vocabulary]
	Cache  decoder.Cache // for the next call
}

// Run runs the model on whole sequences, in one call.
func (c *Model) Run(ctx context.Context, s decoder.Sequence) (*Run, error) {
	return c.Step(ctx, decoder.Step{Batch: s.Batch, Length: s.Length, IDs: s.IDs, Mask: s.Mask, Documents: s.Documents, Positions: s.Positions})
}

// Step runs one call of the model, with the cache of the call before where there was one.
func (c *Model) Step(ctx context.Context, s decoder.Step) (*Run, error) {
	out, err := c.All(ctx, s)
	if err != nil {
		return nil, err
	}
	run := &Run{Logits: out[c.Logits], Cache: c.Present(out)}
	for i, op := range c.Ops {
		p, err := problem(op, c.taps[i], out)
		if err != nil {
			return nil, fmt.Errorf("layer %d: %w", op.Layer, err)
		}
		output := out[c.taps[i].output]
		run.Layers = append(run.Layers, Layer{Layer: op.Layer, Node: op.Node.Name, Problem: p, Output: heads(output, p.Attention.Heads)})
	}
	return run, nil
}
