package main

import (
	"fmt"
	"strings"

	"github.com/rope-rewrite/rope-rewrite/rope"
)

// tokenCount is a flag that takes a number of tokens, as 8192 or 8k.
type tokenCount int64

func (t *tokenCount) String() string { return fmt.Sprint(int64(*t)) }
func (t *tokenCount) Type() string   { return "tokens" }

func (t *tokenCount) Set(text string) error {
	n, err := rope.ParseTokens(strings.TrimPrefix(text, "-"))
	if strings.HasPrefix(text, "-") {
		n = -n // which the command refuses in its own words
	}
	*t = tokenCount(n)
	return err
}

// tokenList is a flag that takes several of them.
type tokenList []tokenCount

func (l *tokenList) String() string {
	texts := make([]string, len(*l))
	for i := range *l {
		texts[i] = (*l)[i].String()
	}
	return strings.Join(texts, ",")
}

func (l *tokenList) Type() string { return "tokens" }

func (l *tokenList) Set(text string) error {
	var list tokenList
	for part := range strings.SplitSeq(text, ",") {
		var t tokenCount
		if err := t.Set(strings.TrimSpace(part)); err != nil {
			return err
		}
		list = append(list, t)
	}
	*l = list
	return nil
}
