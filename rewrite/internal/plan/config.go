package plan

import (
	"fmt"
	"math"
	"slices"

	"github.com/rope-rewrite/rope-rewrite/internal/modelconfig"
	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/analysis"
	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/ir"
	"github.com/rope-rewrite/rope-rewrite/rope"
)

// Config is what config.json beside a model says of its positions.
type Config struct{ modelconfig.Config }

// ReadConfig reads the file beside the model, unless its contents are given.
func ReadConfig(modelPath string, given []byte) Config {
	c := modelconfig.Read(modelPath)
	if given != nil {
		c = modelconfig.Parse(c.Path, given)
	}
	return Config{c}
}

// mended says whether one of the edits sets the base that the file names.
func (c Config) mended(specs []rope.Spec) bool {
	return slices.ContainsFunc(specs, func(s rope.Spec) bool { return s.Params["rope_theta"].Equal(rope.Number(c.Theta)) })
}

// compare returns warnings where the graph computes something else than the
// file says and no edit mends that. A model may have several bases; one that the
// file knows is enough. A scaling for all reaches the layers that reach says.
func (m Methods) compare(a *analysis.Analysis, reach scope) []string {
	c, layers := m.Config, layersOf(a, m.Config)
	if c.Path == "" {
		return nil
	}
	if c.Unread != nil {
		return []string{c.Unread.Error() + "; nothing is taken from it"}
	}
	var warnings []string
	agrees := false
	for _, f := range a.Measured() {
		measured := f.Attention.Measured
		if !measured.Rotary() {
			continue
		}
		base, ok := measured.Attention.Encoding.Base()
		switch {
		case ok && c.Scaled:
			warnings = append(warnings, fmt.Sprintf("%s asks for a scaling that the graph does not have: its frequencies follow rope_theta = %g unscaled", c.Path, base))
		case ok && c.Theta > 0 && math.Abs(base-c.Theta) > 1e-3*c.Theta:
			if specs, err := m.of(layers[f.Layer], reach.skipped[f.Layer]); err == nil && c.mended(specs) {
				continue
			}
			w := fmt.Sprintf("the graph rotates with rope_theta = %g, %s says %g: the export is probably wrong; --scaling theta:rope_theta=%g corrects it", base, c.Path, c.Theta, c.Theta)
			if c.Disagrees {
				w += " (that file has a second, older rope_theta which the exporter may have read)"
			}
			warnings = append(warnings, w)
		case !ok && !c.Scaled:
			warnings = append(warnings, fmt.Sprintf("the graph's frequencies follow no rope_theta (they are scaled), but %s asks for no scaling; the graph's frequencies are used", c.Path))
		default:
			agrees = true
		}
	}
	if agrees {
		return nil
	}
	return ir.Unique(warnings)
}
