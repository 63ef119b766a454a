package modelconfig

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"

	"github.com/rope-rewrite/rope-rewrite/internal/configfile"
)

// GenAI is what genai_config.json beside a model says of its decoder. The zero
// value says nothing.
type GenAI struct {
	Path   string
	Unread error    // why what stands there says nothing
	Files  []string // names of the decoder's files, in the model's folder

	Context, Heads, KVHeads, HeadSize, Layers, Window Number
}

// ReadGenAI reads genai_config.json in the model's folder; a missing one says
// nothing.
func ReadGenAI(modelPath string) GenAI {
	path := filepath.Join(filepath.Dir(modelPath), "genai_config.json")
	data, err := configfile.Read(path, configfile.Config)
	if errors.Is(err, fs.ErrNotExist) {
		return GenAI{}
	}
	if err != nil {
		return GenAI{Path: path, Unread: err}
	}
	return ParseGenAI(path, data)
}

// ParseGenAI reads the contents of the file. What keeps them from being read is in Unread.
func ParseGenAI(path string, data []byte) GenAI {
	var file keys
	if err := json.Unmarshal(data, &file); err != nil {
		return GenAI{Path: path, Unread: fmt.Errorf("%s is not a configuration in JSON: %w", path, err)}
	}
	model := file.object("model")
	decoder := model.object("decoder")
	under := func(n Number, part string) Number {
		if n.Given() {
			n.Key = part + n.Key
		}
		return n
	}
	g := GenAI{
		Path:     path,
		Context:  under(model.number("context_length"), "model."),
		Heads:    under(decoder.number("num_attention_heads"), "model.decoder."),
		KVHeads:  under(decoder.number("num_key_value_heads"), "model.decoder."),
		HeadSize: under(decoder.number("head_size"), "model.decoder."),
		Layers:   under(decoder.number("num_hidden_layers"), "model.decoder."),
		Window:   under(decoder.object("sliding_window").number("window_size"), "model.decoder.sliding_window."),
	}
	if name := decoder.text("filename"); name != "" {
		g.Files = append(g.Files, name)
	}
	return g
}

// Describes says whether the file speaks of this model: it names the decoder's file,
// and other models may stand in the same folder.
func (g GenAI) Describes(modelPath string) bool {
	if g.Path == "" || g.Unread != nil {
		return false
	}
	for _, name := range g.Files {
		if name == filepath.Base(modelPath) {
			return true
		}
	}
	return len(g.Files) == 0
}
