package eval

import (
	"context"

	"github.com/rope-rewrite/rope-rewrite/internal/short"
	"github.com/rope-rewrite/rope-rewrite/onnx"
	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/graph"
)

// Evaluator loads pieces of one graph.
type Evaluator struct {
	Graph *graph.Graph
	Loader
}

// Open extracts and loads the piece from boundaries to outputs. A refusal names the node
// at, and the piece as what says ("the mask").
func (e *Evaluator) Open(ctx context.Context, at *onnx.Node, what string, outputs, boundaries []string) (*Loaded, *graph.Refusal) {
	p, err := Extract(e.Graph, outputs, boundaries)
	if err != nil {
		return nil, graph.Refuse(at, "%s cannot be evaluated by itself: %v", what, err)
	}
	return e.OpenPiece(ctx, at, what, p)
}

// OpenPiece loads a piece. It refuses one that reads a size which the shape table does
// not have.
func (e *Evaluator) OpenPiece(ctx context.Context, at *onnx.Node, what string, p *Piece) (*Loaded, *graph.Refusal) {
	for _, s := range p.Sizes {
		if err := e.Table.Refused[s]; err != nil {
			return nil, graph.Refuse(at, "%s reads the size %q, which cannot be measured: %v", what, short.Name(s), err)
		}
		if _, ok := e.Table.Sizes[s]; !ok {
			return nil, graph.Refuse(at, "%s reads the size %q, which does not follow from batch, length and past", what, short.Name(s))
		}
	}
	s, err := e.Load(ctx, p)
	if err != nil {
		return nil, graph.Refuse(at, "%s does not load: %v", what, err)
	}
	return s, nil
}
