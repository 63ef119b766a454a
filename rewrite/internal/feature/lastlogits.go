package feature

import (
	"context"
	"fmt"

	"github.com/rope-rewrite/rope-rewrite/onnx"
	"github.com/rope-rewrite/rope-rewrite/provenance"
	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/graph"
	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/ir"
	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/lastlogits"
	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/plan"
	"github.com/rope-rewrite/rope-rewrite/rope"
)

func (a Asked) checkLastLogits(m *onnx.Model, frees func(string) bool, opset int64) error {
	if a.LogitsPlaces == "" {
		return nil
	}
	const what, remedy = "the places of logits", "--logits last:input=NAME"
	if a.LogitsPlaces == a.Documents || a.FixedCapacity != 0 && a.LogitsPlaces == a.CacheLength {
		return nameTaken(a.LogitsPlaces, what, remedy)
	}
	if err := freeName(m, frees, a.LogitsPlaces, what, remedy); err != nil {
		return err
	}
	if opset < lastlogits.OldestOpset {
		return fmt.Errorf("the model uses opset %d, and --logits last needs opset %d: give --opset %d too", opset, lastlogits.OldestOpset, lastlogits.OldestOpset+1)
	}
	return nil
}

// lastLogits makes the model compute the logits of one token per row: the last, or the one that an
// input names. It finds the head and proves that it works on each token by itself.
func lastLogits(ctx context.Context, asked Asked, s Subject) (*plan.Feature, error) {
	input := asked.LogitsPlaces
	if input == "" {
		return nil, nil
	}
	eng, err := s.Engine.Get()
	if err != nil {
		return nil, err
	}
	if s.Progress != nil {
		s.Progress("verifying the logits of single tokens")
	}
	g, err := graph.New(s.Model)
	if err != nil {
		return nil, err
	}
	head, err := lastlogits.Find(g)
	if err == nil {
		err = head.Prove(ctx, eng, g)
	}
	if ctx.Err() != nil {
		return nil, ctx.Err()
	}
	if err != nil {
		return nil, &plan.LayerError{Layer: plan.WholeModel, Err: fmt.Errorf("logits of single tokens: %w; drop --logits", err)}
	}
	var tokens onnx.Dim // of the logits, as they were
	if v := ir.Named(s.Model.Graph.Outputs, head.Output); len(v.Shape) == 3 {
		tokens = v.Shape[1]
	}
	count := rope.Integer(tokens.Value)
	if tokens.Param != "" {
		count = rope.Text(tokens.Param)
	}
	return &plan.Feature{
		Edit: provenance.Edit{What: "logits", Given: "last:input=" + input, Settings: []rope.Setting{
			{Name: "input", Value: rope.Text(input), From: rope.Given},
			{Name: "output", Value: rope.Text(head.Output), From: rope.Measured},
			{Name: "tokens", Value: count, From: rope.Measured},
		}},
		Write: func(m *onnx.Model, _ []*plan.Site) error { return head.Write(m, input) },
	}, nil
}
