package main

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/rope-rewrite/rope-rewrite/lm"
	"github.com/rope-rewrite/rope-rewrite/lm/chat"
	"github.com/rope-rewrite/rope-rewrite/lm/tokenizer"
)

// form says how documents stand in the row.
type form struct {
	tag   string // before each document, with its id
	chunk int    // tokens of the pieces that take turns; 0 leaves documents whole
}

// pack writes the documents into a user's message, in the form of the model's chat template: what
// precedes them is the anchor, the question and what follows it are readers.
func pack(tk *tokenizer.Tokenizer, template *chat.Template, documents []string, question string, f form) (lm.Row, error) {
	if _, ok := tk.ID(endOfTurn); !ok {
		return lm.Row{}, errors.New("this example reads up to " + endOfTurn + ", and the model's tokenizer has no such token")
	}
	const place = "\ue000" // of the documents, in no text
	text, err := template.Render([]chat.Message{{Role: "user", Content: "Answer the question from these notes.\n" + place + "Question: " + question}},
		chat.Options{AddGenerationPrompt: true})
	if err != nil {
		return lm.Row{}, err
	}
	before, after, _ := strings.Cut(text, place)
	p := lm.Packing{Chunk: f.chunk}
	if p.Anchor, err = tk.Encode(before); err != nil {
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
	asked, err := tk.Encode(after)
	if err != nil {
		return lm.Row{}, fmt.Errorf("the question: %w", err)
	}
	row.Add(lm.Reader, asked...)
	return row, nil
}

const endOfTurn = "<|im_end|>"

// answer continues the row greedily; what it adds are readers, too. A model
// that takes no document ids sees everything.
func answer(ctx context.Context, text *lm.Sequence, tk *tokenizer.Tokenizer, row lm.Row, limit int) ([]int64, error) {
	end, _ := tk.ID(endOfTurn)
	logits, err := text.Prefill(ctx, row)
	var tokens []int64
	for err == nil && ctx.Err() == nil {
		next := lm.Argmax(logits.Last())
		if next == end || len(tokens) == limit {
			return tokens, nil
		}
		tokens = append(tokens, next)
		logits, err = text.Forward(ctx, lm.Row{Tokens: []int64{next}, Documents: []int64{lm.Reader}})
	}
	return nil, errors.Join(err, ctx.Err())
}
