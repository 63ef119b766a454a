package tokenizer

import (
	"context"
	"encoding/json"
	"strings"
)

func readReplaceDecoder(b json.RawMessage, at nesting) ([]decoder, error) {
	r, err := readReplacer(b)
	if err != nil {
		return nil, err
	}
	growth := float64(1 + len(r.content)) // an expression can match at every place
	if r.pattern.re == nil {
		growth = float64(len(r.content)) / float64(len(r.pattern.literal))
	}
	return []decoder{decoderFunc(func(next stage, _ running) stage {
		if r.pattern.re == nil {
			return &literalReplacer{next: next, of: r}
		}
		left := maxMatch // of the text; tokens behind what takes too much stay as they are
		return &tokenwise{next: next, rewrite: func(_ int, token string) (string, bool) {
			if left < 0 {
				return token, true
			}
			w := newWork(context.Background(), 0)
			defer w.end()
			w.most = left
			spans, err := r.pattern.find(token, w)
			left -= w.used()
			if err == nil {
				token = r.join(token, spans)
			}
			return token, true
		}}
	})}, at.grow(growth)
}

// literalReplacer replaces a text that may come in parts.
type literalReplacer struct {
	next stage
	of   *replacer
	rest string // what can be the start of the text
}

func (s *literalReplacer) write(part string) {
	literal := s.of.pattern.literal
	s.rest += part
	for literal != "" {
		before, after, found := strings.Cut(s.rest, literal)
		if !found {
			break
		}
		s.next.write(before + s.of.content)
		s.rest = after
	}
	keep := min(len(s.rest), max(0, len(literal)-1))
	for !strings.HasPrefix(literal, s.rest[len(s.rest)-keep:]) {
		keep--
	}
	s.next.write(s.rest[:len(s.rest)-keep])
	s.rest = s.rest[len(s.rest)-keep:]
}

func (s *literalReplacer) end() {
	s.next.write(s.rest)
	s.rest = ""
	s.next.end()
}

func (s *literalReplacer) close() { s.next.close() }

func readStripDecoder(b json.RawMessage, _ nesting) ([]decoder, error) {
	var f stripFile
	err := strict(b, &f)
	return []decoder{decoderFunc(func(next stage, _ running) stage { return &strip{next: next, of: f} })}, err
}

type stripFile struct {
	named
	Content letter `json:"content"`
	Start   int    `json:"start"`
	Stop    int    `json:"stop"`
}

// strip takes up to so many equal letters from the start and the end of a token.
type strip struct {
	next   stage
	of     stripFile
	cut    int  // letters taken from the start
	begun  bool // another letter has come
	behind int  // letters that may have to be taken from the end
}

func (s *strip) write(part string) {
	var b strings.Builder
	for _, r := range part {
		switch {
		case r != rune(s.of.Content):
			s.begun = true
			for ; s.behind > 0; s.behind-- {
				b.WriteRune(rune(s.of.Content))
			}
			b.WriteRune(r)
		case !s.begun && s.cut < s.of.Start:
			s.cut++
		case s.behind < s.of.Stop:
			s.behind++
		default:
			b.WriteRune(r)
		}
	}
	s.next.write(b.String())
}

func (s *strip) end() {
	s.cut, s.begun, s.behind = 0, false, 0
	s.next.end()
}

func (s *strip) close() { s.next.close() }

func readWordPieceDecoder(b json.RawMessage, _ nesting) ([]decoder, error) {
	f := struct {
		named
		Prefix  string `json:"prefix"`
		Cleanup bool   `json:"cleanup"`
	}{Prefix: "##", Cleanup: true}
	err := strict(b, &f)
	return []decoder{decoderFunc(func(next stage, _ running) stage {
		return &tokenwise{next: next, rewrite: func(number int, token string) (string, bool) {
			if rest, ok := strings.CutPrefix(token, f.Prefix); ok && number > 0 {
				token = rest
			} else if number > 0 {
				token = " " + token
			}
			if f.Cleanup {
				token = cleanUp(token)
			}
			return token, true
		}}
	})}, err
}

// cleanUp undoes, token by token, blanks that English does not write.
func cleanUp(text string) string {
	for _, r := range [][2]string{
		{" .", "."}, {" ?", "?"}, {" !", "!"}, {" ,", ","}, {" ' ", "'"}, {" n't", "n't"}, {" 'm", "'m"},
		{" do not", " don't"}, {" 's", "'s"}, {" 've", "'ve"}, {" 're", "'re"},
	} {
		text = strings.ReplaceAll(text, r[0], r[1])
	}
	return text
}

func readCTC(b json.RawMessage, _ nesting) ([]decoder, error) {
	f := struct {
		named
		Pad       string `json:"pad_token"`
		Delimiter string `json:"word_delimiter_token"`
		Cleanup   bool   `json:"cleanup"`
	}{Pad: "<pad>", Delimiter: "|", Cleanup: true}
	err := strict(b, &f)
	return []decoder{decoderFunc(func(next stage, _ running) stage {
		before := ""
		return &tokenwise{next: next, rewrite: func(number int, token string) (string, bool) {
			again := number > 0 && token == before
			before = token
			text := replaceAll(token, f.Pad, "")
			if f.Cleanup {
				text = replaceAll(cleanUp(text), f.Delimiter, " ")
			}
			return text, !again && text != ""
		}}
	})}, err
}

// replaceAll leaves a text as it is where nothing is to be replaced.
func replaceAll(text, old, by string) string {
	if old == "" {
		return text
	}
	return strings.ReplaceAll(text, old, by)
}

func readBPEDecoder(b json.RawMessage, _ nesting) ([]decoder, error) {
	f := struct {
		named
		Suffix string `json:"suffix"`
	}{Suffix: "</w>"}
	err := strict(b, &f)
	return []decoder{decoderFunc(func(next stage, _ running) stage { return &wordEndings{next: next, suffix: f.Suffix} })}, err
}

// wordEndings makes a blank of what ends a word, but not at the end of a text.
type wordEndings struct {
	next   stage
	suffix string
	token  strings.Builder
	last   string
	any    bool
}

func (s *wordEndings) write(part string) { s.token.WriteString(part) }

func (s *wordEndings) end() {
	s.give(" ")
	s.last, s.any = s.token.String(), true
	s.token.Reset()
}

func (s *wordEndings) give(ending string) {
	if s.any {
		s.next.write(replaceAll(s.last, s.suffix, ending))
		s.next.end()
	}
}

func (s *wordEndings) close() {
	s.give("")
	s.next.close()
}
