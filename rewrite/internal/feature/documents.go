package feature

import (
	"context"
	"errors"
	"slices"

	"github.com/rope-rewrite/rope-rewrite/onnx"
	"github.com/rope-rewrite/rope-rewrite/provenance"
	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/plan"
	"github.com/rope-rewrite/rope-rewrite/rope"
)

func (a Asked) checkDocuments(m *onnx.Model, frees func(string) bool, _ int64) error {
	if a.Documents != "" && a.Separator != nil {
		return errors.New("document ids come from an input or from a separator; give only one")
	}
	return freeName(m, frees, a.Documents, "document ids", "--documents input:NAME")
}

// documents gives masks over documents the ids that they go by: an input of the graph, or a count from
// the tokens.
func documents(_ context.Context, asked Asked, _ Subject) (*plan.Feature, error) {
	input, counter := asked.Documents, documentCounter{separator: asked.Separator, made: map[string]bool{}}
	if input == "" && asked.Separator == nil {
		return nil, nil
	}
	edit := provenance.Edit{What: "documents", Given: "input:" + input, Settings: []rope.Setting{{Name: "input", Value: rope.Text(input), From: rope.Given}}}
	if s := asked.Separator; s != nil {
		edit = provenance.Edit{What: "documents", Given: s.String(), Settings: []rope.Setting{{Name: "token", Value: rope.Integer(s.Token), From: rope.Given}}}
	}
	return &plan.Feature{
		Edit: edit,
		Extra: func(s *plan.Site) (err error) {
			s.Extra.Documents = input
			if asked.Separator != nil && s.Want.Mask.Documents != rope.NoDocuments {
				s.Extra.Documents, err = counter.ids(s.Attention, s.Want.Mask)
			}
			return err
		},
		Check: func(sites []*plan.Site) error {
			if slices.ContainsFunc(sites, func(s *plan.Site) bool { return s.Want.Mask.Documents != rope.NoDocuments }) {
				return nil
			}
			return errors.New("no mask uses the document ids; give a --mask that uses them (intra-document, intra-document-reset, anchor), or drop --documents")
		},
		Write: func(m *onnx.Model, sites []*plan.Site) error {
			if input != "" {
				m.Graph.AddInput(onnx.NewValueInfo(input, onnx.Int64, batchOf(m.Graph), tokensOf(sites)))
			}
			counter.write(m.Graph)
			return nil
		},
	}, nil
}

// tokensOf is the number of all tokens as a padding mask names it.
func tokensOf(sites []*plan.Site) onnx.Dim {
	for _, s := range sites {
		if mask := s.Change.Mask; mask != nil && len(mask.Shape) == 2 {
			return mask.Shape[1]
		}
	}
	return onnx.Dim{Param: "document_tokens"}
}
