package tokenizer

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"unicode/utf8"

	"github.com/rope-rewrite/rope-rewrite/internal/short"
)

// file is tokenizer.json. Its parts are read by those who know them.
type file struct {
	Version       string          `json:"version"`
	Truncation    json.RawMessage `json:"truncation"` // for batches; the caller's business
	Padding       json.RawMessage `json:"padding"`    // likewise
	AddedTokens   []addedToken    `json:"added_tokens"`
	Normalizer    json.RawMessage `json:"normalizer"`
	PreTokenizer  json.RawMessage `json:"pre_tokenizer"`
	PostProcessor json.RawMessage `json:"post_processor"`
	Decoder       json.RawMessage `json:"decoder"`
	Model         json.RawMessage `json:"model"`
}

func readFile(b []byte) (*file, error) {
	if !utf8.Valid(b) {
		return nil, errors.New("it is not valid UTF-8")
	}
	var f file
	if err := strict(b, &f); err != nil {
		return nil, err
	}
	if f.Version != "" && f.Version != "1.0" {
		return nil, fmt.Errorf("its version is %q, and only 1.0 is known here", short.Name(f.Version))
	}
	if absent(f.Model) {
		return nil, errors.New("it has no model: it is not a tokenizer.json of Hugging Face's")
	}
	return &f, nil
}

func absent(part json.RawMessage) bool {
	return len(part) == 0 || bytes.Equal(part, []byte("null"))
}

// strict reads JSON into a struct and refuses fields that the struct lacks: what
// is not known here must not be ignored, as it would change the ids.
func strict(b []byte, into any) error {
	d := json.NewDecoder(bytes.NewReader(b))
	d.DisallowUnknownFields()
	if err := d.Decode(into); err != nil {
		return err
	}
	if d.More() {
		return errors.New("there is text after the end of the JSON")
	}
	return nil
}

// typeOf is the name that a part says what it is by.
func typeOf(part json.RawMessage) (string, error) {
	var t struct {
		Type string `json:"type"`
	}
	if err := json.Unmarshal(part, &t); err != nil {
		return "", err
	}
	return t.Type, nil
}

// maxDepth is how deep sequences of parts may stand in one another.
const maxDepth = 16

// reader builds a part of one type from its JSON.
type reader[T any] func(b json.RawMessage, at nesting) (T, error)

// readPart finds who knows a part's type and has it built.
func readPart[T any](what string, part json.RawMessage, known map[string]reader[T], at nesting) (T, error) {
	var none T
	if at.depth > maxDepth {
		return none, fmt.Errorf("its %ss are nested more than %d deep", what, maxDepth)
	}
	if at.all.parts++; at.all.parts > maxParts {
		return none, fmt.Errorf("it has more than %d %ss", maxParts, what)
	}
	name, err := typeOf(part)
	if err != nil {
		return none, fmt.Errorf("its %s cannot be read: %w", what, err)
	}
	read, ok := known[name]
	if !ok {
		return none, fmt.Errorf("its %s %q is not known here", what, short.Name(name))
	}
	built, err := read(part, at)
	if err != nil {
		return none, fmt.Errorf("%s %s: %w", what, short.Name(name), err)
	}
	return built, nil
}

// readAll builds the parts of a sequence.
func readAll[T any](parts []json.RawMessage, at nesting, read reader[T]) ([]T, error) {
	var all []T
	for _, p := range parts {
		built, err := read(p, at.inner())
		if err != nil {
			return nil, err
		}
		all = append(all, built)
	}
	return all, nil
}

// letter is a text of exactly one letter in JSON.
type letter rune

func (l *letter) UnmarshalJSON(b []byte) error {
	var text string
	if err := json.Unmarshal(b, &text); err != nil {
		return err
	}
	if utf8.RuneCountInString(text) != 1 {
		return fmt.Errorf("%q is not one letter", short.Name(text))
	}
	r, _ := utf8.DecodeRuneInString(text)
	*l = letter(r)
	return nil
}

// named is the field that every part has; those that embed it accept it.
type named struct {
	Type string `json:"type"`
}
