package rewrite

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"path/filepath"
	"slices"

	"github.com/rope-rewrite/rope-rewrite/internal/sidefile"
	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/ir"
	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/measure"
	"github.com/rope-rewrite/rope-rewrite/rope"
)

// modelConfig is what config.json beside a model says of its positions. Its
// keys are Hugging Face's.
type modelConfig struct {
	path      string
	unread    error // why what stands there says nothing
	Theta     float64
	Original  int64 // tokens that the model was trained on
	scaled    bool  // it asks for a scaling other than the default
	disagrees bool  // it has two different rope_theta

	scaledTypes map[string]bool // types of layers for which it asks for a scaling

	LayerTypes []string // for example sliding_attention and full_attention; empty if it does not say
}

// readConfig reads config.json in the model's folder or the one above it
// (exports often stand in a folder onnx/); a missing one says nothing.
func readConfig(modelPath string) modelConfig {
	if modelPath == "" {
		return modelConfig{}
	}
	dir := filepath.Dir(modelPath)
	for _, path := range []string{filepath.Join(dir, "config.json"), filepath.Join(dir, "..", "config.json")} {
		data, err := sidefile.Read(path, sidefile.Config)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return modelConfig{path: path, unread: err}
		}
		type parameters struct {
			Theta    float64 `json:"rope_theta"`
			Type     string  `json:"rope_type"`
			Alias    string  `json:"type"`
			Original int64   `json:"original_max_position_embeddings"`
		}
		var file struct {
			Parameters *parameters `json:"rope_parameters"`
			Scaling    *parameters `json:"rope_scaling"`
			Theta      float64     `json:"rope_theta"`
			Length     int64       `json:"max_position_embeddings"`
			Original   int64       `json:"original_max_position_embeddings"` // where Phi-3 has it
			LayerTypes []string    `json:"layer_types"`
		}
		if err := json.Unmarshal(data, &file); err != nil {
			return modelConfig{path: path, unread: fmt.Errorf("%s is no configuration in JSON: %w", path, err)}
		}
		c := modelConfig{path: path, Theta: file.Theta, Original: file.Length, LayerTypes: file.LayerTypes, scaledTypes: scaledTypes(data)}
		c.scaled = len(c.scaledTypes) > 0
		if file.Original > 0 {
			c.Original = file.Original
		}
		for _, p := range []*parameters{file.Scaling, file.Parameters} {
			if p == nil {
				continue
			}
			if p.Original > 0 {
				c.Original = p.Original
			}
			for _, t := range []string{p.Type, p.Alias} {
				c.scaled = c.scaled || t != "" && t != "default"
			}
		}
		if p := file.Parameters; p != nil && p.Theta > 0 {
			c.disagrees = c.Theta > 0 && c.Theta != p.Theta
			c.Theta = p.Theta
		}
		return c
	}
	return modelConfig{}
}

// scaledTypes returns the types of layers for which config.json asks for a
// scaling, in parameters per type.
func scaledTypes(data []byte) map[string]bool {
	var file struct {
		Parameters map[string]json.RawMessage `json:"rope_parameters"`
	}
	if json.Unmarshal(data, &file) != nil {
		return nil
	}
	scaled := map[string]bool{}
	for kind, text := range file.Parameters {
		var parameters struct {
			Type string `json:"rope_type"`
		}
		if json.Unmarshal(text, &parameters) == nil && parameters.Type != "" && parameters.Type != "default" {
			scaled[kind] = true
		}
	}
	return scaled
}

// fill completes what a caller said of the model with what the file says.
func (c modelConfig) fill(known rope.Context) rope.Context {
	if known.Original == 0 {
		known.Original = c.Original
	}
	if known.Theta == 0 {
		known.Theta = c.Theta
	}
	return known
}

// mended says whether one of the edits sets the base that the file names.
func (c modelConfig) mended(specs []rope.Spec) bool {
	return slices.ContainsFunc(specs, func(s rope.Spec) bool { return s.Params["rope_theta"].Equal(rope.Number(c.Theta)) })
}

// compare returns warnings where the graph computes something else than the
// file says and no edit mends that. A model may have several bases; one that the
// file knows is enough. unscaled layers are left out of a scaling for all.
func (c modelConfig) compare(sites []measure.Attention, opts Options, unscaled map[int]bool) []string {
	if c.path == "" {
		return nil
	}
	if c.unread != nil {
		return []string{c.unread.Error() + "; nothing is taken from it"}
	}
	var warnings []string
	agrees := false
	for _, f := range sites {
		if !f.Measured.Rotary() {
			continue
		}
		base, ok := f.Measured.Attention.Encoding.Base()
		switch {
		case ok && c.scaled:
			warnings = append(warnings, fmt.Sprintf("%s asks for a scaling that the graph does not have: its frequencies follow rope_theta = %g unscaled", c.path, base))
		case ok && c.Theta > 0 && math.Abs(base-c.Theta) > 1e-3*c.Theta:
			if specs, err := opts.editsOf(f.Index, c.LayerTypes, unscaled[f.Index]); err == nil && c.mended(specs) {
				continue
			}
			w := fmt.Sprintf("the graph rotates with rope_theta = %g, %s says %g: the export is probably wrong; --scaling theta:rope_theta=%g mends it", base, c.path, c.Theta, c.Theta)
			if c.disagrees {
				w += " (that file has a second, older rope_theta which the exporter may have read)"
			}
			warnings = append(warnings, w)
		case !ok && !c.scaled:
			warnings = append(warnings, fmt.Sprintf("the graph's frequencies follow no rope_theta (they are scaled), but %s asks for no scaling; the graph is what counts", c.path))
		default:
			agrees = true
		}
	}
	if agrees {
		return nil
	}
	return ir.Unique(warnings)
}
