package plan

import (
	"maps"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/analysis"
	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/measure"
	"github.com/rope-rewrite/rope-rewrite/rope"
)

// TestScalingScope: which layers a scaling for the whole model skips.
func TestScalingScope(t *testing.T) {
	const still, unmeasured = -1, -2
	types := `"layer_types": ["sliding_attention", "full_attention", "sliding_attention"]`
	for name, c := range map[string]struct {
		windows      []int64 // of each layer; 0 is none
		own          bool    // windowed layers have frequencies of their own
		rotationOnly bool
		config       string
		want         []int
	}{
		"own frequencies":                     {windows: []int64{8, 0, 8, 8, 0}, own: true, want: []int{0, 2, 3}},
		"the same frequencies":                {windows: []int64{8, 0, 8, 8, 0}},
		"none has a window":                   {windows: []int64{0, 0}},
		"all have a window":                   {windows: []int64{8, 8, 16}, own: true},
		"the others do not rotate":            {windows: []int64{8, still, 8}, own: true},
		"the others are unmeasured":           {windows: []int64{8, unmeasured, 8}, own: true},
		"unmeasured ones, types known":        {windows: []int64{8, unmeasured, 8}, own: true, config: `{` + types + `}`, want: []int{0, 2}},
		"one of three has a window":           {windows: []int64{8, still, 0}, own: true, want: []int{0}},
		"their type is scaled":                {windows: []int64{8, 0, 8}, own: true, config: `{` + types + `, "rope_parameters": {"sliding_attention": {"rope_type": "linear", "factor": 2}}}`},
		"the other type is scaled":            {windows: []int64{8, 0, 8}, config: `{` + types + `, "rope_parameters": {"full_attention": {"rope_type": "linear"}, "sliding_attention": {"rope_type": "default"}}}`, want: []int{0, 2}},
		"parameters for all":                  {windows: []int64{8, 0, 8}, config: `{` + types + `, "rope_parameters": {"rope_type": "linear", "rope_theta": 10000, "factor": null}}`},
		"parameters for all, own frequencies": {windows: []int64{8, 0, 8}, own: true, config: `{` + types + `, "rope_parameters": {"rope_type": "linear", "rope_theta": 10000}}`, want: []int{0, 2}},
		"types of another model":              {windows: []int64{8, 0}, config: `{` + types + `, "rope_parameters": {"sliding_attention": {"rope_type": "default"}}}`},
		"full layers alone, by its code":      {windows: []int64{8, 0, 8}, config: `{"model_type": "olmo3", ` + types + `}`, want: []int{0, 2}},
		"no mask is known":                    {windows: []int64{0, 0, 0}, rotationOnly: true},
		"no mask is known, but types are":     {windows: []int64{0, 0, 0}, own: true, rotationOnly: true, config: `{` + types + `}`, want: []int{0, 2}},
		"no mask is known, types are another": {windows: []int64{0, 0}, rotationOnly: true, config: `{` + types + `}`},
	} {
		dir := t.TempDir()
		if err := os.WriteFile(filepath.Join(dir, "config.json"), []byte(c.config), 0o600); err != nil {
			t.Fatal(err)
		}
		a := &analysis.Analysis{Sites: make([]analysis.Site, len(c.windows))}
		for i, w := range c.windows {
			a.Sites[i].Layer = i
			f := measure.Attention{Index: i, Measured: &measure.Measured{RotationOnly: c.rotationOnly}}
			f.Measured.Attention.Encoding.Frequencies, f.Measured.Attention.Mask = []float64{1, 0.01}, rope.Mask{Window: w}
			if c.own && (w > 0 || c.rotationOnly && i != 1) {
				f.Measured.Attention.Encoding.Frequencies = []float64{1, 0.03}
			}
			a.Sites[i].Attention = &f
			switch w {
			case still:
				f.Measured.Attention.Encoding.Frequencies = nil
			case unmeasured:
				a.Sites[i].Attention = nil // nothing of it was measured
			}
		}
		got := slices.Sorted(maps.Keys(scalingScope(a, ReadConfig(filepath.Join(dir, "model.onnx"), nil, false)).skipped))
		if !slices.Equal(got, c.want) {
			t.Errorf("%s: layers %v are skipped, %v was expected", name, got, c.want)
		}
	}
}
