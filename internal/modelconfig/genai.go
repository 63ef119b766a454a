package modelconfig

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"path/filepath"

	"github.com/rope-rewrite/rope-rewrite/internal/configfile"
	"github.com/rope-rewrite/rope-rewrite/internal/links"
)

// GenAI is what genai_config.json says of a decoder. The zero value says nothing.
type GenAI struct {
	Path   string
	Unread error  // why what stands there says nothing
	File   string // the decoder's file, from the folder of genai_config.json; "" where it names none

	Context, Longest, Heads, KVHeads, HeadSize, Layers, Window Number // Longest is the number of tokens at which it stops
}

// ReadGenAI reads genai_config.json in the model's folder or the one above it; a
// missing one says nothing, and one that is a link out of its folder only with follow.
func ReadGenAI(modelPath string, follow bool) GenAI {
	const name = "genai_config.json"
	dir := filepath.Dir(modelPath)
	for _, folder := range []string{dir, filepath.Join(dir, "..")} {
		file := filepath.Join(folder, name)
		data, err := configfile.ReadIn(links.Folder{Path: folder, Follow: follow}, name, configfile.Config)
		switch {
		case errors.Is(err, fs.ErrNotExist):
		case err != nil:
			return GenAI{Path: file, Unread: err}
		default:
			return ParseGenAI(file, data)
		}
	}
	return GenAI{}
}

// ParseGenAI reads the contents of the file. What keeps them from being read is in Unread.
func ParseGenAI(name string, data []byte) GenAI {
	var file keys
	if err := json.Unmarshal(data, &file); err != nil {
		return GenAI{Path: name, Unread: fmt.Errorf("%s is not a configuration in JSON: %w", name, err)}
	}
	model := file.object("model")
	decoder := model.object("decoder")
	under := func(n Number, part string) Number {
		if n.Given() {
			n.Key = part + n.Key
		}
		return n
	}
	return GenAI{
		Path:     name,
		File:     decoder.text("filename"),
		Context:  under(model.number("context_length"), "model."),
		Longest:  under(file.object("search").number("max_length"), "search."),
		Heads:    under(decoder.number("num_attention_heads"), "model.decoder."),
		KVHeads:  under(decoder.number("num_key_value_heads"), "model.decoder."),
		HeadSize: under(decoder.number("head_size"), "model.decoder."),
		Layers:   under(decoder.number("num_hidden_layers"), "model.decoder."),
		Window:   under(decoder.object("sliding_window").number("window_size"), "model.decoder.sliding_window."),
	}
}

// Describes says whether the file speaks of a model, whose path is given from the folder of
// genai_config.json: it names the decoder's file, and other models may stand in the same folders.
func (g GenAI) Describes(model string) bool {
	switch {
	case g.Path == "" || g.Unread != nil:
		return false
	case g.File == "":
		return filepath.Base(model) == model
	}
	return path.Clean(g.File) == filepath.ToSlash(model)
}
