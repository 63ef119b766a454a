package rewrite

import (
	"fmt"
	"math"
	"slices"

	"github.com/rope-rewrite/rope-rewrite/internal/modelconfig"
	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/ir"
	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/measure"
	"github.com/rope-rewrite/rope-rewrite/rope"
)

// modelConfig is what config.json beside a model says of its positions.
type modelConfig struct{ modelconfig.Config }

// readConfig reads the file beside the model, unless its contents are given.
func readConfig(modelPath string, given []byte) modelConfig {
	c := modelconfig.Read(modelPath)
	if given != nil {
		c = modelconfig.Parse(c.Path, given)
	}
	return modelConfig{c}
}

// mended says whether one of the edits sets the base that the file names.
func (c modelConfig) mended(specs []rope.Spec) bool {
	return slices.ContainsFunc(specs, func(s rope.Spec) bool { return s.Params["rope_theta"].Equal(rope.Number(c.Theta)) })
}

// compare returns warnings where the graph computes something else than the
// file says and no edit mends that. A model may have several bases; one that the
// file knows is enough. unscaled layers are left out of a scaling for all.
func (c modelConfig) compare(sites []measure.Attention, opts Options, unscaled map[int]bool) []string {
	if c.Path == "" {
		return nil
	}
	if c.Unread != nil {
		return []string{c.Unread.Error() + "; nothing is taken from it"}
	}
	var warnings []string
	agrees := false
	for _, f := range sites {
		if !f.Measured.Rotary() {
			continue
		}
		base, ok := f.Measured.Attention.Encoding.Base()
		switch {
		case ok && c.Scaled:
			warnings = append(warnings, fmt.Sprintf("%s asks for a scaling that the graph does not have: its frequencies follow rope_theta = %g unscaled", c.Path, base))
		case ok && c.Theta > 0 && math.Abs(base-c.Theta) > 1e-3*c.Theta:
			if specs, err := opts.editsOf(f.Index, c.LayerTypes, unscaled[f.Index]); err == nil && c.mended(specs) {
				continue
			}
			w := fmt.Sprintf("the graph rotates with rope_theta = %g, %s says %g: the export is probably wrong; --scaling theta:rope_theta=%g mends it", base, c.Path, c.Theta, c.Theta)
			if c.Disagrees {
				w += " (that file has a second, older rope_theta which the exporter may have read)"
			}
			warnings = append(warnings, w)
		case !ok && !c.Scaled:
			warnings = append(warnings, fmt.Sprintf("the graph's frequencies follow no rope_theta (they are scaled), but %s asks for no scaling; the graph is what counts", c.Path))
		default:
			agrees = true
		}
	}
	if agrees {
		return nil
	}
	return ir.Unique(warnings)
}
