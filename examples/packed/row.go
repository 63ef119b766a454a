package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/rope-rewrite/rope-rewrite/lm"
)

// row is a packed text: tokens, and the document that each belongs to.
type row struct{ tokens, documents []int64 }

func (r *row) add(document int64, tokens ...int64) {
	for _, t := range tokens {
		r.tokens, r.documents = append(r.tokens, t), append(r.documents, document)
	}
}

// form says how documents stand in the row.
type form struct {
	tag   string // before each document, with its id
	chunk int    // tokens of the pieces that take turns; 0 leaves documents whole
}

// anchor is the id of what every document sees under the anchor mask.
const anchor = 0

// pack writes the documents in ChatML's form: what precedes them is the
// anchor, the question and what follows it are readers.
func pack(tokenizer *lm.Tokenizer, documents []string, question string, f form) (*row, error) {
	if _, ok := tokenizer.Special(endOfTurn); !ok {
		return nil, errors.New("this example writes ChatML, but the model's tokenizer has no token " + endOfTurn)
	}
	r := &row{}
	add := func(document int64, text string) error {
		tokens, err := tokenizer.Encode(text)
		r.add(document, tokens...)
		return err
	}
	if err := add(anchor, "<|im_start|>user\nAnswer the question from these notes.\n"); err != nil {
		return nil, err
	}
	rest := make([][]int64, len(documents))
	for i, text := range documents {
		var err error
		if rest[i], err = tokenizer.Encode(f.tag + text + "\n"); err != nil {
			return nil, fmt.Errorf("document %d: %w", i+1, err)
		}
	}
	// Pieces take turns; an id says to which document each belongs, so that a
	// token still sees its own document and no other.
	for left := true; left; {
		left = false
		for i, tokens := range rest {
			n := len(tokens)
			if f.chunk > 0 {
				n = min(n, f.chunk)
			}
			r.add(int64(i)+1, tokens[:n]...)
			rest[i] = tokens[n:]
			left = left || len(rest[i]) > 0
		}
	}
	if err := add(lm.Reader, "Question: "+question+endOfTurn+"\n<|im_start|>assistant\n"); err != nil {
		return nil, fmt.Errorf("the question: %w", err)
	}
	return r, nil
}

const endOfTurn = "<|im_end|>"

// answer continues the row greedily; what it adds are readers, too. A model
// that takes no document ids sees everything.
func (r *row) answer(ctx context.Context, decoder *lm.Decoder, tokenizer *lm.Tokenizer, limit int) ([]int64, error) {
	end, _ := tokenizer.Special(endOfTurn)
	logits, err := decoder.ForwardPacked(r.documents, r.tokens)
	var tokens []int64
	for err == nil && ctx.Err() == nil {
		next := lm.Argmax(logits.Last())
		if next == end || len(tokens) == limit {
			return tokens, nil
		}
		tokens = append(tokens, next)
		logits, err = decoder.ForwardIn(lm.Reader, []int64{next})
	}
	return nil, errors.Join(err, ctx.Err())
}
