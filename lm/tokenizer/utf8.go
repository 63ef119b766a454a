package tokenizer

import (
	"strings"
	"unicode/utf8"
)

// validUTF8 puts one U+FFFD in the place of each maximal part of the bytes that
// is not UTF-8, as the Unicode standard recommends (section 3.9) and Python's
// bytes.decode("utf-8", "replace") does.
func validUTF8(text string) string {
	if utf8.ValidString(text) {
		return text
	}
	var b strings.Builder
	for len(text) > 0 {
		r, n := utf8.DecodeRuneInString(text)
		if r == utf8.RuneError && n <= 1 {
			n = max(1, unfinished(text))
		}
		b.WriteRune(r)
		text = text[n:]
	}
	return b.String()
}

// unfinished is how many bytes at the start of the text are the start of a
// letter, but not a whole one; 0 if it starts with a letter or with a byte that
// no letter starts with.
func unfinished(text string) int {
	n := 0
	for n < len(text) && n < utf8.UTFMax && !utf8.FullRuneInString(text[:n+1]) {
		n++
	}
	if n < len(text) && utf8.FullRuneInString(text) {
		if r, size := utf8.DecodeRuneInString(text); r != utf8.RuneError || size > 1 {
			return 0
		}
	}
	return n
}

// cutUnfinished splits bytes where an unfinished letter begins at their end.
func cutUnfinished(text string) (whole, rest string) {
	for back := 1; back < utf8.UTFMax && back <= len(text); back++ {
		at := len(text) - back
		if utf8.RuneStart(text[at]) {
			if !utf8.FullRuneInString(text[at:]) {
				return text[:at], text[at:]
			}
			break
		}
	}
	return text, ""
}
