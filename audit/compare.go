package audit

import (
	"cmp"
	"context"
	"path/filepath"

	"github.com/rope-rewrite/rope-rewrite/internal/modelconfig"
	"github.com/rope-rewrite/rope-rewrite/onnx"
	"github.com/rope-rewrite/rope-rewrite/rewrite"
)

// Configurations are the contents of the files that will stand beside a model; nil where there is none.
type Configurations struct {
	Config, GenAI []byte // config.json and genai_config.json

	// Model is the model's path from the folder of genai_config.json; "" is its file name.
	Model string
}

// Compare audits a model in memory, as Run would do after the model and its configurations are
// written.
func Compare(ctx context.Context, m *onnx.Model, beside Configurations, opts rewrite.Options) (*Report, error) {
	s := &subject{}
	if beside.Config != nil {
		s.claims.config = modelconfig.Parse("config.json", beside.Config)
	}
	if beside.GenAI != nil {
		s.claims.genai = modelconfig.ParseGenAI("genai_config.json", beside.GenAI)
	}
	s.claims.leaveOut(cmp.Or(beside.Model, filepath.Base(m.Path)))
	return s.audit(ctx, m, opts)
}

// leaveOut drops a genai_config.json that speaks of another model than this one, whose path is given from the
// folder of genai_config.json.
func (c *claims) leaveOut(model string) {
	if c.genai.Unread == nil && !c.genai.Describes(model) {
		c.genai = modelconfig.GenAI{}
	}
}
