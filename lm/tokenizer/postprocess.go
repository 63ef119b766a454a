package tokenizer

import (
	"encoding/json"
	"errors"
	"fmt"

	"github.com/rope-rewrite/rope-rewrite/internal/short"
)

// frame is the special tokens around a text.
type frame struct{ before, after []int64 }

func (f frame) around(ids []int64) []int64 {
	out := append([]int64{}, f.before...)
	return append(append(out, ids...), f.after...)
}

func readPostProcessor(part json.RawMessage, at nesting) (frame, error) {
	return readPart("post-processor", part, map[string]reader[frame]{
		"ByteLevel":          readNoFrame,
		"BertProcessing":     readPairFrame,
		"RobertaProcessing":  readPairFrame,
		"TemplateProcessing": readTemplate,
		"Sequence":           readFrames,
	}, at)
}

// readNoFrame is for ByteLevel, which only changes places in the text.
func readNoFrame(b json.RawMessage, _ nesting) (frame, error) {
	var f struct {
		named
		AddPrefixSpace bool `json:"add_prefix_space"`
		TrimOffsets    bool `json:"trim_offsets"`
		UseRegex       bool `json:"use_regex"`
	}
	return frame{}, strict(b, &f)
}

// tokenID is ["token", id].
type tokenID int64

func (t *tokenID) UnmarshalJSON(b []byte) error {
	var pair []json.RawMessage
	if err := json.Unmarshal(b, &pair); err != nil {
		return err
	}
	if len(pair) != 2 {
		return fmt.Errorf("%.60q is not a token with its id", b)
	}
	return json.Unmarshal(pair[1], (*int64)(t))
}

func readPairFrame(b json.RawMessage, _ nesting) (frame, error) {
	var f struct {
		named
		Sep            *tokenID `json:"sep"`
		Cls            *tokenID `json:"cls"`
		TrimOffsets    bool     `json:"trim_offsets"`
		AddPrefixSpace bool     `json:"add_prefix_space"`
	}
	if err := strict(b, &f); err != nil {
		return frame{}, err
	}
	if f.Sep == nil || f.Cls == nil {
		return frame{}, errors.New("it has no sep or no cls")
	}
	return frame{[]int64{int64(*f.Cls)}, []int64{int64(*f.Sep)}}, nil
}

// templatePiece is a special token or a text of a template.
type templatePiece struct {
	SpecialToken *templateName `json:"SpecialToken"`
	Sequence     *templateName `json:"Sequence"`
}

type templateName struct {
	ID     string `json:"id"`
	TypeID int64  `json:"type_id"`
}

func readTemplate(b json.RawMessage, _ nesting) (frame, error) {
	var f struct {
		named
		Single        []templatePiece `json:"single"`
		Pair          json.RawMessage `json:"pair"` // for two texts at once
		SpecialTokens map[string]struct {
			ID     string   `json:"id"`
			IDs    []int64  `json:"ids"`
			Tokens []string `json:"tokens"`
		} `json:"special_tokens"`
	}
	if err := strict(b, &f); err != nil {
		return frame{}, err
	}
	var out frame
	texts := 0
	for _, p := range f.Single {
		switch {
		case p.Sequence != nil && p.Sequence.ID == "A":
			texts++
		case p.SpecialToken != nil:
			t, ok := f.SpecialTokens[p.SpecialToken.ID]
			if !ok {
				return frame{}, fmt.Errorf("its template names the token %q, which is not among its special_tokens", short.Name(p.SpecialToken.ID))
			}
			if texts == 0 {
				out.before = append(out.before, t.IDs...)
			} else {
				out.after = append(out.after, t.IDs...)
			}
		default:
			return frame{}, errors.New("its template for one text has a part that is neither the text A nor a token")
		}
	}
	if texts != 1 {
		return frame{}, fmt.Errorf("its template for one text has the text %d times", texts)
	}
	return out, nil
}

func readFrames(b json.RawMessage, at nesting) (frame, error) {
	var f struct {
		named
		Processors []json.RawMessage `json:"processors"`
	}
	if err := strict(b, &f); err != nil {
		return frame{}, err
	}
	all, err := readAll(f.Processors, at, readPostProcessor)
	var out frame
	for _, inner := range all {
		out.before = append(append([]int64(nil), inner.before...), out.before...)
		out.after = append(out.after, inner.after...)
	}
	return out, err
}
