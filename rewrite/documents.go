package rewrite

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/rope-rewrite/rope-rewrite/onnx"
	"github.com/rope-rewrite/rope-rewrite/provenance"
	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/lower"
	"github.com/rope-rewrite/rope-rewrite/rope"
)

// DocumentsInput is the usual name of the graph input that holds document ids.
const DocumentsInput = "document_ids"

// documentsFeature gives masks over documents the ids that they go by: an input of
// the graph, or a count from the tokens.
type documentsFeature struct {
	input   string // int64 [batch, past + length]; "" adds none
	counter documentCounter
}

// documents is the feature that the options ask for, nil where they ask for none.
func documents(m *onnx.Model, o Options) (feature, error) {
	if o.Documents == "" && o.Separator == nil {
		return nil, nil
	}
	if err := freeName(m, o.Documents, "document ids", "--documents input:NAME"); err != nil {
		return nil, err
	}
	if o.Documents != "" && o.Separator != nil {
		return nil, errors.New("document ids come either from an input or from a separator; give one")
	}
	return &documentsFeature{input: o.Documents, counter: documentCounter{separator: o.Separator, made: map[string]bool{}}}, nil
}

func (d *documentsFeature) edit() provenance.Edit {
	if s := d.counter.separator; s != nil {
		return provenance.Edit{What: "documents", Given: s.String(), Settings: []rope.Setting{{Name: "token", Value: rope.Integer(s.Token), From: rope.Given}}}
	}
	return provenance.Edit{What: "documents", Given: "input:" + d.input, Settings: []rope.Setting{{Name: "input", Value: rope.Text(d.input), From: rope.Given}}}
}

func (*documentsFeature) check(context.Context, *request, *Report) error { return nil }

func (d *documentsFeature) site(_ *onnx.Model, e *edited) (err error) {
	e.extra.Documents = d.input
	if d.counter.separator != nil && e.want.Mask.Documents != rope.NoDocuments {
		e.extra.Documents, err = d.counter.ids(e.Attention, e.want.Mask)
	}
	return err
}

// planned refuses document ids that no site reads.
func (*documentsFeature) planned(changes []lower.Change) error {
	if !slices.ContainsFunc(changes, func(c lower.Change) bool { return c.Reads.Documents != rope.NoDocuments }) {
		return errors.New("nothing would read the document ids: give a --mask that goes by them (intra-document, intra-document-reset, anchor), or leave --documents away")
	}
	return nil
}

// finish adds the input, or what counts the documents.
func (d *documentsFeature) finish(m *onnx.Model, changes []lower.Change) error {
	if d.input != "" {
		m.Graph.AddInput(onnx.NewValueInfo(d.input, onnx.Int64, batchOf(m.Graph), tokensOf(changes)))
	}
	d.counter.write(m.Graph)
	return nil
}

// batchOf is the batch as the graph's inputs name it.
func batchOf(g *onnx.Graph) onnx.Dim {
	for _, v := range g.Inputs {
		if v.HasShape && len(v.Shape) > 1 {
			return v.Shape[0]
		}
	}
	return onnx.Dim{Param: "batch"}
}

// tokensOf is the number of all tokens as a padding mask names it.
func tokensOf(changes []lower.Change) onnx.Dim {
	for _, c := range changes {
		if c.Mask != nil && len(c.Mask.Shape) == 2 {
			return c.Mask.Shape[1]
		}
	}
	return onnx.Dim{Param: "document_tokens"}
}

// checkDocuments refuses a mask by document ids where there will be none.
func checkDocuments(m rope.Mask, documents string) error {
	if m.Documents != rope.NoDocuments && documents == "" {
		return errors.New("the mask goes by document ids, which the graph has not; give --documents input, which adds them as an input of the patched model, or --documents separator:TOKEN")
	}
	return nil
}

// freeName refuses the name of a new input that the graph has a value of.
func freeName(m *onnx.Model, name, what, remedy string) error {
	if name == "" {
		return nil // none is added
	}
	taken := named(m.Graph.Inputs, name) != nil || named(m.Graph.Outputs, name) != nil || m.Graph.Initializer(name) != nil
	for n := range m.Graph.AllNodes() {
		taken = taken || slices.Contains(n.Outputs, name)
	}
	if taken {
		return nameTaken(name, what, remedy)
	}
	return nil
}

func nameTaken(name, what, remedy string) error {
	return fmt.Errorf("the graph has a value named %q already, so the new input for %s needs another name (%s)", name, what, remedy)
}
