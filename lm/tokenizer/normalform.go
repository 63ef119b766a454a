package tokenizer

import (
	"slices"
	"strings"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"
)

func nfc(text string) string  { return normalForm(text, norm.NFC) }
func nfd(text string) string  { return normalForm(text, norm.NFD) }
func nfkc(text string) string { return normalForm(text, norm.NFKC) }
func nfkd(text string) string { return normalForm(text, norm.NFKD) }

// maxMarks is how many marks on one letter x/text takes before it puts a
// U+034F between them (the stream-safe format of UAX 15), which others do not.
// A letter can decompose into up to 18, some of them marks.
const maxMarks = 10

// normalForm is Unicode's normal form of a text (UAX 15).
func normalForm(text string, form norm.Form) string {
	if !manyMarks(text) {
		return form.String(text)
	}
	decompose := norm.NFD
	if form == norm.NFKC || form == norm.NFKD {
		decompose = norm.NFKD
	}
	letters := ordered(decompose, text)
	if form == norm.NFC || form == norm.NFKC {
		letters = composed(letters)
	}
	return string(letters)
}

func manyMarks(text string) bool {
	marks := 0
	for i := 0; i < len(text); {
		if text[i] < utf8.RuneSelf {
			marks = 0
			i++
			continue
		}
		p := norm.NFKD.PropertiesString(text[i:])
		if p.CCC() == 0 {
			marks = 0
		} else if marks++; marks > maxMarks {
			return true
		}
		i += max(1, p.Size())
	}
	return false
}

func class0(r rune) uint8 { return norm.NFD.PropertiesString(string(r)).CCC() }

// ordered decomposes a text and puts the marks of each letter in their order.
func ordered(form norm.Form, text string) []rune {
	var out []rune
	for _, r := range text {
		out = append(out, []rune(form.String(string(r)))...)
	}
	for i := 0; i < len(out); {
		end := i
		for end < len(out) && class0(out[end]) != 0 {
			end++
		}
		slices.SortStableFunc(out[i:end], func(a, b rune) int { return int(class0(a)) - int(class0(b)) })
		i = end + 1
	}
	return out
}

// composed puts marks and letters together where one letter stands for both.
func composed(in []rune) []rune {
	var out []rune
	starter, last := -1, uint8(0) // the letter that marks are on; the class of the mark before
	for _, r := range in {
		c := class0(r)
		if starter >= 0 && (len(out) == starter+1 || last < c) {
			if joined, ok := pair(out[starter], r); ok {
				out[starter] = joined
				continue
			}
		}
		if c == 0 {
			starter = len(out)
		}
		last = c
		out = append(out, r)
	}
	return out
}

// pair is the letter that two stand for.
func pair(a, b rune) (rune, bool) {
	joined := norm.NFC.String(string(a) + string(b))
	r, n := utf8.DecodeRuneInString(joined)
	return r, n == len(joined) && !strings.HasPrefix(joined, string(a)+string(b))
}
