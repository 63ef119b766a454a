package modelconfig

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"strings"

	"github.com/rope-rewrite/rope-rewrite/internal/configfile"
	"github.com/rope-rewrite/rope-rewrite/internal/links"
	"github.com/rope-rewrite/rope-rewrite/rope"
)

// Config is what config.json beside a model says of its attention. Its keys are
// Hugging Face's. The zero value says nothing.
type Config struct {
	Path      string
	Unread    error   // why what stands there says nothing
	Theta     float64 // base of the frequencies; 0 is unknown
	Original  int64   // tokens that the model was trained on
	Scaled    bool    // it asks for a scaling other than the default
	Disagrees bool    // it has two different rope_theta

	TypedParameters []string        // types of layers that have parameters of their own
	ScaledTypes     map[string]bool // those of them for which it asks for a scaling

	// FullScaled says that the model's code gives a scaling to full-attention layers alone, though all
	// layers have the same frequencies without one: OLMo 3, whose Olmo3Model in transformers says so.
	FullScaled bool

	LayerTypes []string // for example sliding_attention and full_attention; empty if it does not say
	typesKey   string   // where they stand

	keys keys // all that stands there
}

// Read reads config.json in the model's folder or the one above it (exports often
// stand in a folder onnx/); a missing one says nothing, and one that is a link out of its folder only with follow.
func Read(modelPath string, follow bool) Config {
	if modelPath == "" {
		return Config{}
	}
	dir := filepath.Dir(modelPath)
	for _, folder := range []string{dir, filepath.Join(dir, "..")} {
		c := ReadIn(links.Folder{Path: folder, Follow: follow})
		if !errors.Is(c.Unread, fs.ErrNotExist) {
			return c
		}
	}
	return Config{}
}

// ReadIn reads config.json of a model's folder. What keeps it from being read is in Unread,
// which wraps fs.ErrNotExist if there is no such file.
func ReadIn(folder links.Folder) Config {
	const name = "config.json"
	data, err := configfile.ReadIn(folder, name, configfile.Config)
	return parsed(filepath.Join(folder.Path, name), data, err)
}

// ReadFile reads a configuration that the user named.
func ReadFile(path string) Config {
	data, err := configfile.Read(path, configfile.Config)
	return parsed(path, data, err)
}

func parsed(path string, data []byte, err error) Config {
	if err != nil {
		return Config{Path: path, Unread: err}
	}
	return Parse(path, data)
}

// Parse reads the contents of a configuration. What keeps them from being read is in Unread.
func Parse(path string, data []byte) Config {
	c, err := parse(data)
	if err != nil {
		return Config{Path: path, Unread: fmt.Errorf("%s is not a configuration in JSON: %w", path, err)}
	}
	c.Path = path
	return c
}

func parse(data []byte) (Config, error) {
	type parameters struct {
		Theta    float64 `json:"rope_theta"`
		Type     string  `json:"rope_type"`
		Alias    string  `json:"type"`
		Original int64   `json:"original_max_position_embeddings"`
	}
	var file struct {
		Parameters *parameters     `json:"rope_parameters"`
		Scaling    *parameters     `json:"rope_scaling"`
		Theta      json.RawMessage `json:"rope_theta"`
		Length     int64           `json:"max_position_embeddings"`
		Original   int64           `json:"original_max_position_embeddings"` // where Phi-3 has it
		ModelType  string          `json:"model_type"`
	}
	k, err := readKeys(data)
	if err != nil {
		return Config{}, err
	}
	merged, err := json.Marshal(k) // a language model's own part counts
	if err != nil {
		return Config{}, err
	}
	if err := json.Unmarshal(merged, &file); err != nil {
		return Config{}, err
	}
	if one, list := 0.0, []float64(nil); len(file.Theta) > 0 && json.Unmarshal(file.Theta, &one) != nil && json.Unmarshal(file.Theta, &list) != nil {
		return Config{}, fmt.Errorf("rope_theta is %.60s, expected a number", strings.Join(strings.Fields(string(file.Theta)), " "))
	}
	theta := keys{"": file.Theta}.number("").Value // 0 where each layer has its own
	c := Config{Theta: theta, Original: file.Length, FullScaled: file.ModelType == "olmo3", keys: k}
	c.LayerTypes, c.typesKey = k.kinds()
	c.TypedParameters, c.ScaledTypes = typedParameters(data)
	older, other, _ := k.olderScaling()
	c.Scaled = len(c.ScaledTypes) > 0 || older != nil || other != ""
	if file.Original > 0 {
		c.Original = file.Original
	}
	for _, p := range []*parameters{file.Scaling, file.Parameters} {
		if p == nil {
			continue
		}
		if p.Original > 0 && p.Type != "dynamic" && p.Alias != "dynamic" { // which takes max_position_embeddings
			c.Original = p.Original
		}
		for _, t := range []string{p.Type, p.Alias} {
			c.Scaled = c.Scaled || t != "" && t != "default" && t != "mrope"
		}
	}
	if p := file.Parameters; p != nil && p.Theta > 0 {
		c.Disagrees = c.Theta > 0 && c.Theta != p.Theta
		c.Theta = p.Theta
	}
	return c, nil
}

// typedParameters returns the types of layers that have parameters of their own, and those of them that are
// scaled.
func typedParameters(data []byte) (types []string, scaled map[string]bool) {
	var file struct {
		Parameters map[string]json.RawMessage `json:"rope_parameters"`
	}
	if json.Unmarshal(data, &file) != nil {
		return nil, nil
	}
	scaled = map[string]bool{}
	for kind, text := range file.Parameters {
		var parameters struct {
			Type string `json:"rope_type"`
		}
		if !bytes.HasPrefix(text, []byte("{")) || json.Unmarshal(text, &parameters) != nil {
			continue // a parameter for all layers
		}
		types = append(types, kind)
		if parameters.Type != "" && parameters.Type != "default" {
			scaled[kind] = true
		}
	}
	return types, scaled
}

// Fill completes what a caller said of the model with what the file says.
func (c Config) Fill(known rope.Context) rope.Context {
	if known.Original == 0 {
		known.Original = c.Original
	}
	if known.Theta == 0 {
		known.Theta = c.Theta
	}
	return known
}
