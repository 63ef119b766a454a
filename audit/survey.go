package audit

import (
	"context"
	"errors"

	"github.com/rope-rewrite/rope-rewrite/onnx"
	"github.com/rope-rewrite/rope-rewrite/rewrite"
	"github.com/rope-rewrite/rope-rewrite/rope"
)

// Survey says what the attention layers of a model compute, whoever wrote it: those of an exporter
// are measured by package rewrite, those of this project are read from the nodes of its op.
type Survey struct {
	Layers []Layer
	Fused  bool // the layers are nodes of this project's op

	// Positions is how many positions the tables of cosines and sines have, 0 where there are none.
	Positions int64
}

// Layer is one attention layer.
type Layer struct {
	Node  string
	Scope string // the graph inside a node that it stands in; "" is the model's own
	Place int    // among the layers of its scope, in the graph's order

	Attention    *rope.Attention // nil where it could not be measured; HeadSize 0 is unknown
	RotationOnly bool            // nothing but Attention.Encoding was measured
	Reason       string          // why, where not all was measured

	HasSinks bool
}

// Look looks at a model. The options say how it is evaluated; a model without rotary
// attention has no layers.
func Look(ctx context.Context, m *onnx.Model, opts rewrite.Options) (*Survey, error) {
	s := &Survey{Positions: tablePositions(m.Graph)}
	opts.Edits, opts.LayerEdits = nil, nil
	opts.Target = rewrite.PlainONNX // measures a rotation where it cannot measure the attention around it
	report, err := rewrite.Inspect(ctx, m, opts)
	if err != nil && !errors.Is(err, rewrite.ErrNoAttention) {
		return nil, err
	}
	s.Fused = report.Again
	for _, site := range report.Sites {
		if n := site.TablePositions; n > 0 && (s.Positions == 0 || n < s.Positions) {
			s.Positions = n
		}
		switch {
		case site.ScoresOnly: // what the op does is not the whole attention
			site.Attention = nil
		case site.CrossAttention && site.Attention != nil:
			site.Attention, site.Reason = nil, "cross-attention has no rotation"
		}
		s.Layers = append(s.Layers, Layer{Node: site.Node, Scope: site.Scope, Attention: site.Attention, RotationOnly: site.RotationOnly,
			Reason: reason(site), HasSinks: site.Attention != nil && site.Attention.Sinks != nil})
	}
	s.number()
	return s, err
}

// reason says why not all of a layer is known.
func reason(site rewrite.Site) string {
	if site.Reason == "" && site.Attention != nil && site.Attention.HeadSize == 0 {
		return "the op's node does not show it, and the model has no record of the rewrite"
	}
	return site.Reason
}

// number gives the layers their places.
func (s *Survey) number() {
	places := map[string]int{}
	for i := range s.Layers {
		l := &s.Layers[i]
		l.Place = places[l.Scope]
		places[l.Scope]++
	}
}
