package lm

import "errors"

// errOverwritten says that a ring has given the places of tokens that are needed to later ones.
var errOverwritten = errors.New("the cache holds the last tokens of a text alone, and no longer those before; compute the text anew, or take a snapshot before it goes on")

// reaches reports whether the caches, after so many tokens, still have what the first ones of them need to be
// continued.
func (f *fixed) reaches(tokens, first int64) bool {
	for _, c := range f.signature.Caches {
		if !c.Reaches(tokens, first) {
			return false
		}
	}
	return true
}

// saved are pieces of buffers, and what they held.
type saved struct{ pieces, held [][]byte }

// overwritten keeps what a call takes away in rings, so that after an error they are as they were.
func (f *fixed) overwritten(first int64, parts []part) (s saved) {
	for i, c := range f.signature.Caches {
		if c.Ring.Window == 0 {
			continue
		}
		for b, p := range parts {
			n := int64(len(p.tokens))
			// The last tokens of the call take the rows of those before them.
			for token := max(p.past, c.Rows, p.past+n-c.Rows); token < p.past+n; token++ {
				row := c.Row(token)
				for piece := range f.parts(i, first+int64(b), row, row+1) {
					s.pieces, s.held = append(s.pieces, piece), append(s.held, append([]byte(nil), piece...))
				}
			}
		}
	}
	return s
}

func (s saved) putBack() {
	for i, piece := range s.pieces {
		copy(piece, s.held[i])
	}
}
