package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/rope-rewrite/rope-rewrite/lm"
	"github.com/rope-rewrite/rope-rewrite/lm/tokenizer"
)

// form says how documents stand in the row.
type form struct {
	tag   string // before each document, with its id
	chunk int    // tokens of the pieces that take turns; 0 leaves documents whole
}

// pack writes the documents in ChatML's form: what precedes them is the
// anchor, the question and what follows it are readers.
func pack(tk *tokenizer.Tokenizer, documents []string, question string, f form) (lm.Row, error) {
	if _, ok := tk.ID(endOfTurn); !ok {
		return lm.Row{}, errors.New("this example writes ChatML, but the model's tokenizer has no token " + endOfTurn)
	}
	p := lm.Packing{Chunk: f.chunk}
	var err error
	if p.Anchor, err = tk.Encode("<|im_start|>user\nAnswer the question from these notes.\n"); err != nil {
		return lm.Row{}, err
	}
	texts := make([][]int64, len(documents))
	for i, text := range documents {
		// With the tag in one text: the tokenizer may join the two.
		if texts[i], err = tk.Encode(f.tag + text + "\n"); err != nil {
			return lm.Row{}, fmt.Errorf("document %d: %w", i+1, err)
		}
	}
	row := lm.Pack(texts, p)
	asked, err := tk.Encode("Question: " + question + endOfTurn + "\n<|im_start|>assistant\n")
	if err != nil {
		return lm.Row{}, fmt.Errorf("the question: %w", err)
	}
	row.Add(lm.Reader, asked...)
	return row, nil
}

const endOfTurn = "<|im_end|>"

// answer continues the row greedily; what it adds are readers, too. A model
// that takes no document ids sees everything.
func answer(ctx context.Context, decoder *lm.Decoder, tk *tokenizer.Tokenizer, row lm.Row, limit int) ([]int64, error) {
	end, _ := tk.ID(endOfTurn)
	logits, err := decoder.PrefillPacked(ctx, row.Documents, row.Tokens)
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
