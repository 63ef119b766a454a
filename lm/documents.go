package lm

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
)

// Document ids, as a model takes them that was patched with --documents. A document's own
// tokens have its number, from 1 on.
const (
	// Anchor is the id of tokens that every document sees under the mask anchor: the one
	// token that a row begins with (BOS, or EOS where a model has none; Wang et al., "When
	// Precision Meets Position: BFloat16 Breaks Down RoPE in Long-Context Training", 2024),
	// or an instruction.
	Anchor = 0
	// Reader is the id of tokens that see all documents, such as a question and its answer.
	Reader = -1
)

// Row is a text of several documents: tokens, and the document that each belongs to.
// A mask by documents (intra-document, anchor) hides the documents from one another.
// Without Documents all tokens belong to document 1.
type Row struct{ Tokens, Documents []int64 }

// complete has a document for each token.
func (r Row) complete() (Row, error) {
	switch {
	case len(r.Tokens) == 0:
		return r, errors.New("no tokens to run the model on")
	case r.Documents == nil:
		r.Documents = slices.Repeat([]int64{1}, len(r.Tokens))
	case len(r.Documents) != len(r.Tokens):
		return r, fmt.Errorf("%d tokens are given, but document ids for %d", len(r.Tokens), len(r.Documents))
	}
	return r, nil
}

// Packing says how documents are placed in a row. The zero value puts one after the
// other.
type Packing struct {
	Anchor []int64   // tokens in front of all documents, seen by each under the mask anchor: BOS or EOS, or an instruction
	Tag    []int64   // a domain tag: tokens in front of each document, that say what kind of text it is, with its id
	Tags   [][]int64 // a tag of its own for each document, in place of Tag, which those beyond the last of Tags have
	Chunk  int       // split documents into pieces of this many tokens and interleave them; 0 leaves them whole

	// Random cuts documents of 64 to 2,048 tokens, tags included, into two or three pieces of random
	// sizes and mixes the pieces of all documents; those of one stay in order. So AnchorAttention's authors
	// prepare interleaved chunks. (Their paper finds that training on these does not help.) Seed decides;
	// Chunk is not used.
	Random bool
	Seed   uint64
}

// Pack puts documents into a row. A token of a document that is cut still sees its own
// document and no other.
func Pack(documents [][]int64, p Packing) Row {
	var r Row
	r.Add(Anchor, p.Anchor...)
	tagged := make([][]int64, len(documents))
	for i, d := range documents {
		tag := p.Tag
		if i < len(p.Tags) {
			tag = p.Tags[i]
		}
		tagged[i] = slices.Concat(tag, d)
	}
	if p.Random {
		r.mix(tagged, rand.New(rand.NewPCG(p.Seed, 0)))
	} else {
		r.interleave(tagged, p.Chunk)
	}
	return r
}

// interleave adds a piece of each document in turn.
func (r *Row) interleave(rest [][]int64, chunk int) {
	for left := true; left; {
		left = false
		for i, tokens := range rest {
			n := len(tokens)
			if chunk > 0 {
				n = min(n, chunk)
			}
			r.Add(int64(i)+1, tokens[:n]...)
			rest[i] = tokens[n:]
			left = left || len(rest[i]) > 0
		}
	}
}

// Documents that are cut have so many tokens.
const shortestCut, longestCut = 64, 2048

// mix adds random pieces in the order of random keys, which grow in each document.
func (r *Row) mix(documents [][]int64, random *rand.Rand) {
	type piece struct {
		key      float64
		document int64
		tokens   []int64
	}
	var pieces []piece
	for i, tokens := range documents {
		key, step := random.Float64(), math.Exp(random.Float64())
		start := 0
		for _, end := range append(cuts(len(tokens), random), len(tokens)) {
			pieces = append(pieces, piece{key, int64(i) + 1, tokens[start:end]})
			key, start = key+step, end
		}
	}
	slices.SortStableFunc(pieces, func(a, b piece) int { return cmp.Compare(a.key, b.key) })
	for _, p := range pieces {
		r.Add(p.document, p.tokens...)
	}
}

// cuts are where a document of n tokens is cut: once or twice between 20 % and 80 % of it, with a dozen
// tokens or so between two cuts.
func cuts(n int, random *rand.Rand) []int {
	if n < shortestCut || n > longestCut {
		return nil
	}
	const between = 12
	first, last := n/5, 4*n/5
	if random.IntN(2) == 0 {
		return []int{first + random.IntN(last-first)}
	}
	one := first + random.IntN(last-between-first+1)
	next := min(one+between, last-1)
	return []int{one, next + random.IntN(last-next+1)}
}

// Add appends tokens of one document, of the Anchor or of a Reader.
func (r *Row) Add(document int64, tokens ...int64) {
	r.Tokens = append(r.Tokens, tokens...)
	r.Documents = append(r.Documents, slices.Repeat([]int64{document}, len(tokens))...)
}
