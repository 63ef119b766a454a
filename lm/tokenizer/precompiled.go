package tokenizer

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"errors"
	"strings"

	"github.com/rivo/uniseg"
)

// charsmap is SentencePiece's table of normalizations: texts, and what stands in
// their place. It is a double array in the format of the library Darts-clone,
// and behind it the replacements, each ended by a zero byte.
type charsmap struct {
	units        []uint32
	replacements []byte
}

func readPrecompiled(b json.RawMessage, _ nesting) (normalizer, error) {
	var f struct {
		named
		Map []byte `json:"precompiled_charsmap"`
	}
	if err := strict(b, &f); err != nil {
		return nil, err
	}
	return parseCharsmap(f.Map)
}

func parseCharsmap(b []byte) (*charsmap, error) {
	if len(b) < 4 {
		return nil, errors.New("its precompiled_charsmap is too short")
	}
	size := int64(binary.LittleEndian.Uint32(b))
	if b = b[4:]; size > int64(len(b)) || size%4 != 0 || size == 0 {
		return nil, errors.New("its precompiled_charsmap does not have the size that it says")
	}
	m := &charsmap{units: make([]uint32, size/4), replacements: b[size:]}
	for i := range m.units {
		m.units[i] = binary.LittleEndian.Uint32(b[4*i:])
	}
	return m, nil
}

// lookup finds the shortest entry that a text begins with. SentencePiece takes
// the longest; models are trained with the library that takes the shortest.
func (m *charsmap) lookup(text string) (replacement string, ok bool) {
	at := offset(m.units[0])
	for i := range len(text) {
		c := uint32(text[i])
		if at ^= c; c == 0 || int64(at) >= int64(len(m.units)) {
			return "", false
		}
		unit := m.units[at]
		if unit&(1<<31|0xFF) != c {
			return "", false
		}
		at ^= offset(unit)
		if unit>>8&1 == 0 {
			continue
		}
		if int64(at) >= int64(len(m.units)) {
			return "", false
		}
		return m.replacement(m.units[at] & (1<<31 - 1))
	}
	return "", false
}

func offset(unit uint32) uint32 { return unit >> 10 << (unit & (1 << 9) >> 6) }

func (m *charsmap) replacement(at uint32) (string, bool) {
	if int64(at) > int64(len(m.replacements)) {
		return "", false
	}
	text := m.replacements[at:]
	if end := bytes.IndexByte(text, 0); end >= 0 {
		text = text[:end]
	}
	return validUTF8(string(text)), true
}

// normalize looks up short clusters of letters (what a reader sees as one) as a
// whole, and what is not found letter by letter.
func (m *charsmap) normalize(p piece, w *work) (piece, error) {
	var b strings.Builder
	out := piece{}
	put := func(text string) {
		b.WriteString(text)
		if p.lead > 0 && out.lead == 0 {
			out.lead = len(text)
		}
	}
	state := -1
	for rest := p.text; rest != ""; {
		var cluster string
		cluster, rest, _, state = uniseg.FirstGraphemeClusterInString(rest, state)
		if err := w.fits(b.Len()); err != nil {
			return p, err
		}
		if len(cluster) < 6 {
			if text, ok := m.lookup(cluster); ok {
				put(text)
				continue
			}
		}
		for _, r := range cluster {
			letter := string(r)
			if text, ok := m.lookup(letter); ok {
				letter = text
			}
			put(letter)
		}
	}
	out.text = b.String()
	return out, nil
}
