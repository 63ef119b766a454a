package lm

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/rope-rewrite/rope-rewrite/internal/configfile"
	"github.com/rope-rewrite/rope-rewrite/lm/chat"
	"github.com/rope-rewrite/rope-rewrite/lm/tokenizer"
)

// Model is a language model with the files of its folder. It must not be used
// by several goroutines at once.
type Model struct {
	*Decoder
	Tokenizer  *tokenizer.Tokenizer
	Chat       *chat.Template // nil where the folder has none
	Generation Generation
}

// Open opens a model: its .onnx file, or the folder that it is in. tokenizer.json must be
// beside it; the chat template (chat_template.jinja or tokenizer_config.json) and
// generation_config.json or config.json are read if they are there. The ONNX Runtime library
// must have been initialised (customop.InitRuntime).
func Open(path string, options Options) (_ *Model, err error) {
	file, err := File(path)
	if err != nil {
		return nil, err
	}
	folder := options.Folder
	if folder == "" {
		folder = Folder(file)
	}
	m := &Model{}
	if m.Tokenizer, err = tokenizer.Open(folder); err != nil {
		return nil, err
	}
	if m.Chat, err = chat.Open(folder); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	if m.Generation, err = readGeneration(folder); err != nil {
		return nil, err
	}
	if m.Decoder, err = OpenDecoder(file, options); err != nil {
		return nil, err
	}
	if v := m.Vocabulary(); v > 0 && m.Tokenizer.Size() > v {
		err := fmt.Errorf("the tokenizer in %s has %d tokens, but the model has %d: it belongs to another model", folder, m.Tokenizer.Size(), v)
		return nil, errors.Join(err, m.Close())
	}
	return m, nil
}

// Folder is where tokenizer.json and the configurations of a model's file are: beside it, or
// above the folder onnx, as model hubs have it.
func Folder(file string) string {
	folder := filepath.Dir(file)
	if filepath.Base(folder) == "onnx" && !exists(filepath.Join(folder, "tokenizer.json")) {
		return filepath.Dir(folder)
	}
	return folder
}

// File is the .onnx file of a model where path is a folder: the one that genai_config.json
// names, or the only one there is. A file is itself.
func File(path string) (string, error) {
	info, err := os.Stat(path)
	if err != nil {
		return "", fmt.Errorf("there is no model %s: give an .onnx file or a folder with one (%w)", path, fs.ErrNotExist)
	}
	if !info.IsDir() {
		return path, nil
	}
	if name, err := genaiFile(path); name != "" || err != nil {
		return filepath.Join(path, name), err
	}
	for _, folder := range []string{path, filepath.Join(path, "onnx")} {
		files, err := filepath.Glob(filepath.Join(escaped(folder), "*.onnx"))
		if err != nil {
			return "", err
		}
		if len(files) == 1 {
			return files[0], nil
		}
		if len(files) > 1 {
			var names []string
			for _, f := range files {
				names = append(names, filepath.Base(f))
			}
			return "", fmt.Errorf("the folder %s has several models: name one of %s", folder, strings.Join(names, ", "))
		}
	}
	return "", fmt.Errorf("the folder %s has no .onnx file", path)
}

// escaped is a path in which Glob takes nothing for a pattern.
func escaped(path string) string {
	return strings.NewReplacer(`\`, `\\`, `*`, `\*`, `?`, `\?`, `[`, `\[`).Replace(path)
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

// Input is what a text is generated from: one of its fields.
type Input struct {
	Text     string         // as it stands, behind what the tokenizer puts in front of a text, such as BOS
	Messages []chat.Message // of a conversation, in the form of the model's chat template; the assistant answers
	Tokens   []int64
	Row      Row // of documents; what is generated belongs to the document of its last token
}

// Tokens are the token ids of an input.
func (m *Model) Tokens(in Input) ([]int64, error) {
	given := 0
	for _, is := range []bool{in.Text != "", len(in.Messages) > 0, len(in.Tokens) > 0, len(in.Row.Tokens) > 0} {
		if is {
			given++
		}
	}
	switch {
	case given == 0:
		return nil, errors.New("no prompt is given; give a text, messages, tokens or a row")
	case given > 1:
		return nil, errors.New("give one of a text, messages, tokens and a row")
	case in.Text != "":
		return m.Tokenizer.EncodeWithSpecial(in.Text)
	case len(in.Messages) > 0:
		return m.conversation(in.Messages)
	}
	return slices.Concat(in.Tokens, in.Row.Tokens), nil
}

// conversation is what the model's chat template makes of messages, up to where the assistant
// speaks.
func (m *Model) conversation(messages []chat.Message) ([]int64, error) {
	if m.Chat == nil {
		return nil, errors.New("the model's folder has no chat template; give a text in the model's format instead of messages")
	}
	text, err := m.Chat.Render(messages, chat.Options{AddGenerationPrompt: true})
	if err != nil {
		return nil, err
	}
	return m.Tokenizer.Encode(text) // the template writes what begins a text itself
}

// documents are the ids of an input's tokens: document 1 where it has none.
func (in Input) documents(tokens []int64) []int64 {
	if len(in.Row.Documents) > 0 {
		return in.Row.Documents
	}
	return slices.Repeat([]int64{1}, len(tokens))
}

// Begin computes a text that several others continue: a system message, or a long document.
// The logits are those after its last token. Take a Snapshot after it to return to it.
func (m *Model) Begin(ctx context.Context, in Input) (Logits, error) {
	tokens, err := m.Tokens(in)
	if err != nil {
		return Logits{}, err
	}
	if err := m.Reset(); err != nil {
		return Logits{}, err
	}
	return m.PrefillPacked(ctx, in.documents(tokens), tokens)
}

// genaiFile is the decoder that genai_config.json names, as ONNX Runtime GenAI's folders have
// it; "" where there is no such file.
func genaiFile(folder string) (string, error) {
	b, err := configfile.Read(filepath.Join(folder, "genai_config.json"), configfile.Config)
	if errors.Is(err, fs.ErrNotExist) {
		return "", nil
	}
	if err != nil {
		return "", err
	}
	var config struct {
		Model struct {
			Decoder struct {
				Filename string `json:"filename"`
			} `json:"decoder"`
		} `json:"model"`
	}
	if err := json.Unmarshal(b, &config); err != nil {
		return "", fmt.Errorf("%s: %w", filepath.Join(folder, "genai_config.json"), err)
	}
	name := config.Model.Decoder.Filename
	if name != "" && !filepath.IsLocal(name) {
		return "", fmt.Errorf("%s names the decoder %q, which is outside its folder", filepath.Join(folder, "genai_config.json"), name)
	}
	return name, nil
}
