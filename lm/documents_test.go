package lm_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/rope-rewrite/rope-rewrite/lm"
)

func TestPack(t *testing.T) {
	documents := [][]int64{{11, 12, 13}, {21}, {}, {41, 42, 43, 44, 45}}
	for _, c := range []struct {
		packing           lm.Packing
		tokens, documents []int64
	}{
		{lm.Packing{}, []int64{11, 12, 13, 21, 41, 42, 43, 44, 45}, []int64{1, 1, 1, 2, 4, 4, 4, 4, 4}},
		{lm.Packing{Anchor: []int64{7}, Tag: []int64{9}}, []int64{7, 9, 11, 12, 13, 9, 21, 9, 9, 41, 42, 43, 44, 45}, []int64{0, 1, 1, 1, 1, 2, 2, 3, 4, 4, 4, 4, 4, 4}},
		{lm.Packing{Chunk: 2}, []int64{11, 12, 21, 41, 42, 13, 43, 44, 45}, []int64{1, 1, 2, 4, 4, 1, 4, 4, 4}},
		{lm.Packing{Chunk: 100}, []int64{11, 12, 13, 21, 41, 42, 43, 44, 45}, []int64{1, 1, 1, 2, 4, 4, 4, 4, 4}},
	} {
		r := lm.Pack(documents, c.packing)
		if !slices.Equal(r.Tokens, c.tokens) || !slices.Equal(r.Documents, c.documents) {
			t.Errorf("%+v: %v of %v", c.packing, r.Tokens, r.Documents)
		}
	}
	if r := lm.Pack(nil, lm.Packing{}); len(r.Tokens) != 0 {
		t.Errorf("no documents: %v", r)
	}
}

// Two documents behind an instruction, and a question that sees both.
func ExamplePack() {
	r := lm.Pack([][]int64{{10, 11}, {20, 21, 22}}, lm.Packing{Anchor: []int64{1}})
	r.Add(lm.Reader, 30, 31)
	fmt.Println(r.Tokens)
	fmt.Println(r.Documents)
	// Output:
	// [1 10 11 20 21 22 30 31]
	// [0 1 1 2 2 2 -1 -1]
}
