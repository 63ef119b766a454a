package chat

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/rope-rewrite/rope-rewrite/internal/configfile"
	"github.com/rope-rewrite/rope-rewrite/internal/links"
)

// Open reads the chat template of a model's folder, and the special tokens that it
// prints: chat_template.jinja with additional_chat_templates, else
// chat_template.json, else the chat_template of tokenizer_config.json. Of several
// the one named tool_use is for conversations with tools and the one named default
// for all others. The error wraps fs.ErrNotExist where the folder has none. A
// template that cannot be read is an error of Render, since a model can be used
// without it.
func Open(folder string) (*Template, error) {
	var config map[string]json.RawMessage
	if err := readJSON(filepath.Join(folder, "tokenizer_config.json"), &config); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	named, err := templates(folder, config)
	if err != nil {
		return nil, err
	}
	t := &Template{}
	if len(named) == 0 {
		return nil, fmt.Errorf("%s has no chat template: no chat_template.jinja, and no chat_template in tokenizer_config.json: %w", folder, fs.ErrNotExist)
	}
	if text, ok := named["default"]; ok {
		t.text = newVariant(text, "the chat template of "+folder)
	}
	if text, ok := named["tool_use"]; ok {
		t.tools = newVariant(text, "the chat template tool_use of "+folder)
	}
	if t.specials, err = specials(folder, config); err != nil {
		return nil, err
	}
	t.unset = unset(config, t.specials)
	return t, nil
}

// unset are the special tokens that the files say nothing of, where the tokenizer's
// class may have texts for them in Python.
func unset(config map[string]json.RawMessage, known map[string]string) []string {
	var class string
	if json.Unmarshal(config["tokenizer_class"], &class) != nil || slices.Contains([]string{"PreTrainedTokenizer", "PreTrainedTokenizerFast", "TokenizersBackend"}, class) {
		return nil // these have none
	}
	return slices.DeleteFunc([]string{"bos_token", "eos_token", "unk_token", "pad_token", "sep_token", "cls_token", "mask_token"}, func(name string) bool {
		_, written := config[name]
		_, found := known[name]
		return written || found
	})
}

// templates gives a folder's templates by name.
func templates(folder string, config map[string]json.RawMessage) (map[string]string, error) {
	named, err := files(folder)
	if err != nil || len(named) > 0 {
		return named, err
	}
	path := filepath.Join(folder, "chat_template.json")
	var processor map[string]json.RawMessage
	switch err := readJSON(path, &processor); {
	case errors.Is(err, fs.ErrNotExist):
		path = filepath.Join(folder, "tokenizer_config.json")
		processor = config
	case err != nil:
		return nil, err
	}
	raw, ok := processor["chat_template"]
	if !ok || string(raw) == "null" {
		return nil, nil
	}
	var text string
	if json.Unmarshal(raw, &text) == nil {
		return map[string]string{"default": text}, nil
	}
	var several []struct{ Name, Template *string }
	if json.Unmarshal(raw, &several) != nil {
		return nil, fmt.Errorf("%s: chat_template is neither a text nor a list of names and templates", path)
	}
	named = map[string]string{}
	for _, one := range several {
		if one.Name == nil || one.Template == nil {
			return nil, fmt.Errorf("%s: a chat_template of the list has no name or no template", path)
		}
		named[*one.Name] = *one.Template
	}
	return named, nil
}

// files reads the templates that have files of their own.
func files(folder string) (map[string]string, error) {
	paths := map[string]string{"default": "chat_template.jinja"}
	// Only these two are ever chosen, so other names are not read.
	for _, name := range []string{"tool_use", "default"} {
		path := filepath.Join("additional_chat_templates", name+".jinja")
		if _, err := os.Stat(filepath.Join(folder, path)); err == nil {
			paths[name] = path
		}
	}
	named := map[string]string{}
	for name, path := range paths {
		data, err := configfile.ReadIn(links.Folder{Path: folder}, path, configfile.Config)
		switch {
		case errors.Is(err, fs.ErrNotExist):
		case err != nil:
			return nil, fmt.Errorf("the chat template: %w", err)
		case !utf8.Valid(data):
			return nil, fmt.Errorf("%s is not UTF-8, so it is not a chat template", filepath.Join(folder, path))
		default:
			// Python reads a file's line ends as line feeds.
			named[name] = strings.NewReplacer("\r\n", "\n", "\r", "\n").Replace(string(data))
		}
	}
	return named, nil
}

// specials gives the special tokens by name. Of special_tokens_map.json they are
// taken where tokenizer_config.json has no table of all added tokens.
func specials(folder string, config map[string]json.RawMessage) (map[string]string, error) {
	found := map[string]string{}
	take := func(from map[string]json.RawMessage, suffix string) {
		for name, raw := range from {
			var text string
			var token struct{ Content *string }
			switch {
			case !strings.HasSuffix(name, suffix):
			case json.Unmarshal(raw, &text) == nil && string(raw) != "null":
				found[name] = text
			case json.Unmarshal(raw, &token) == nil && token.Content != nil:
				found[name] = *token.Content
			}
		}
	}
	take(config, "_token")
	var extra map[string]json.RawMessage
	if json.Unmarshal(config["extra_special_tokens"], &extra) == nil {
		take(extra, "")
	}
	if _, ok := config["added_tokens_decoder"]; !ok {
		var fromMap map[string]json.RawMessage
		if err := readJSON(filepath.Join(folder, "special_tokens_map.json"), &fromMap); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return nil, err
		}
		take(fromMap, "_token")
	}
	return found, nil
}

func readJSON(path string, into any) error {
	data, err := configfile.ReadBeside(path, configfile.Config)
	if err != nil {
		return err
	}
	if err := json.Unmarshal(data, into); err != nil {
		return fmt.Errorf("%s is not valid JSON of its kind: %w", path, err)
	}
	return nil
}
