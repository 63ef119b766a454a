package lm

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"

	"github.com/rope-rewrite/rope-rewrite/internal/links"
	"github.com/rope-rewrite/rope-rewrite/internal/modelfiles"
	"github.com/rope-rewrite/rope-rewrite/internal/short"
	"github.com/rope-rewrite/rope-rewrite/lm/chat"
	"github.com/rope-rewrite/rope-rewrite/lm/tokenizer"
)

// Model is a language model with what stands beside it in its folder. Many goroutines may use it at the same
// time: weights are loaded once, and each text has a cache or a row of one.
type Model struct {
	Tokenizer  *tokenizer.Tokenizer
	Chat       *chat.Template // nil where the folder has none
	Generation Generation

	decoder *Decoder
	context int // 0 is any number
	texts   generator
	reading chan struct{} // of as many inputs as there are rows, tokens are made at the same time; nil is any number
	chosen  atomic.Uint64 // tokens
}

// generator computes texts for many callers.
type generator interface {
	// generate computes a row, lets choose take a token by its logits, gives it to yield, and goes on behind it
	// until a token has Finish, yield wants no more, or something fails.
	generate(ctx context.Context, row Row, choose chooseToken, yield func(Token) bool) error
	load() Load
	close() error
}

// chooseToken takes the token after the logits.
type chooseToken func(logits []float32) (Token, error)

// Open opens a model: its .onnx file, or the folder that it stands in. Beside it are
// tokenizer.json, which must be there, the chat template (chat_template.jinja or
// tokenizer_config.json), and generation_config.json, genai_config.json or config.json, where it has them. The ONNX
// Runtime library must have been initialised (customop.InitRuntime).
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
	if m.decoder, err = OpenDecoder(file, options); err != nil {
		return nil, err
	}
	if v := m.decoder.Vocabulary(); v > 0 && m.Tokenizer.Size() > v {
		err := fmt.Errorf("the tokenizer in %s has %d tokens, but the model has %d: it belongs to another model", folder, m.Tokenizer.Size(), v)
		return nil, errors.Join(err, m.decoder.Close())
	}
	m.context = m.Generation.context
	if options.Context != 0 {
		m.context = max(0, options.Context)
	}
	if m.texts, err = newGenerator(m.decoder, options); err != nil {
		return nil, errors.Join(err, m.decoder.Close())
	}
	if options.Rows > 0 {
		m.reading = make(chan struct{}, options.Rows)
	}
	return m, nil
}

func newGenerator(d *Decoder, options Options) (generator, error) {
	queue := options.Queue
	if queue == 0 {
		queue = 4 * options.Rows
	}
	switch {
	case options.Rows < 0 || options.Queue < 0:
		return nil, fmt.Errorf("%d rows and a queue of %d: expected numbers of at least 0", options.Rows, options.Queue)
	case options.Rows < 2 || d.signature.Rows == 0:
		return newPool(d, options.Rows, queue), nil
	case d.whole:
		return nil, errors.New("the model's frequencies depend on the length of a call, which several rows share: leave Rows at 0 or 1, or rewrite the model with length=context")
	}
	return newScheduler(d, options.Rows, queue)
}

// Close frees the model. Texts in the making end with ErrClosed.
func (m *Model) Close() error { return errors.Join(m.texts.close(), m.decoder.Close()) }

// Decoder is the model without what stands beside it. The model's Close closes it.
func (m *Model) Decoder() *Decoder { return m.decoder }

// ContextLength is the most tokens of a text, prompt and answer together: the capacity of the cache, or what
// the configuration says (Options.Context stands in for that); 0 where nothing says it.
func (m *Model) ContextLength() int {
	capacity := m.decoder.Capacity()
	if m.context == 0 || capacity > 0 && capacity < m.context {
		return capacity
	}
	return m.context
}

// room refuses a text that is longer than the context, before anything is computed.
func (m *Model) room(tokens int) error {
	capacity := m.decoder.Capacity()
	switch {
	case capacity > 0 && tokens > capacity:
		return &ContextError{Tokens: tokens, Context: capacity, Cache: true}
	case m.context > 0 && tokens > m.context:
		return &ContextError{Tokens: tokens, Context: m.context}
	}
	return nil
}

// Load is what a model does at the moment, and what it has done so far.
type Load struct {
	Rows             int // texts that can be generated at the same time; 0 is any number
	Running, Waiting int // texts in a row, and callers that wait for one

	Computed, Reused, Generated uint64 // tokens of prompts that were computed, and found in a cache; tokens of answers
}

// Load says what the model does at the moment.
func (m *Model) Load() Load {
	l := m.texts.load()
	l.Generated = m.chosen.Load()
	return l
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

// File is the .onnx file of a model where path is a folder: the decoder that genai_config.json or
// export.json names, or the only one there is, but for those that rope-rewrite made from it. A file is itself.
func File(path string) (string, error) {
	info, err := os.Stat(path)
	if err != nil {
		return "", fmt.Errorf("there is no model %s: give an .onnx file or a folder with one (%w)", path, fs.ErrNotExist)
	}
	if !info.IsDir() {
		return path, nil
	}
	if name, err := namedFile(path); name != "" || err != nil {
		return filepath.Join(path, name), err
	}
	for _, folder := range []string{path, filepath.Join(path, "onnx")} {
		files, err := filepath.Glob(filepath.Join(escaped(folder), "*.onnx"))
		if err != nil {
			return "", err
		}
		for i, f := range files {
			files[i] = filepath.Base(f)
		}
		names, _ := modelfiles.Apart(links.Folder{Path: folder}, files)
		if len(names) == 1 {
			return filepath.Join(folder, names[0]), nil
		}
		if len(names) > 1 {
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

// Input is what a text is generated from: a text, messages, tokens or a row.
type Input struct {
	Text     string         // as it stands, behind what the tokenizer puts in front of a text, such as BOS
	Messages []chat.Message // of a conversation, in the form of the model's chat template; what they say is no special token
	Chat     chat.Options   // tools, documents and variables of the template, beside Messages
	Tokens   []int64
	Row      Row // of documents; what is generated belongs to the document of its last token
}

// Tokens are the token ids of an input. Of as many inputs as there are rows (Options.Rows) they are made at the same time, and others
// wait. A text whose number of bytes shows that it is longer than the context is refused with a *ContextError before anything is done
// with it; of others the caller sees it. The work ends with ctx.
func (m *Model) Tokens(ctx context.Context, in Input) ([]int64, error) {
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
	case in.Text == "" && len(in.Messages) == 0:
		return slices.Concat(in.Tokens, in.Row.Tokens), nil
	}
	leave, err := m.read(ctx)
	if err != nil {
		return nil, err
	}
	defer leave()
	if in.Text != "" {
		return m.encode(ctx, in.Text, tokenizer.Options{Special: true})
	}
	return m.conversation(ctx, in)
}

// read waits until one text more may be read.
func (m *Model) read(ctx context.Context) (leave func(), err error) {
	if m.reading == nil {
		return func() {}, nil
	}
	select {
	case m.reading <- struct{}{}:
		return func() { <-m.reading }, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// encode is the tokenizer's, for texts that fit into the context.
func (m *Model) encode(ctx context.Context, text string, o tokenizer.Options) ([]int64, error) {
	o.Most = m.ContextLength()
	tokens, err := m.Tokenizer.EncodeWith(ctx, text, o)
	var long *tokenizer.LengthError
	if errors.As(err, &long) {
		err = m.room(long.Least)
		var refused *ContextError
		if errors.As(err, &refused) {
			refused.AtLeast = true
		}
	}
	return tokens, err
}

// conversation is what the model's chat template makes of messages, up to where the assistant
// speaks.
func (m *Model) conversation(ctx context.Context, in Input) ([]int64, error) {
	if m.Chat == nil {
		return nil, ErrNoTemplate
	}
	options := in.Chat
	options.AddGenerationPrompt = !options.ContinueFinalMessage
	text, err := m.Chat.RenderGuarded(in.Messages, options, m.Tokenizer.Specials())
	if err != nil {
		return nil, err
	}
	return m.encode(ctx, text.Text, tokenizer.Options{Guarded: text.Guarded}) // the template writes what begins a text itself
}

// namedFile is the decoder that a folder's own description names: genai_config.json's, or the component
// "decode" of the export.json that transformers' exporter writes.
func namedFile(folder string) (string, error) {
	genai, err := readGenAI(folder)
	if err != nil {
		return "", err
	}
	var exported struct {
		Components map[string]struct {
			File string `json:"file"`
		} `json:"components"`
	}
	if err := readJSON(filepath.Join(folder, "export.json"), &exported); err != nil {
		return "", err
	}
	for _, said := range []struct{ by, name string }{
		{"genai_config.json", genai.Model.Decoder.Filename}, {"export.json", exported.Components["decode"].File},
	} {
		if said.name != "" && !filepath.IsLocal(said.name) {
			return "", fmt.Errorf("%s names the decoder %q, which is outside its folder", filepath.Join(folder, said.by), short.Name(said.name))
		}
		if said.name != "" {
			return said.name, nil
		}
	}
	return "", nil
}
