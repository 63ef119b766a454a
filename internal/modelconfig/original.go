package modelconfig

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
)

// Original is what a text was before it was changed, to the byte: what differs of it, and where.
// Taking changes back key by key gives the same values, but not always the same spaces.
type Original struct {
	Digest string `json:"sha256"` // of the changed text
	At     int    `json:"at"`     // the first byte that differs
	Length int    `json:"length"` // bytes of the changed text that stand for Text
	Text   []byte `json:"text"`
}

// OriginalOf returns the original of a changed text.
func OriginalOf(original, changed []byte) Original {
	at, shorter := 0, min(len(original), len(changed))
	for at < shorter && original[at] == changed[at] {
		at++
	}
	end := 0
	for end < shorter-at && original[len(original)-1-end] == changed[len(changed)-1-end] {
		end++
	}
	return Original{digest(changed), at, len(changed) - end - at, bytes.Clone(original[at : len(original)-end])}
}

// Of returns the original, or false where the text is another than that which was written.
func (o Original) Of(changed []byte) ([]byte, bool) {
	if digest(changed) != o.Digest || o.At < 0 || o.At > len(changed) || o.Length < 0 || o.Length > len(changed)-o.At {
		return nil, false
	}
	return bytes.Join([][]byte{changed[:o.At], o.Text, changed[o.At+o.Length:]}, nil), true
}

func digest(text []byte) string {
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:])
}
