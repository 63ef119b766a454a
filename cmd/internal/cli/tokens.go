package cli

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/rope-rewrite/rope-rewrite/lm/tokenizer"
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

// TextTokens are the first tokens of a text, by the tokenizer of a model's folder.
func TextTokens(path, model string, length int) ([]int64, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("--text: %w", err)
	}
	t, err := tokenizer.Open(filepath.Join(filepath.Dir(model), "tokenizer.json"))
	if err != nil {
		return nil, fmt.Errorf("--text needs the model's tokenizer beside it: %w", err)
	}
	ids, err := t.EncodeWithSpecial(string(text))
	if err != nil {
		return nil, fmt.Errorf("--text: %w", err)
	}
	if len(ids) < length {
		return nil, fmt.Errorf("--text: %s has %d tokens, and %d are measured; give a longer text or --length %d", path, len(ids), length, len(ids))
	}
	return ids[:length], nil
}
