package tokenizer

import (
	"fmt"
	"slices"
	"strings"
	"unicode"

	"github.com/rope-rewrite/rope-rewrite/internal/short"
)

// runes is a set of letters: ranges with both ends.
type runes [][2]rune

const surrogates, afterSurrogates = 0xD800, 0xE000

var hexRunes = runes{{'0', '9'}, {'A', 'F'}, {'a', 'f'}}

// tables makes a set of Unicode's tables.
func tables(of ...*unicode.RangeTable) runes {
	var all runes
	for _, table := range of {
		for _, r := range table.R16 {
			all = all.add(rune(r.Lo), rune(r.Hi), rune(r.Stride))
		}
		for _, r := range table.R32 {
			all = all.add(rune(r.Lo), rune(r.Hi), rune(r.Stride))
		}
	}
	return all.sorted()
}

func (s runes) add(low, high, stride rune) runes {
	if stride == 1 {
		return append(s, [2]rune{low, high})
	}
	for r := low; r <= high; r += stride {
		s = append(s, [2]rune{r, r})
	}
	return s
}

// sorted puts the ranges in order and joins those that touch.
func (s runes) sorted() runes {
	s = slices.Clone(s)
	slices.SortFunc(s, func(a, b [2]rune) int { return int(a[0] - b[0]) })
	var out runes
	for _, r := range s {
		if n := len(out); n > 0 && r[0] <= out[n-1][1]+1 {
			out[n-1][1] = max(out[n-1][1], r[1])
		} else {
			out = append(out, r)
		}
	}
	return out
}

// negated is all other letters.
func (s runes) negated() runes {
	var out runes
	next := rune(0)
	for _, r := range append(s.sorted(), [2]rune{unicode.MaxRune + 1, unicode.MaxRune + 1}) {
		if next < r[0] {
			out = append(out, [2]rune{next, r[0] - 1})
		}
		next = max(next, r[1]+1)
	}
	return out
}

// and is the letters that are in both.
func (s runes) and(other runes) runes {
	return append(s.negated(), other.negated()...).negated()
}

// String writes the ranges as they stand in brackets. A set of no letters is
// written as one of letters that no text has.
func (s runes) String() string {
	var b strings.Builder
	for _, r := range s.sorted() {
		low, high := r[0], r[1]
		if low < surrogates && high >= surrogates {
			b.WriteString(quote(low) + "-" + quote(surrogates-1))
			low = afterSurrogates
		}
		if low >= surrogates && low < afterSurrogates {
			low = afterSurrogates
		}
		if low <= high {
			b.WriteString(quote(low) + "-" + quote(high))
		}
	}
	if b.Len() == 0 {
		return fmt.Sprintf(`\u%04X`, surrogates)
	}
	return b.String()
}

func wordRunes() runes {
	return tables(unicode.L, unicode.M, unicode.Nd, unicode.Nl, unicode.Pc, unicode.Other_Alphabetic)
}

// posixRunes is what a name between [: and :] stands for in Unicode.
func posixRunes(name string) (set runes, ok bool) {
	alphabetic := tables(unicode.L, unicode.Nl, unicode.Other_Alphabetic)
	switch name {
	case "alpha":
		return alphabetic, true
	case "alnum":
		return append(alphabetic, tables(unicode.Nd)...).sorted(), true
	case "digit":
		return tables(unicode.Nd), true
	case "space":
		return tables(unicode.White_Space), true
	case "blank":
		return append(tables(unicode.Zs), [2]rune{'\t', '\t'}).sorted(), true
	case "upper":
		return tables(unicode.Lu, unicode.Other_Uppercase), true
	case "lower":
		return tables(unicode.Ll, unicode.Other_Lowercase), true
	case "punct":
		return tables(unicode.P, unicode.S), true
	case "cntrl":
		return tables(unicode.Cc), true
	case "xdigit":
		return hexRunes, true
	case "word":
		return wordRunes(), true
	case "ascii":
		return runes{{0, unicode.MaxASCII}}, true
	}
	return nil, false
}

// property is what a name between \p{ and } stands for: a general category, a
// script or a name of POSIX. Case, blanks, - and _ in it say nothing.
func property(name string) (classItem, error) {
	plain := func(s string) string {
		return strings.ToLower(strings.NewReplacer(" ", "", "_", "", "-", "").Replace(s))
	}
	for _, known := range []map[string]*unicode.RangeTable{unicode.Categories, unicode.Scripts} {
		for candidate, table := range known {
			if plain(candidate) == plain(name) {
				return classItem{text: `\p{` + candidate + `}`, set: tables(table)}, nil
			}
		}
	}
	for alias, category := range unicode.CategoryAliases {
		if plain(alias) == plain(name) {
			return classItem{text: `\p{` + category + `}`, set: tables(unicode.Categories[category])}, nil
		}
	}
	if plain(name) == "any" {
		return classItem{set: runes{{0, unicode.MaxRune}}}, nil
	}
	if set, ok := posixRunes(plain(name)); ok {
		return classItem{set: set}, nil
	}
	return classItem{}, fmt.Errorf(`\p{%s} is not known here`, short.Name(name))
}
