package tokenizer

import (
	"errors"
	"fmt"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/dlclark/regexp2/v2"

	"github.com/rope-rewrite/rope-rewrite/internal/short"
)

// Limits of a regular expression on one text. Those of models need a few
// microseconds a word; others can take for ever, and files come from anyone.
const (
	maxMatch      = 20 * time.Second // for one match; work says how much a whole text may take
	maxRegexStack = 1 << 24          // numbers of 8 bytes
)

// span is a part of a text that is cut up, in bytes.
type span struct {
	start, end int
	match      bool // it is what was looked for, rather than what stands between
}

// pattern is what a Split or Replace looks for.
type pattern struct {
	literal string
	re      *regexp2.Regexp // nil where a literal is looked for
}

// patternFile is {"String": "..."} or {"Regex": "..."}.
type patternFile struct {
	String *string `json:"String"`
	Regex  *string `json:"Regex"`
}

func (f patternFile) compile() (*pattern, error) {
	switch {
	case f.String != nil && f.Regex == nil && *f.String != "":
		return &pattern{literal: *f.String}, nil
	case f.String != nil && f.Regex == nil:
		return newRegex("") // it stands at every place
	case f.Regex != nil && f.String == nil:
		return newRegex(*f.Regex)
	}
	return nil, errors.New("its pattern is neither a String nor a Regex")
}

// newRegex compiles a regular expression as Oniguruma writes it.
func newRegex(source string) (*pattern, error) {
	translated, err := translate(source)
	if err != nil {
		return nil, fmt.Errorf("regular expression %q: %s", short.Name(source), visible(err.Error()))
	}
	re, err := regexp2.Compile(translated, regexp2.OptionMaxBacktrackingStackSize(maxRegexStack))
	if err != nil {
		return nil, fmt.Errorf("regular expression %q: %s", short.Name(source), visible(err.Error()))
	}
	re.MatchTimeout = maxMatch
	return &pattern{re: re}, nil
}

// visible is a text that may have parts of a file, on one line.
func visible(text string) string {
	var b strings.Builder
	for _, r := range text {
		switch {
		case b.Len() > 300:
			return b.String() + "…"
		case unicode.IsPrint(r):
			b.WriteRune(r)
		default:
			fmt.Fprintf(&b, `\u%04x`, r)
		}
	}
	return b.String()
}

// find cuts a text into matches and what stands between them.
func (p *pattern) find(text string, w *work) ([]span, error) {
	if p.re == nil {
		return findLiteral(text, p.literal), nil
	}
	if text == "" {
		return nil, nil
	}
	runes := []rune(text)
	for {
		if err := w.look(); err != nil {
			return nil, err
		}
		c := regexCut{text: text, runes: runes, work: w}
		err := p.re.FindRunesMatches(runes, -1, c.add)
		switch {
		case c.err != nil:
			return nil, c.err
		case err == nil:
			return gap(c.spans, c.last, len(text)), nil
		case errors.Is(err, regexp2.ErrBacktrackingStackLimit) || w.used()-w.seen > p.re.MatchTimeout/2: // err has the whole text
			return nil, fmt.Errorf("a regular expression of the tokenizer cannot split this text of %d bytes: it takes too much work or memory", len(text))
		}
		// The library's clock ended the match, and this thread hardly ran meanwhile: the machine or the process stood still.
	}
}

// regexCut collects matches, which count letters, as spans, which count bytes.
type regexCut struct {
	text  string
	runes []rune
	rune  int // how far it is counted, in letters
	byte  int // the same place in bytes
	last  int // the end of the last match
	any   bool
	spans []span
	work  *work
	err   error // why there are no more matches
}

func (c *regexCut) add(m regexp2.MatchView) bool {
	at, length, _ := m.GroupRange(0)
	start := c.bytes(at)
	end := c.bytes(at + length)
	if start == end && c.any && end == c.last {
		return true // Oniguruma takes no empty match right behind another
	}
	c.spans = append(gap(c.spans, c.last, start), span{start, end, true})
	c.last, c.any = end, true
	c.err = c.work.look()
	return c.err == nil
}

func (c *regexCut) bytes(at int) int {
	for c.rune < at {
		c.byte += utf8.RuneLen(c.runes[c.rune])
		c.rune++
	}
	return c.byte
}

// gap appends what stands between two matches.
func gap(spans []span, start, end int) []span {
	if start < end {
		return append(spans, span{start, end, false})
	}
	return spans
}
