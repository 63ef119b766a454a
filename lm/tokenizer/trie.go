package tokenizer

import "fmt"

// trie finds which of a set of texts stand at a place of another text. Its
// nodes are in one map, so building one of 250,000 tokens takes few allocations.
type trie struct {
	next map[uint64]int32 // node<<8 | byte
	id   []int32          // of the text that ends at a node, or -1
}

func newTrie() *trie { return &trie{next: map[uint64]int32{}, id: []int32{-1}} }

// add puts a text in; it takes the place of an equal one.
func (t *trie) add(text string, id int32) {
	node := int32(0)
	for i := range len(text) {
		key := uint64(node)<<8 | uint64(text[i])
		next, ok := t.next[key]
		if !ok {
			next = int32(len(t.id))
			t.next[key] = next
			t.id = append(t.id, -1)
		}
		node = next
	}
	t.id[node] = id
}

// step goes on by a byte; false where no text does.
func (t *trie) step(node int32, b byte) (int32, bool) {
	next, ok := t.next[uint64(node)<<8|uint64(b)]
	return next, ok
}

// tooLong refuses a token that a trie would take too many steps for, at each letter of a text.
func tooLong(token string) error {
	if len(token) > maxToken {
		return fmt.Errorf("its token %.40q... has more than %d bytes", token, maxToken)
	}
	return nil
}

// longest finds the longest text at the start of another.
func (t *trie) longest(text string) (id int32, length int) {
	id = -1
	node := int32(0)
	for i := range len(text) {
		next, ok := t.step(node, text[i])
		if !ok {
			break
		}
		node = next
		if t.id[node] >= 0 {
			id, length = t.id[node], i+1
		}
	}
	return id, length
}
