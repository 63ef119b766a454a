package lm

import (
	"errors"
	"fmt"
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
	Anchor []int64 // tokens in front of all documents, seen by each under the mask anchor: BOS or EOS, or an instruction
	Tag    []int64 // a domain tag: tokens in front of each document, that say what kind of text it is, with its id
	Chunk  int     // split documents into pieces of this many tokens and interleave them; 0 leaves them whole
}

// Pack puts documents into a row. A token of a document that is cut still sees its own
// document and no other.
func Pack(documents [][]int64, p Packing) Row {
	var r Row
	r.Add(Anchor, p.Anchor...)
	rest := make([][]int64, len(documents))
	for i, d := range documents {
		rest[i] = slices.Concat(p.Tag, d)
	}
	for left := true; left; {
		left = false
		for i, tokens := range rest {
			n := len(tokens)
			if p.Chunk > 0 {
				n = min(n, p.Chunk)
			}
			r.Add(int64(i)+1, tokens[:n]...)
			rest[i] = tokens[n:]
			left = left || len(rest[i]) > 0
		}
	}
	return r
}

// Add appends tokens of one document, of the Anchor or of a Reader.
func (r *Row) Add(document int64, tokens ...int64) {
	r.Tokens = append(r.Tokens, tokens...)
	r.Documents = append(r.Documents, slices.Repeat([]int64{document}, len(tokens))...)
}
