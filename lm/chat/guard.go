package chat

import (
	"fmt"
	"maps"
	"slices"
	"sort"
	"strings"
	"unicode/utf8"

	"github.com/rope-rewrite/rope-rewrite/internal/short"
	"github.com/rope-rewrite/rope-rewrite/lm/chat/jinja"
)

// Text is a rendered conversation.
type Text struct {
	Text string
	// Guarded are the bytes that no special token may hold, in ascending order: they
	// are from messages, documents, tools and variables, but for variables that
	// replace a special token.
	Guarded []Span
}

// Span is a part of a text, in bytes.
type Span = struct{ Start, End int }

// RenderGuarded is Render, and tells which bytes of the text must not become special
// tokens: a user may write <|im_start|>. Specials are the texts of the special
// tokens. The tokenizer's EncodeGuarded takes the result:
//
//	text, err := template.RenderGuarded(messages, options, tok.Specials())
//	ids, err := tok.EncodeGuarded(text.Text, text.Guarded)
//
// A special token stays one where the template writes its first and its last letter,
// as Phi-3's does for <|user|> with '<|' + role + '|>'.
//
// The text is Render's, byte for byte. A template may look for the text of a special
// token in a message, and say something else where it stands. If that cannot be told
// from what a user wrote, there is an error that names the token. Leave it out of
// specials if users may write it.
func (t *Template) RenderGuarded(messages []Message, o Options, specials []string) (Text, error) {
	r, err := t.prepare(messages, o)
	if err != nil {
		return Text{}, err
	}
	plain, err := r.render()
	if err != nil {
		return Text{}, err
	}
	taken := r.privateUse()
	specials = slices.DeleteFunc(slices.Clone(specials), func(s string) bool { return s == "" })
	// Most templates treat all letters alike, and then the ends of tokens are guarded
	// wherever they stand. Those that look for tags in a message do so for some.
	for _, find := range []finder{ends(specials), occurrences(specials)} {
		if text, ok := r.guarded(find, plain, taken); ok {
			return text, nil
		}
	}
	// The token is looked for by halves: a template that takes long is rendered a few times, however many tokens there are.
	at := sort.Search(len(specials)-1, func(i int) bool {
		_, ok := r.guarded(occurrences(specials[:i+1]), plain, taken)
		return !ok
	})
	return Text{}, fmt.Errorf("the chat template does something else where a message has the text of the special token %q, so that text cannot be told from the token: take it out of the messages", short.Name(specials[at]))
}

// guarded renders with guards. It is not ok if that gives another text.
func (r *rendering) guarded(find finder, plain string, taken map[rune]bool) (text Text, ok bool) {
	g := &guard{find: find, taken: taken, next: firstPlaceholder, forth: map[rune]rune{}, back: map[rune]rune{}}
	marked := *r
	marked.variables = maps.Clone(r.variables)
	for _, name := range r.given {
		marked.variables[name] = jinja.MapTexts(r.variables[name], g.replace)
	}
	if len(g.back) == 0 {
		return Text{Text: plain}, true
	}
	result, err := marked.render()
	if err != nil {
		return Text{}, false
	}
	text = g.restore(result)
	return text, text.Text == plain
}

// guard puts placeholders in the place of letters, so that they can be found again
// in what a template makes of them. A letter has one placeholder: texts keep their
// length, and equal texts stay equal.
type guard struct {
	find        finder
	taken       map[rune]bool // letters that are in use
	next        rune
	forth, back map[rune]rune
}

// firstPlaceholder begins Unicode's planes for private use. Their letters have no case
// and are no blanks, and texts hardly have them.
const firstPlaceholder = 0xF0000

// privateUse are the letters that placeholders must not be, as they are there.
func (r *rendering) privateUse() map[rune]bool {
	taken := map[rune]bool{}
	take := func(text string) string {
		for _, letter := range text {
			if letter >= firstPlaceholder {
				taken[letter] = true
			}
		}
		return text
	}
	take(r.use.text)
	for _, v := range r.variables {
		jinja.MapTexts(v, take)
	}
	return taken
}

func (g *guard) replace(text string) string {
	found := g.find(text)
	if !slices.Contains(found, true) {
		return text
	}
	var b strings.Builder
	for at, r := range text {
		if found[at] {
			r = g.placeholder(r)
		}
		b.WriteRune(r)
	}
	return b.String()
}

func (g *guard) placeholder(r rune) rune {
	if p, ok := g.forth[r]; ok {
		return p
	}
	for g.taken[g.next] {
		g.next++
	}
	p := g.next
	g.next++
	g.forth[r], g.back[p] = p, r
	return p
}

// restore puts the letters back, and notes where they are.
func (g *guard) restore(marked string) Text {
	var b strings.Builder
	var spans []Span
	for _, r := range marked {
		start := b.Len()
		letter, guarded := g.back[r]
		if !guarded {
			b.WriteRune(r)
			continue
		}
		b.WriteRune(letter)
		if n := len(spans); n > 0 && spans[n-1].End == start {
			spans[n-1].End = b.Len()
		} else {
			spans = append(spans, Span{start, b.Len()})
		}
	}
	return Text{b.String(), spans}
}

// finder says which bytes of a text are of letters to guard. It gives nil for none.
type finder func(text string) []bool

// ends finds the letters that a special token begins or ends with. A token that a
// user gave one of its ends to is then no token, whatever the template did to it.
func ends(specials []string) finder {
	set := map[rune]bool{}
	for _, s := range specials {
		first, _ := utf8.DecodeRuneInString(s)
		last, _ := utf8.DecodeLastRuneInString(s)
		set[first], set[last] = true, true
	}
	return func(text string) []bool {
		var found []bool
		for at, r := range text {
			if set[r] {
				if found == nil {
					found = make([]bool, len(text))
				}
				found[at] = true
			}
		}
		return found
	}
}

// occurrences finds special tokens in a text, and parts of them at its ends, which a
// template may complete. Blanks at the ends do not count: templates trim them.
func occurrences(specials []string) finder {
	edges := ends(specials)
	return func(text string) []bool {
		if edges(text) == nil {
			return nil
		}
		found := make([]bool, len(text))
		set := func(start, end int) {
			for i := start; i < end; i++ {
				found[i] = true
			}
		}
		body := strings.TrimFunc(text, jinja.IsSpace)
		first := strings.Index(text, body)
		last := first + len(body)
		for _, s := range specials {
			for at := 0; ; at++ {
				next := strings.Index(text[at:], s)
				if next < 0 {
					break
				}
				at += next
				set(at, at+len(s))
			}
			for n := range s {
				if strings.HasSuffix(body, s[:n]) {
					set(last-n, last)
				}
				if strings.HasPrefix(body, s[n:]) {
					set(first, first+len(s)-n)
				}
			}
		}
		return found
	}
}
