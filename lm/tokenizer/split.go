package tokenizer

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/rope-rewrite/rope-rewrite/internal/short"
)

// behavior is what becomes of the matches that a text is split at.
type behavior string

// The behaviors, by their names in tokenizer.json.
const (
	removed            behavior = "Removed"
	isolated           behavior = "Isolated"
	mergedWithPrevious behavior = "MergedWithPrevious"
	mergedWithNext     behavior = "MergedWithNext"
	contiguous         behavior = "Contiguous"
)

func (b *behavior) UnmarshalJSON(raw []byte) error {
	var name string
	if err := json.Unmarshal(raw, &name); err != nil {
		return err
	}
	*b = behavior(name)
	if !slices.Contains([]behavior{removed, isolated, mergedWithPrevious, mergedWithNext, contiguous}, *b) {
		return fmt.Errorf("behavior %q is not known here", short.Name(name))
	}
	return nil
}

// apply joins spans as the behavior says. It may change the slice.
func (b behavior) apply(spans []span) []span {
	out := spans[:0]
	switch b {
	case isolated:
		return spans
	case removed:
		return slices.DeleteFunc(spans, func(s span) bool { return s.match })
	case contiguous:
		for _, s := range spans {
			if n := len(out); n > 0 && out[n-1].match == s.match {
				out[n-1].end = s.end
			} else {
				out = append(out, s)
			}
		}
	case mergedWithPrevious:
		before := false
		for _, s := range spans {
			if n := len(out); n > 0 && s.match && !before {
				out[n-1].end = s.end
			} else {
				out = append(out, s)
			}
			before = s.match
		}
	case mergedWithNext:
		out = nil
		behind := false
		for _, s := range slices.Backward(spans) {
			if n := len(out); n > 0 && s.match && !behind {
				out[n-1].start = s.start
			} else {
				out = append(out, s)
			}
			behind = s.match
		}
		slices.Reverse(out)
	}
	return out
}

// findLiteral cuts a text at all places where another stands.
func findLiteral(text, literal string) []span {
	var spans []span
	last := 0
	for literal != "" {
		at := strings.Index(text[last:], literal)
		if at < 0 {
			break
		}
		start := last + at
		spans = append(gap(spans, last, start), span{start, start + len(literal), true})
		last = start + len(literal)
	}
	return gap(spans, last, len(text))
}

// findRunes cuts a text at each letter of a kind.
func findRunes(text string, kind func(rune) bool) []span {
	var spans []span
	last := 0
	for at, r := range text {
		if kind(r) {
			end := at + utf8.RuneLen(r)
			spans = append(gap(spans, last, at), span{at, end, true})
			last = end
		}
	}
	return gap(spans, last, len(text))
}

// cut gives the pieces of a piece, without empty ones.
func (p piece) cut(into []piece, spans []span) []piece {
	for _, s := range spans {
		if s.start < s.end {
			into = append(into, piece{p.text[s.start:s.end], max(0, min(p.lead, s.end)-s.start)})
		}
	}
	return into
}
