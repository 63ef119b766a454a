package cli

import (
	"bytes"
	"fmt"
	"path/filepath"
	"strings"
	"unicode/utf8"

	"github.com/rope-rewrite/rope-rewrite/internal/configfile"
	"github.com/rope-rewrite/rope-rewrite/lm/tokenizer"
	"github.com/rope-rewrite/rope-rewrite/rewrite"
	"github.com/rope-rewrite/rope-rewrite/rope"
)

// TokenCount is a flag that takes a number of tokens, as 8192 or 8k.
type TokenCount int64

func (t *TokenCount) String() string { return fmt.Sprint(int64(*t)) }
func (t *TokenCount) Type() string   { return "tokens" }

func (t *TokenCount) Set(text string) error {
	n, err := rope.ParseTokens(strings.TrimPrefix(text, "-"))
	if strings.HasPrefix(text, "-") {
		n = -n // which the command refuses in its own words
	}
	*t = TokenCount(n)
	return err
}

// TokenList is a flag that takes several of them.
type TokenList []TokenCount

func (l *TokenList) String() string {
	texts := make([]string, len(*l))
	for i := range *l {
		texts[i] = (*l)[i].String()
	}
	return strings.Join(texts, ",")
}

func (l *TokenList) Type() string { return "tokens" }

func (l *TokenList) Set(text string) error {
	var list TokenList
	for part := range strings.SplitSeq(text, ",") {
		var t TokenCount
		if err := t.Set(strings.TrimSpace(part)); err != nil {
			return err
		}
		list = append(list, t)
	}
	*l = list
	return nil
}

// ReadText reads the file of a text that a flag names.
func ReadText(flag, path string) (string, error) {
	text, err := configfile.Read(path, configfile.Text)
	switch {
	case err != nil:
		return "", fmt.Errorf("%s: %w", flag, err)
	case len(bytes.TrimSpace(text)) == 0:
		return "", fmt.Errorf("%s: %s is empty; expected a text", flag, path)
	case !utf8.Valid(text):
		return "", fmt.Errorf("%s: %s is not text in UTF-8; convert it (iconv -t UTF-8)", flag, path)
	}
	return string(text), nil
}

// ReadCacheScales reads the file of scales that a flag names.
func ReadCacheScales(flag, path string) (map[int]rewrite.CacheScales, error) {
	data, err := configfile.Read(path, configfile.Text)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", flag, err)
	}
	scales, err := rewrite.ParseCacheScales(data)
	if err != nil {
		return nil, fmt.Errorf("%s: %s: %w", flag, path, err)
	}
	return scales, nil
}

// TextTokens are the first tokens of a text, by the tokenizer of a model's folder.
func TextTokens(path, model string, length int) ([]int64, error) {
	texts, err := TextPieces(path, model, length, 1)
	if err != nil {
		return nil, err
	}
	return texts[0], nil
}

// TextPieces are so many pieces of a text, one after the other, of so many tokens each.
func TextPieces(path, model string, length, pieces int) (list [][]int64, err error) {
	text, err := ReadText("--text", path)
	if err != nil {
		return nil, err
	}
	t, err := tokenizer.Open(filepath.Join(filepath.Dir(model), "tokenizer.json"))
	if err != nil {
		return nil, fmt.Errorf("--text needs the model's tokenizer beside it: %w", err)
	}
	ids, err := t.EncodeWithSpecial(text)
	if err != nil {
		return nil, fmt.Errorf("--text: %w", err)
	}
	if len(ids)/pieces < length {
		return nil, fmt.Errorf("--text: %s has %d tokens, and %d are measured; give a longer text or --length %d", path, len(ids), length*pieces, len(ids)/pieces)
	}
	for i := range pieces {
		list = append(list, ids[i*length:(i+1)*length])
	}
	return list, nil
}
