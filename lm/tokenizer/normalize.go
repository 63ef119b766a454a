package tokenizer

import (
	"encoding/json"
	"strings"
	"unicode"
	"unicode/utf8"
)

// piece is a part of a text on its way to the model.
type piece struct {
	text string
	lead int // how many bytes at its start come of the first letter of the caller's text
}

// newPiece is for what begins where the caller's text begins.
func newPiece(text string) piece {
	_, n := utf8.DecodeRuneInString(text)
	return piece{text, n}
}

// mapped is the piece with its letters rewritten one by one.
func (p piece) mapped(f func(string) string) piece {
	out := piece{text: f(p.text)}
	if p.lead > 0 {
		out.lead = min(len(f(p.text[:p.lead])), len(out.text))
	}
	for out.lead < len(out.text) && !utf8.RuneStart(out.text[out.lead]) {
		out.lead++ // what follows the first letter has become a part of it
	}
	return out
}

// prepend puts a text before the piece, as a part of its first letter.
func (p piece) prepend(text string) piece {
	if p.lead > 0 {
		p.lead += len(text)
	}
	p.text = text + p.text
	return p
}

// normalizer rewrites a text before it is cut up.
type normalizer interface {
	normalize(p piece, w *work) (piece, error)
}

// normalizerFunc is a normalizer that cannot fail.
type normalizerFunc func(p piece) piece

func (f normalizerFunc) normalize(p piece, _ *work) (piece, error) { return f(p), nil }

func readNormalizer(part json.RawMessage, at nesting) (normalizer, error) {
	return readPart("normalizer", part, map[string]reader[normalizer]{
		"NFC":            plainNormalizer(textFunc(nfc)),
		"NFD":            plainNormalizer(textFunc(nfd)),
		"NFKC":           plainNormalizer(textFunc(nfkc)),
		"NFKD":           plainNormalizer(textFunc(nfkd)),
		"Lowercase":      plainNormalizer(textFunc(lowercase)),
		"StripAccents":   plainNormalizer(textFunc(stripAccents)),
		"Nmt":            plainNormalizer(textFunc(nmt)),
		"ByteLevel":      plainNormalizer(textFunc(newByteLetters().write)),
		"Strip":          readStrip,
		"Prepend":        readPrepend,
		"Replace":        readReplace,
		"BertNormalizer": readBertNormalizer,
		"Precompiled":    readPrecompiled,
		"Sequence":       readNormalizers,
	}, at)
}

// plainNormalizer is one that has no options.
func plainNormalizer(n normalizerFunc) reader[normalizer] {
	return func(b json.RawMessage, _ nesting) (normalizer, error) {
		var f named
		return n, strict(b, &f)
	}
}

// textFunc is a normalizer of letters.
func textFunc(f func(string) string) normalizerFunc {
	return func(p piece) piece { return p.mapped(f) }
}

// keep leaves out letters.
func keep(wanted func(rune) bool) func(string) string {
	return func(text string) string {
		return strings.Map(func(r rune) rune {
			if wanted(r) {
				return r
			}
			return -1
		}, text)
	}
}

type normalizers []normalizer

func readNormalizers(b json.RawMessage, at nesting) (normalizer, error) {
	var f struct {
		named
		Normalizers []json.RawMessage `json:"normalizers"`
	}
	if err := strict(b, &f); err != nil {
		return nil, err
	}
	all, err := readAll(f.Normalizers, at, readNormalizer)
	return normalizers(all), err
}

func (all normalizers) normalize(p piece, w *work) (piece, error) {
	for _, n := range all {
		var err error
		if p, err = n.normalize(p, w); err != nil {
			return p, err
		}
		if err := w.fits(len(p.text)); err != nil {
			return p, err
		}
	}
	return p, nil
}

// lowercase maps letter by letter, so a final sigma is none.
func lowercase(text string) string {
	if !strings.ContainsRune(text, 'İ') {
		return strings.ToLower(text)
	}
	// Unicode's only letter that two stand for in lower case always; Go has one.
	return strings.ReplaceAll(strings.ToLower(strings.ReplaceAll(text, "İ", "i̇")), "İ", "i̇")
}

func stripAccents(text string) string {
	return keep(func(r rune) bool { return !unicode.Is(unicode.M, r) })(text)
}

// nmt is the cleaning of Google's translation system, as SentencePiece has it.
func nmt(text string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case r >= 1 && r <= 8 || r == 0xB || r >= 0xE && r <= 0x1F || r == 0x7F || r == 0x8F || r == 0x9F:
			return -1
		case r == '\t', r == '\n', r == '\f', r == '\r', r == 0x1680, r >= 0x200B && r <= 0x200F,
			r == 0x2028, r == 0x2029, r == 0x2581, r == 0xFEFF, r == 0xFFFD:
			return ' '
		}
		return r
	}, text)
}

func readStrip(b json.RawMessage, _ nesting) (normalizer, error) {
	var f struct {
		named
		Left  bool `json:"strip_left"`
		Right bool `json:"strip_right"`
	}
	return normalizerFunc(func(p piece) piece {
		if f.Left {
			text := strings.TrimLeftFunc(p.text, isWhitespace)
			p.lead = max(0, p.lead-(len(p.text)-len(text)))
			p.text = text
		}
		if f.Right {
			p.text = strings.TrimRightFunc(p.text, isWhitespace)
			p.lead = min(p.lead, len(p.text))
		}
		return p
	}), strict(b, &f)
}

func readPrepend(b json.RawMessage, _ nesting) (normalizer, error) {
	var f struct {
		named
		Prepend string `json:"prepend"`
	}
	return normalizerFunc(func(p piece) piece {
		if p.text != "" {
			p = p.prepend(f.Prepend)
		}
		return p
	}), strict(b, &f)
}

// replacer puts one text in the place of all matches of a pattern.
type replacer struct {
	pattern *pattern
	content string
}

func readReplace(b json.RawMessage, _ nesting) (normalizer, error) { return readReplacer(b) }

func readReplacer(b json.RawMessage) (*replacer, error) {
	var f struct {
		named
		Pattern patternFile `json:"pattern"`
		Content string      `json:"content"`
	}
	if err := strict(b, &f); err != nil {
		return nil, err
	}
	p, err := f.Pattern.compile()
	return &replacer{p, f.Content}, err
}

func (r *replacer) normalize(p piece, w *work) (piece, error) {
	spans, err := r.pattern.find(p.text, w)
	if err != nil {
		return p, err
	}
	size := len(p.text)
	for _, s := range spans {
		if s.match {
			size += len(r.content) - (s.end - s.start)
		}
	}
	if err := w.fits(size); err != nil {
		return p, err
	}
	out := piece{text: r.join(p.text, spans)}
	for _, s := range spans {
		if s.match { // the replacement comes of the last letter that it stands for
			_, n := utf8.DecodeLastRuneInString(p.text[s.start:s.end])
			if s.end-n < p.lead {
				out.lead += len(r.content)
			}
		} else {
			out.lead += max(0, min(s.end, p.lead)-s.start)
		}
		if s.end >= p.lead {
			break
		}
	}
	return out, nil
}

func (r *replacer) join(text string, spans []span) string {
	if r.pattern.re == nil && r.pattern.literal != "" {
		return strings.ReplaceAll(text, r.pattern.literal, r.content)
	}
	var b strings.Builder
	for _, s := range spans {
		if s.match {
			b.WriteString(r.content)
		} else {
			b.WriteString(text[s.start:s.end])
		}
	}
	return b.String()
}

func readBertNormalizer(b json.RawMessage, _ nesting) (normalizer, error) {
	var f struct {
		named
		CleanText          bool  `json:"clean_text"`
		HandleChineseChars bool  `json:"handle_chinese_chars"`
		StripAccents       *bool `json:"strip_accents"`
		Lowercase          bool  `json:"lowercase"`
	}
	err := strict(b, &f)
	return normalizerFunc(func(p piece) piece {
		if f.CleanText {
			p = p.mapped(bertClean)
		}
		if f.HandleChineseChars {
			p = p.mapped(spaceChinese)
		}
		if f.StripAccents == nil && f.Lowercase || f.StripAccents != nil && *f.StripAccents {
			p = p.mapped(nfd).mapped(keep(func(r rune) bool { return !unicode.Is(unicode.Mn, r) }))
		}
		if f.Lowercase {
			p = p.mapped(lowercase)
		}
		return p
	}), err
}

// bertClean drops control characters and makes every blank a space.
func bertClean(text string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case r == '\t', r == '\n', r == '\r':
			return ' '
		case r == 0xFFFD, unicode.In(r, unicode.Cc, unicode.Cf, unicode.Co):
			return -1
		case isWhitespace(r):
			return ' '
		}
		return r
	}, text)
}

func spaceChinese(text string) string {
	if !strings.ContainsFunc(text, isChinese) {
		return text
	}
	var b strings.Builder
	for _, r := range text {
		if isChinese(r) {
			b.WriteByte(' ')
			b.WriteRune(r)
			b.WriteByte(' ')
		} else {
			b.WriteRune(r)
		}
	}
	return b.String()
}
