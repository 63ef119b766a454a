package tokenizer

import "unicode"

// isWhitespace is Unicode's White_Space.
func isWhitespace(r rune) bool { return unicode.IsSpace(r) }

// isWord is what \w means in regular expressions over Unicode (UTS 18, annex C).
func isWord(r rune) bool {
	return unicode.In(r, unicode.L, unicode.M, unicode.Nd, unicode.Nl, unicode.Pc, unicode.Other_Alphabetic, unicode.Join_Control)
}

func isNumeric(r rune) bool { return unicode.Is(unicode.N, r) }

// isPunctuation counts ASCII's symbols as punctuation too, as BERT does.
func isPunctuation(r rune) bool {
	if r < unicode.MaxASCII {
		return r > ' ' && (r < '0' || r > '9' && r < 'A' || r > 'Z' && r < 'a' || r > 'z')
	}
	return unicode.Is(unicode.P, r)
}

// isChinese is BERT's range of ideographs, which get blanks around them.
func isChinese(r rune) bool {
	switch {
	case r < 0x3400:
		return false
	case r <= 0x4DBF, r >= 0x4E00 && r <= 0x9FFF, r >= 0xF900 && r <= 0xFAFF:
		return true
	case r >= 0x20000 && r <= 0x2A6DF, r >= 0x2A700 && r <= 0x2B81F, r >= 0x2B920 && r <= 0x2CEAF, r >= 0x2F800 && r <= 0x2FA1F:
		return true
	}
	return false
}

// byteLetters is how GPT-2 writes bytes: those that can be printed as Latin-1
// letters, the others as the letters from U+0100.
type byteLetters struct {
	letter [256]rune
	byte   map[rune]byte
}

func newByteLetters() *byteLetters {
	t := &byteLetters{byte: make(map[rune]byte, 256)}
	next := rune(256)
	for b := range 256 {
		r := rune(b)
		if !(r >= '!' && r <= '~' || r >= '¡' && r <= '¬' || r >= '®' && r <= 'ÿ') {
			r = next
			next++
		}
		t.letter[b], t.byte[r] = r, byte(b)
	}
	return t
}

// write gives the letters of a text's bytes.
func (t *byteLetters) write(text string) string {
	b := make([]rune, len(text))
	for i := range len(text) {
		b[i] = t.letter[text[i]]
	}
	return string(b)
}

// read gives the bytes of letters; ok is false if there are others among them.
func (t *byteLetters) read(letters string) (text string, ok bool) {
	b := make([]byte, 0, len(letters))
	for _, r := range letters {
		c, ok := t.byte[r]
		if !ok {
			return letters, false
		}
		b = append(b, c)
	}
	return string(b), true
}
