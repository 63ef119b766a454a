package plan

import (
	"fmt"
	"maps"
	"math"
	"slices"

	"github.com/rope-rewrite/rope-rewrite/internal/modelconfig"
	"github.com/rope-rewrite/rope-rewrite/internal/ranges"
	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/analysis"
	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/ir"
	"github.com/rope-rewrite/rope-rewrite/rope"
)

// Config is what config.json beside a model says of its positions.
type Config struct{ modelconfig.Config }

// ReadConfig reads the file beside the model, unless its contents are given. A link out of its folder is followed only
// with follow.
func ReadConfig(modelPath string, given []byte, follow bool) Config {
	c := modelconfig.Read(modelPath, follow)
	if given != nil {
		c = modelconfig.Parse(c.Path, given)
	}
	return Config{c}
}

// mended says whether one of the edits sets the base that the file names.
func (c Config) mended(specs []rope.Spec) bool {
	return slices.ContainsFunc(specs, func(s rope.Spec) bool { return s.Params["rope_theta"].Equal(rope.Number(c.Theta)) })
}

// CheckTypes refuses a method for a type of layers where config.json, which names the types, cannot be read.
func (m Methods) CheckTypes() error {
	for _, e := range m.LayerEdits {
		if e.Type != "" && m.Config.Unread != nil {
			return fmt.Errorf("%v needs the types of layers, but the configuration that names them cannot be read: %w", e, m.Config.Unread)
		}
	}
	return nil
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
	var wrong []wrongBase
	agrees, rotary := false, 0
	for _, f := range a.Measured() {
		measured := f.Attention.Measured
		if !measured.Rotary() {
			continue
		}
		rotary++
		base, ok := measured.Attention.Encoding.Base()
		switch {
		case ok && c.Scaled && measured.Attention.Encoding.Turning() == len(measured.Attention.Encoding.Frequencies):
			warnings = append(warnings, fmt.Sprintf("%s names a scaling that the graph does not have: its frequencies follow rope_theta = %g unscaled", c.Path, base))
		case ok && c.Theta > 0 && math.Abs(base-c.Theta) > 1e-3*c.Theta:
			specs, err := m.of(layers[f.Layer], reach.skipped[f.Layer])
			if err == nil && c.mended(specs) {
				continue
			}
			wrong = addWrong(wrong, wrongBase{base, scalingAmong(specs), []int{f.Layer}})
		case !ok && !c.Scaled:
			warnings = append(warnings, fmt.Sprintf("the graph's frequencies are scaled (they follow no rope_theta), but %s names no scaling; the graph's frequencies are used", c.Path))
		default:
			agrees = true
		}
	}
	if agrees {
		return nil
	}
	for _, w := range wrong {
		warnings = append(warnings, c.wrong(w, len(w.layers) == rotary))
	}
	return ir.Unique(warnings)
}

// wrongBase are layers that rotate with another base than the file names.
type wrongBase struct {
	base    float64
	scaling rope.Spec // that is asked for in these layers; its Name is "" where none is
	layers  []int
}

// scalingAmong returns the scaling of frequencies among the methods of a layer.
func scalingAmong(specs []rope.Spec) rope.Spec {
	for _, s := range specs {
		if m, err := rope.Lookup(s.Axis, s.Name); err == nil && s.Axis == rope.ScalingAxis && m.Part != rope.TemperaturePart {
			return s
		}
	}
	return rope.Spec{}
}

// addWrong puts layers of one base and scaling together.
func addWrong(list []wrongBase, w wrongBase) []wrongBase {
	for i := range list {
		if to := &list[i]; to.base == w.base && text(to.scaling) == text(w.scaling) {
			to.layers = append(to.layers, w.layers...)
			return list
		}
	}
	return append(list, w)
}

// wrong is the warning of a base that differs, with what corrects it beside what is asked for.
func (c Config) wrong(w wrongBase, all bool) string {
	said := fmt.Sprintf("the graph rotates with rope_theta = %g, but %s says %g: the export is probably wrong; %s", w.base, c.Path, c.Theta, c.remedy(w, all))
	if c.Disagrees {
		said += " (the file also has an older rope_theta, which the exporter may have read)"
	}
	return said
}

// remedy says how to rewrite so that the layers have the base of the file. A layer has one scaling: the base
// is a parameter of the one that is asked for, where that takes a base.
func (c Config) remedy(w wrongBase, all bool) string {
	const key, most = "rope_theta", 120
	where := ""
	if !all {
		where = "@" + ranges.Text(w.layers)
	}
	base := fmt.Sprintf("%s=%g", key, c.Theta)
	asked := w.scaling
	m, err := rope.Lookup(rope.ScalingAxis, asked.Name)
	takes := err == nil && slices.ContainsFunc(m.Params, func(p rope.Param) bool { return p.Name == key })
	switch {
	case asked.Name == "":
		return fmt.Sprintf("--scaling theta:%s%s corrects it", base, where)
	case !takes:
		return fmt.Sprintf("--scaling theta:%s%s in place of %s corrects it", base, where, asked.Name)
	}
	asked.Params = maps.Clone(asked.Params)
	if asked.Params == nil {
		asked.Params = map[string]rope.Value{}
	}
	asked.Params[key] = rope.Number(c.Theta)
	if spec := asked.String(); len(spec) <= most {
		return fmt.Sprintf("--scaling %s%s corrects it", spec, where)
	}
	return fmt.Sprintf("%s in the parameters of %s corrects it", base, asked.Name)
}
