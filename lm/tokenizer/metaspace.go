package tokenizer

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/rope-rewrite/rope-rewrite/internal/short"
)

// metaspace writes blanks as a letter, and puts one before words.
type metaspace struct {
	replacement rune
	scheme      string // "always", "first" or "never": where one is put before a text
	cut         bool
}

// readMetaspaceFile reads what the pre-tokenizer and the decoder have in common.
func readMetaspaceFile(b json.RawMessage) (metaspace, error) {
	f := struct {
		named
		Replacement    letter `json:"replacement"`
		AddPrefixSpace *bool  `json:"add_prefix_space"` // before prepend_scheme
		PrependScheme  string `json:"prepend_scheme"`
		Split          *bool  `json:"split"`
		StrRep         string `json:"str_rep"` // old files repeat the replacement
	}{}
	if err := strict(b, &f); err != nil {
		return metaspace{}, err
	}
	m := metaspace{replacement: rune(f.Replacement), scheme: f.PrependScheme, cut: f.Split == nil || *f.Split}
	never := f.AddPrefixSpace != nil && !*f.AddPrefixSpace
	switch {
	case m.replacement == 0:
		return m, errors.New("it has no replacement")
	case m.scheme == "" && never:
		m.scheme = "never"
	case m.scheme == "":
		m.scheme = "always"
	case m.scheme != "always" && m.scheme != "first" && m.scheme != "never":
		return m, fmt.Errorf("its prepend_scheme %q is not known here", short.Name(m.scheme))
	case never && m.scheme != "never":
		return m, fmt.Errorf("its prepend_scheme %q and add_prefix_space false contradict each other", short.Name(m.scheme))
	}
	return m, nil
}

func readMetaspace(b json.RawMessage, _ nesting) (preTokenizer, error) {
	m, err := readMetaspaceFile(b)
	return splitFunc(m.split), err
}

func (m metaspace) split(into []piece, p piece) []piece {
	mark := string(m.replacement)
	p = p.mapped(func(text string) string { return strings.ReplaceAll(text, " ", mark) })
	if !strings.HasPrefix(p.text, mark) && (m.scheme == "always" || m.scheme == "first" && p.lead > 0) {
		p = p.prepend(mark)
	}
	if !m.cut {
		return append(into, p)
	}
	isMark := func(r rune) bool { return r == m.replacement }
	return p.cut(into, mergedWithNext.apply(findRunes(p.text, isMark)))
}
