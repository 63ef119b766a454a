package tokenizer

import (
	"encoding/json"
	"strconv"
	"strings"
)

// decoder makes text of tokens. A decoder itself does not change; begin starts it
// on one text.
type decoder interface {
	begin(next stage, how running) stage
}

// running is what a decoder must know of where it works.
type running struct {
	fused bool // all tokens before it have become one
	live  bool // text is wanted as soon as it is known
}

// stage is a decoder at work. A token comes in parts, each of them whole letters.
type stage interface {
	write(part string)
	end()   // of a token
	close() // of the text
}

// decoderFunc makes a decoder of what begins it.
type decoderFunc func(next stage, how running) stage

func (f decoderFunc) begin(next stage, how running) stage { return f(next, how) }

func readDecoder(part json.RawMessage, at nesting) ([]decoder, error) {
	return readPart("decoder", part, map[string]reader[[]decoder]{
		"ByteLevel":    readByteLevelDecoder,
		"ByteFallback": plainDecoder(func(next stage, _ running) stage { return &byteFallback{next: next} }),
		"Fuse":         plainDecoder(func(next stage, _ running) stage { return &fuse{next} }),
		"BPEDecoder":   readBPEDecoder,
		"CTC":          readCTC,
		"Metaspace":    readMetaspaceDecoder,
		"Replace":      readReplaceDecoder,
		"Strip":        readStripDecoder,
		"WordPiece":    readWordPieceDecoder,
		"Sequence":     readDecoders,
	}, at)
}

func readDecoders(b json.RawMessage, at nesting) ([]decoder, error) {
	var f struct {
		named
		Decoders []json.RawMessage `json:"decoders"`
	}
	if err := strict(b, &f); err != nil {
		return nil, err
	}
	lists, err := readAll(f.Decoders, at, readDecoder)
	all := []decoder{}
	for _, l := range lists {
		all = append(all, l...)
	}
	return all, err
}

func plainDecoder(d decoderFunc) reader[[]decoder] {
	return func(b json.RawMessage, _ nesting) ([]decoder, error) {
		var f named
		return []decoder{d}, strict(b, &f)
	}
}

// chain puts decoders behind one another.
func chain(all []decoder, sink stage, live bool) stage {
	fused := make([]bool, len(all)+1)
	for i, d := range all {
		_, isFuse := d.begin(sink, running{}).(*fuse)
		_, isBytes := d.begin(sink, running{}).(*byteDecoder)
		fused[i+1] = fused[i] || isFuse || isBytes
	}
	next := sink
	for i := len(all) - 1; i >= 0; i-- {
		next = all[i].begin(next, running{fused: fused[i], live: live})
	}
	return next
}

// output is the last stage.
type output struct{ strings.Builder }

func (o *output) write(part string) { o.WriteString(part) }
func (o *output) end()              {}
func (o *output) close()            {}

// take gives what has come so far, once.
func (o *output) take() string {
	text := o.String()
	o.Reset()
	return text
}

// fuse makes one token of all.
type fuse struct{ next stage }

func (f *fuse) write(part string) { f.next.write(part) }
func (f *fuse) end()              {}
func (f *fuse) close() {
	f.next.end()
	f.next.close()
}

// tokenwise rewrites whole tokens, of which it may drop some.
type tokenwise struct {
	next    stage
	rewrite func(number int, token string) (text string, keep bool)
	token   strings.Builder
	number  int
}

func (s *tokenwise) write(part string) { s.token.WriteString(part) }

func (s *tokenwise) end() {
	if text, keep := s.rewrite(s.number, s.token.String()); keep {
		s.next.write(text)
		s.next.end()
	}
	s.token.Reset()
	s.number++
}

func (s *tokenwise) close() { s.next.close() }

// spaced puts blanks between tokens, which is what no decoder means.
func spaced(next stage, _ running) stage {
	return &tokenwise{next: next, rewrite: func(number int, token string) (string, bool) {
		if number > 0 {
			token = " " + token
		}
		return token, true
	}}
}

// byteFallback makes letters of tokens such as <0xE2>. Neighbouring ones are all
// letters or all U+FFFD, so they are kept until another token comes.
type byteFallback struct {
	next  stage
	token strings.Builder
	bytes []byte
}

func (s *byteFallback) write(part string) { s.token.WriteString(part) }

func (s *byteFallback) end() {
	token := s.token.String()
	s.token.Reset()
	if len(token) == 6 && strings.HasPrefix(token, "<0x") && token[5] == '>' {
		if b, err := strconv.ParseUint(token[3:5], 16, 8); err == nil {
			s.bytes = append(s.bytes, byte(b))
			return
		}
	}
	s.flush()
	s.next.write(token)
	s.next.end()
}

func (s *byteFallback) flush() {
	if len(s.bytes) == 0 {
		return
	}
	if text := string(s.bytes); validUTF8(text) == text {
		s.next.write(text)
		s.next.end()
	} else {
		for range s.bytes {
			s.next.write("\uFFFD")
			s.next.end()
		}
	}
	s.bytes = s.bytes[:0]
}

func (s *byteFallback) close() {
	s.flush()
	s.next.close()
}

func readByteLevelDecoder(b json.RawMessage, _ nesting) ([]decoder, error) {
	var f struct {
		named
		AddPrefixSpace bool `json:"add_prefix_space"`
		TrimOffsets    bool `json:"trim_offsets"`
		UseRegex       bool `json:"use_regex"`
	}
	letters := newByteLetters()
	return []decoder{decoderFunc(func(next stage, how running) stage {
		return &byteDecoder{next: next, letters: letters, atOnce: how.fused && how.live}
	})}, strict(b, &f)
}

// byteDecoder makes bytes of their letters, and one token of all. A token with
// other letters is unchanged.
type byteDecoder struct {
	next    stage
	letters *byteLetters
	// Where all tokens have become one before, a letter at their end could change
	// what stands at their start. No tokenizer is meant to do that, and a stream
	// cannot wait for it: there each part is a token.
	atOnce bool
	token  strings.Builder
	rest   string // an unfinished letter
}

func (s *byteDecoder) write(part string) {
	s.token.WriteString(part)
	if s.atOnce {
		s.end()
	}
}

func (s *byteDecoder) end() {
	text, _ := s.letters.read(s.token.String())
	s.token.Reset()
	text, s.rest = cutUnfinished(s.rest + text)
	s.next.write(validUTF8(text))
}

func (s *byteDecoder) close() {
	s.next.write(validUTF8(s.rest))
	s.next.end()
	s.next.close()
}

func readMetaspaceDecoder(b json.RawMessage, _ nesting) ([]decoder, error) {
	m, err := readMetaspaceFile(b)
	return []decoder{decoderFunc(func(next stage, _ running) stage { return &blanks{next: next, of: m} })}, err
}

// blanks makes blanks of what stands for them, of those in the first token none.
type blanks struct {
	next  stage
	of    metaspace
	later bool
}

func (s *blanks) write(part string) {
	blank := " "
	if !s.later && s.of.scheme != "never" {
		blank = ""
	}
	s.next.write(strings.ReplaceAll(part, string(s.of.replacement), blank))
}

func (s *blanks) end() {
	s.later = true
	s.next.end()
}

func (s *blanks) close() { s.next.close() }
