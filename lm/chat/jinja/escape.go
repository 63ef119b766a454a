package jinja

import (
	"strconv"
	"strings"
	"unicode/utf8"
)

// unescape gives what a string in a template stands for, by Python's escapes.
func unescape(text string, line int) string {
	if strings.IndexByte(text, '\\') < 0 {
		return text
	}
	var b strings.Builder
	for i := 0; i < len(text); {
		if text[i] != '\\' {
			b.WriteByte(text[i])
			i++
			continue
		}
		i += 1 + escapeAt(&b, text[i+1:], line)
	}
	return b.String()
}

var plainEscapes = map[byte]string{
	'\n': "", '\\': `\`, '\'': "'", '"': `"`, 'a': "\a", 'b': "\b", 'f': "\f", 'n': "\n", 'r': "\r", 't': "\t", 'v': "\v",
}

// escapeAt writes the escape that text begins with, after its backslash, and
// returns its length.
func escapeAt(b *strings.Builder, text string, line int) int {
	c := text[0]
	if plain, ok := plainEscapes[c]; ok {
		b.WriteString(plain)
		return 1
	}
	digits, base, from := 0, 16, 1
	switch {
	case c >= '0' && c <= '7':
		base, from = 8, 0
		for digits < 3 && digits < len(text) && text[digits] >= '0' && text[digits] <= '7' {
			digits++
		}
	case c == 'x':
		digits = 2
	case c == 'u':
		digits = 4
	case c == 'U':
		digits = 8
	case c == 'N' || c >= utf8.RuneSelf:
		failf("line %d: the escape \\%c is not supported; write the character itself", line, c)
	default: // Python keeps what is no escape
		b.WriteByte('\\')
		b.WriteByte(c)
		return 1
	}
	if from+digits > len(text) {
		failf("line %d: the escape \\%c has too few digits", line, c)
	}
	n, err := strconv.ParseUint(text[from:from+digits], base, 32)
	if err != nil || !utf8.ValidRune(rune(n)) {
		failf("line %d: the escape \\%s names no character", line, text[:from+digits])
	}
	b.WriteRune(rune(n))
	return from + digits
}
