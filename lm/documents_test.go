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
		{lm.Packing{Tag: []int64{9}, Tags: [][]int64{{7, 8}, nil}}, []int64{7, 8, 11, 12, 13, 21, 9, 9, 41, 42, 43, 44, 45}, []int64{1, 1, 1, 1, 1, 2, 3, 4, 4, 4, 4, 4, 4}},
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

// Random pieces: documents of 64 to 2,048 tokens are cut once or twice, between 20 % and 80 %, and
// those of all documents are mixed.
func TestPackRandom(t *testing.T) {
	var documents [][]int64
	for i, n := range []int{63, 64, 100, 2048, 2049, 0, 777} {
		var d []int64
		for j := range n {
			d = append(d, int64(10000*i+j))
		}
		documents = append(documents, d)
	}
	counts := map[int]int{}
	orders := map[string]bool{}
	for seed := range uint64(200) {
		packing := lm.Packing{Anchor: []int64{7}, Random: true, Seed: seed, Chunk: 3}
		r := lm.Pack(documents, packing)
		if again := lm.Pack(documents, packing); !slices.Equal(r.Tokens, again.Tokens) || !slices.Equal(r.Documents, again.Documents) {
			t.Fatalf("seed %d gives two rows", seed)
		}
		if r.Tokens[0] != 7 || r.Documents[0] != lm.Anchor {
			t.Fatalf("the row begins with %d of document %d", r.Tokens[0], r.Documents[0])
		}
		rest := slices.Clone(documents)
		order, cut := "", make([][]int, len(documents))
		for i := 1; i < len(r.Tokens); {
			id := r.Documents[i]
			end := i
			for end < len(r.Tokens) && r.Documents[end] == id && (end == i || r.Tokens[end] == r.Tokens[end-1]+1) {
				end++
			}
			d := rest[id-1]
			if !slices.Equal(r.Tokens[i:end], d[:min(end-i, len(d))]) {
				t.Fatalf("seed %d: place %d does not go on with document %d", seed, i, id)
			}
			rest[id-1] = d[end-i:]
			cut[id-1] = append(cut[id-1], len(documents[id-1])-len(rest[id-1]))
			order += fmt.Sprint(id, " ")
			i = end
		}
		orders[order] = true
		for i, places := range cut {
			n := len(documents[i])
			if len(rest[i]) > 0 || n > 0 && (n < 64 || n > 2048) && len(places) != 1 || len(places) > 3 {
				t.Fatalf("seed %d: a document of %d tokens is cut at %v", seed, n, places)
			}
			if n < 64 || n > 2048 {
				continue
			}
			counts[len(places)]++
			for j, place := range places[:len(places)-1] {
				if place < n/5 || place > 4*n/5 || j > 0 && place < places[j-1]+11 {
					t.Fatalf("seed %d: a document of %d tokens is cut at %v", seed, n, places)
				}
			}
		}
	}
	// Two pieces of a document that follow each other count as one here.
	if len(orders) < 150 || counts[2] < 200 || counts[3] < 200 || counts[1] > 80 {
		t.Errorf("200 seeds give %d orders, and cut documents into pieces so often: %v", len(orders), counts)
	}
}

// Documents with tags of their domains, cut and mixed from a seed, as AnchorAttention's
// training rows are.
func ExamplePack_random() {
	code, prose := []int64{901}, []int64{902}
	document := func(first int64) (tokens []int64) {
		for i := range int64(80) {
			tokens = append(tokens, first+i)
		}
		return tokens
	}
	r := lm.Pack([][]int64{document(100), document(300)}, lm.Packing{Anchor: []int64{1}, Tags: [][]int64{code, prose}, Random: true, Seed: 4})
	var pieces []int64 // the document of each piece
	for i, id := range r.Documents {
		if i == 0 || id != r.Documents[i-1] {
			pieces = append(pieces, id)
		}
	}
	fmt.Println(len(r.Tokens), pieces)
	// Output: 163 [0 1 2 1 2 1 2]
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
