package tokenizer

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode"

	"github.com/rope-rewrite/rope-rewrite/internal/short"
)

// class is a set of letters in a regular expression.
type class struct {
	negated bool
	items   []classItem
	and     []class // what else a letter must be in
}

// classItem is a part of a class, in regexp2's syntax if that has it.
type classItem struct {
	text string
	set  runes
	from rune // where the item is a single letter, which can start a range
	one  bool
}

// String writes the class in regexp2's syntax.
func (c class) String() string {
	var b strings.Builder
	for _, item := range c.items {
		if item.text == "" || len(c.and) > 0 {
			return "[" + c.runes().String() + "]"
		}
		b.WriteString(item.text)
	}
	if c.negated {
		return "[^" + b.String() + "]"
	}
	return "[" + b.String() + "]"
}

func (c class) runes() runes {
	var all runes
	for _, item := range c.items {
		all = append(all, item.set...)
	}
	all = all.sorted()
	for _, other := range c.and {
		all = all.and(other.runes())
	}
	if c.negated {
		all = all.negated()
	}
	return all
}

// class reads what stands behind a [.
func (t *translator) class(depth int) (class, error) {
	c := class{negated: t.take("^")}
	if t.take("]") { // first of all it stands for itself
		c.items = append(c.items, single(']'))
	}
	return c, t.classBody(&c, depth)
}

// classBody reads a class up to its ].
func (t *translator) classBody(c *class, depth int) error {
	if depth > 20 {
		return errors.New("its classes are nested too deeply")
	}
	for t.at < len(t.in) {
		var item classItem
		var err error
		switch {
		case t.take("]"):
			if len(c.items) == 0 {
				return errors.New("a class in it is empty")
			}
			return nil
		case t.take("&&"):
			var rest class
			if err := t.classBody(&rest, depth+1); err != nil {
				return err
			}
			c.and = append(c.and, rest)
			return nil
		case t.take("[:"):
			item, err = t.posix()
		case t.take("["):
			var inner class
			inner, err = t.class(depth + 1)
			item.set = inner.runes()
		default:
			item, err = t.classRange()
		}
		if err != nil {
			return err
		}
		c.items = append(c.items, item)
	}
	return errors.New("a [ has no ]")
}

// classRange reads a letter, an escape or a range of letters.
func (t *translator) classRange() (classItem, error) {
	low, err := t.classItem()
	if err != nil || !low.one || !t.peek("-") || t.at+1 < len(t.in) && t.in[t.at+1] == ']' {
		return low, err
	}
	t.at++
	if t.at == len(t.in) {
		return low, errors.New("a [ has no ]")
	}
	if t.peek("[") {
		return low, errors.New("a range in a class ends in [")
	}
	high, err := t.classItem()
	if err != nil {
		return low, err
	}
	if !high.one || high.from < low.from {
		return low, errors.New("a range in a class does not go from a letter to a later one")
	}
	return classItem{text: quote(low.from) + "-" + quote(high.from), set: runes{{low.from, high.from}}}, nil
}

func (t *translator) classItem() (classItem, error) {
	c := t.in[t.at]
	t.at++
	if c != '\\' {
		return single(c), nil
	}
	if t.at == len(t.in) {
		return classItem{}, errors.New(`it ends in \`)
	}
	if t.in[t.at] == 'b' {
		t.at++
		return single('\b'), nil
	}
	return t.escapedItem()
}

func single(r rune) classItem {
	return classItem{text: quote(r), set: runes{{r, r}}, from: r, one: true}
}

// escapedItem reads what stands behind a \ and is a letter or a set of them.
func (t *translator) escapedItem() (classItem, error) {
	c := t.in[t.at]
	t.at++
	switch c {
	case 's':
		return classItem{text: `\s`, set: tables(unicode.White_Space)}, nil
	case 'S':
		return classItem{text: `\S`, set: tables(unicode.White_Space).negated()}, nil
	case 'd':
		return classItem{text: `\p{Nd}`, set: tables(unicode.Nd)}, nil
	case 'D':
		return classItem{text: `\P{Nd}`, set: tables(unicode.Nd).negated()}, nil
	case 'w':
		return classItem{text: wordClass, set: wordRunes()}, nil
	case 'W':
		return classItem{set: wordRunes().negated()}, nil
	case 'h':
		return classItem{text: "0-9A-Fa-f", set: hexRunes}, nil
	case 'H':
		return classItem{set: hexRunes.negated()}, nil
	case 'p', 'P':
		return t.property(c == 'P')
	case 'x', 'u':
		return t.code(c)
	}
	if at := strings.IndexRune("tnrfvae", c); at >= 0 {
		return single([]rune("\t\n\r\f\v\a\x1b")[at]), nil
	}
	if c < 0x80 && !isPunctuation(c) && c != ' ' {
		return classItem{}, fmt.Errorf(`\%c is not known here`, c)
	}
	return single(c), nil
}

// code reads \x41, \x{1F44D} and \u4F60.
func (t *translator) code(kind rune) (classItem, error) {
	braces := kind == 'x' && t.take("{")
	length := 2
	if kind == 'u' {
		length = 4
	}
	if braces {
		length = slices.Index(t.in[t.at:], '}')
	}
	if length < 0 || t.at+length > len(t.in) {
		return classItem{}, errors.New("the number of a letter does not end")
	}
	digits := string(t.in[t.at : t.at+length])
	t.at += length
	n, err := strconv.ParseUint(digits, 16, 32)
	if err != nil || n > unicode.MaxRune || n > 0x7F && kind == 'x' && !braces {
		return classItem{}, fmt.Errorf(`\%c%s is no letter`, kind, digits)
	}
	if braces {
		t.at++
	}
	return single(rune(n)), nil
}

// property reads the name behind \p or \P.
func (t *translator) property(negated bool) (classItem, error) {
	end := -1
	if t.take("{") {
		end = slices.Index(t.in[t.at:], '}')
	}
	if end < 0 {
		return classItem{}, errors.New(`\p has no {name}`)
	}
	name := string(t.in[t.at : t.at+end])
	t.at += end + 1
	if rest, ok := strings.CutPrefix(name, "^"); ok {
		name, negated = rest, !negated
	}
	item, err := property(name)
	if err == nil && negated {
		item.set = item.set.negated()
		item.text = strings.Replace(item.text, `\p`, `\P`, 1)
	}
	return item, err
}

// posix reads the name behind [: up to :].
func (t *translator) posix() (classItem, error) {
	start := t.at
	for t.at < len(t.in) && !t.peek(":]") {
		t.at++
	}
	name := string(t.in[start:t.at])
	if !t.take(":]") {
		return classItem{}, errors.New("a [: has no :]")
	}
	name, negated := strings.CutPrefix(name, "^")
	set, ok := posixRunes(name)
	if !ok {
		return classItem{}, fmt.Errorf("[:%s:] is not known here", short.Name(name))
	}
	if negated {
		set = set.negated()
	}
	return classItem{set: set}, nil
}
