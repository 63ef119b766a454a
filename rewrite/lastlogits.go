package rewrite

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/rope-rewrite/rope-rewrite/onnx"
	"github.com/rope-rewrite/rope-rewrite/provenance"
	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/graph"
	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/lastlogits"
	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/lower"
	"github.com/rope-rewrite/rope-rewrite/rope"
)

// LogitsPlacesInput is the usual name of the graph input that says of which token of each
// row the logits are computed.
const LogitsPlacesInput = "logits_places"

// lastLogitsFeature makes the model compute the logits of one token per row: the last, or
// the one that an input names.
type lastLogitsFeature struct {
	input  string // int64 [batch] or [1]
	head   *lastlogits.Head
	tokens onnx.Dim // of the logits, as they were
}

// lastLogits is the feature that the options ask for, nil where they ask for none.
func lastLogits(m *onnx.Model, o Options) (feature, error) {
	if o.LogitsPlaces == "" {
		return nil, nil
	}
	const what, remedy = "the places of logits", "--logits last:input=NAME"
	if o.LogitsPlaces == o.Documents || o.FixedCapacity != 0 && o.LogitsPlaces == o.cacheLength() {
		return nil, nameTaken(o.LogitsPlaces, what, remedy)
	}
	if err := freeName(m, o.LogitsPlaces, what, remedy); err != nil {
		return nil, err
	}
	if v := m.Opset(""); v < lastlogits.OldestOpset {
		return nil, fmt.Errorf("the model is against version %d of the standard operators, and --logits last needs %d: give --opset %d too", v, lastlogits.OldestOpset, lastlogits.OldestOpset+1)
	}
	return &lastLogitsFeature{input: o.LogitsPlaces}, nil
}

func (f *lastLogitsFeature) edit() provenance.Edit {
	settings := []rope.Setting{{Name: "input", Value: rope.Text(f.input), From: rope.Given}}
	if f.head != nil {
		settings = append(settings, rope.Setting{Name: "output", Value: rope.Text(f.head.Output), From: rope.Measured})
		if f.tokens.Param != "" {
			settings = append(settings, rope.Setting{Name: "tokens", Value: rope.Text(f.tokens.Param), From: rope.Measured})
		} else {
			settings = append(settings, rope.Setting{Name: "tokens", Value: rope.Integer(f.tokens.Value), From: rope.Measured})
		}
	}
	return provenance.Edit{What: "logits", Given: "last:input=" + f.input, Settings: settings}
}

// check finds the head and proves that it works on each token by itself.
func (f *lastLogitsFeature) check(ctx context.Context, r *request, report *Report) error {
	eng, err := r.opts.engine()
	if err != nil {
		return err
	}
	defer eng.Close()
	if r.opts.Progress != nil {
		r.opts.Progress("proving the head")
	}
	g, err := graph.New(r.model)
	if err != nil {
		return err
	}
	if f.head, err = lastlogits.Find(g); err == nil {
		err = f.head.Prove(ctx, eng, g)
	}
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if err != nil {
		return &EditError{Layer: WholeModel, Err: fmt.Errorf("logits of single tokens: %w; leave --logits out", err)}
	}
	v := named(r.model.Graph.Outputs, f.head.Output)
	if len(v.Shape) == 3 {
		f.tokens = v.Shape[1]
	}
	return nil
}

func (*lastLogitsFeature) site(*onnx.Model, *edited) error { return nil }

func (*lastLogitsFeature) planned([]lower.Change) error { return nil }

func (f *lastLogitsFeature) finish(m *onnx.Model, _ []lower.Change) error {
	return f.head.Write(m, f.input)
}

// placesLogits reports whether an added input says of which tokens the logits are.
func (e *earlier) placesLogits(input string) bool {
	return slices.ContainsFunc(e.record.Edits, func(d provenance.Edit) bool {
		return d.What == "logits" && d.Setting("input").String() == input
	})
}

// undoLogits gives the model the logits of all tokens back, where an earlier rewrite left
// those of one.
func (e *earlier) undoLogits(m *onnx.Model) error {
	for _, d := range e.record.Edits {
		if d.What != "logits" {
			continue
		}
		tokens := onnx.Dim{Value: d.Setting("tokens").Integer()}
		if name := d.Setting("tokens"); name.Kind() == rope.Word {
			tokens = onnx.Dim{Param: name.String()}
		}
		if d.Setting("output").Kind() != rope.Word {
			return errors.New("the model's record does not say which output has the logits; start from the original file")
		}
		return lastlogits.Undo(m, d.Setting("input").String(), d.Setting("output").String(), tokens)
	}
	return nil
}
