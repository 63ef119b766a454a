package eval

import (
	"context"

	"github.com/rope-rewrite/rope-rewrite/onnx"
	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/graph"
)

// Evaluator measures sites of one graph.
type Evaluator struct {
	Graph    *graph.Graph
	Sections bool // a token may have several positions, of which each pair turns by one
	Loader
}

// Open extracts and loads the piece from cuts to outputs.
func (l *Evaluator) Open(ctx context.Context, at *onnx.Node, what string, outputs, cuts []string) (*Loaded, *graph.Refusal) {
	p, err := Extract(l.Graph, outputs, cuts)
	if err != nil {
		return nil, graph.Refuse(at, "%s cannot be evaluated by itself: %v", what, err)
	}
	return l.OpenPiece(ctx, at, what, p)
}

// OpenPiece loads a piece whose sizes are all known.
func (l *Evaluator) OpenPiece(ctx context.Context, at *onnx.Node, what string, p *Piece) (*Loaded, *graph.Refusal) {
	for _, s := range p.Sizes {
		if err := l.Table.Refused[s]; err != nil {
			return nil, graph.Refuse(at, "%s reads the size %q, which cannot be measured: %v", what, s, err)
		}
		if _, ok := l.Table.Sizes[s]; !ok {
			return nil, graph.Refuse(at, "%s reads the size %q, which does not follow from batch, length and past", what, s)
		}
	}
	s, err := l.Load(ctx, p)
	if err != nil {
		return nil, graph.Refuse(at, "%s does not load: %v", what, err)
	}
	return s, nil
}
