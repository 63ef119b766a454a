package cli

import (
	"errors"

	"github.com/rope-rewrite/rope-rewrite/customop"
	"github.com/rope-rewrite/rope-rewrite/onnx"
	"github.com/rope-rewrite/rope-rewrite/rewrite/definition"
)

// OpsVersions is what ops version --json prints.
type OpsVersions struct {
	customop.LibraryInfo
	Writes int    `json:"writes"`          // newest specification that this command writes
	Model  string `json:"model,omitempty"` // as it was given
	Nodes  int    `json:"nodes,omitempty"` // of the op in the model
	Needs  int    `json:"needs,omitempty"` // specification that a library must know to run the model; 0 if it has no such node

	Fallback bool `json:"fallback,omitempty"` // the model has a fallback, so it also runs without a library
}

// Ask counts the op's nodes of a model and what they need.
func (v *OpsVersions) Ask(path string) error {
	model, err := onnx.Open(path)
	if err != nil {
		return err
	}
	defer model.Close()
	v.Model = path
	count := func(g *onnx.Graph) {
		for n := range g.AllNodes() {
			if n.Domain == customop.Domain {
				v.Nodes++
				v.Needs = max(v.Needs, int(n.Int("spec_version", 1)))
			}
		}
	}
	count(model.Graph)
	v.Fallback = definition.Of(model) != nil
	for _, f := range model.Functions {
		count(&onnx.Graph{Nodes: f.Nodes})
	}
	return nil
}

// BrieflyMissing leaves out the folders, which are already listed.
func BrieflyMissing(err error) error {
	if missing, ok := err.(*customop.NotFoundError); ok {
		return errors.New(missing.Brief())
	}
	return err
}
