package lm

import (
	"bytes"
	"testing"

	"github.com/rope-rewrite/rope-rewrite/internal/signature"
)

// What a call takes away in a ring is put back, and nothing else is touched.
func TestOverwritten(t *testing.T) {
	const rows, heads = 6, 2
	ring := signature.Cache{Heads: heads, Rows: rows, Size: 1, Ring: signature.Ring{First: 2, Window: 4}}
	for _, tokens := range []int{1, 3, 20} {
		f := &fixed{Decoder: &Decoder{signature: &signature.Signature{Caches: []signature.Cache{ring}}}, rows: 1}
		before := []byte("abcdefABCDEF")
		f.buffers = [][]byte{bytes.Clone(before)}
		past := int64(9)
		saved := f.overwritten(0, []part{{tokens: make([]int64, tokens), past: past}})
		for i := range tokens {
			for head := range int64(heads) {
				f.buffers[0][head*rows+ring.Row(past+int64(i))] = '.'
			}
		}
		if first := f.buffers[0][:2]; string(first) != "ab" {
			t.Errorf("%d tokens: the first tokens are %q", tokens, first)
		}
		if bytes.Equal(f.buffers[0], before) {
			t.Errorf("%d tokens overwrite nothing", tokens)
		}
		saved.putBack()
		if !bytes.Equal(f.buffers[0], before) {
			t.Errorf("%d tokens: the ring is %q, was %q", tokens, f.buffers[0], before)
		}
	}
}
