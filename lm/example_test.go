package lm_test

import (
	"context"
	"fmt"

	"github.com/rope-rewrite/rope-rewrite/customop"
	"github.com/rope-rewrite/rope-rewrite/lm"
)

// From a folder to a stream of text. The model is a small one of random weights.
func Example() {
	if err := customop.InitRuntime(""); err != nil {
		fmt.Println(err)
		return
	}
	model, err := lm.Open("../testdata/models/llama__optimum", lm.Options{Threads: 1, Folder: "../testdata/lm"})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer model.Close()
	for token, err := range model.Generate(context.Background(), lm.Input{Text: "Once upon"}, lm.GenerateOptions{MaxTokens: 2}) {
		if err != nil {
			fmt.Println(err)
			return
		}
		fmt.Printf("%d %q\n", token.ID, token.Text)
	}
	// Output:
	// 47 "A"
	// 65 "S"
}

// A prefix that several texts share is computed once.
func ExampleDecoder_Snapshot() {
	if err := customop.InitRuntime(""); err != nil {
		fmt.Println(err)
		return
	}
	model, err := lm.Open("../testdata/models/llama__optimum", lm.Options{Threads: 1, Folder: "../testdata/lm"})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer model.Close()
	ctx := context.Background()
	if _, err := model.Begin(ctx, lm.Input{Text: "A long document."}); err != nil {
		fmt.Println(err)
		return
	}
	prefix, err := model.Snapshot()
	if err != nil {
		fmt.Println(err)
		return
	}
	defer prefix.Close()
	for _, question := range []string{" Who?", " Where?"} {
		if err := model.Restore(prefix); err != nil {
			fmt.Println(err)
			return
		}
		tokens := 0
		for _, err := range model.Generate(ctx, lm.Input{Text: question}, lm.GenerateOptions{MaxTokens: 3, IgnoreEnd: true, Continue: true}) {
			if err != nil {
				fmt.Println(err)
				return
			}
			tokens++
		}
		fmt.Println(prefix.Length(), "tokens of the document,", tokens, "of an answer")
	}
	// Output:
	// 16 tokens of the document, 3 of an answer
	// 16 tokens of the document, 3 of an answer
}

// Tokens and logits alone: the most likely tokens after a prompt, one after another.
func ExampleDecoder() {
	if err := customop.InitRuntime(""); err != nil {
		fmt.Println(err)
		return
	}
	decoder, err := lm.OpenDecoder("../testdata/models/llama__optimum/model.onnx", lm.Options{Threads: 1})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer decoder.Close()
	tokens := []int64{5, 17, 99, 42}
	for next := tokens; len(tokens) < 8; {
		logits, err := decoder.Forward(next)
		if err != nil {
			fmt.Println(err)
			return
		}
		next = []int64{lm.Argmax(logits.Last())}
		tokens = append(tokens, next...)
	}
	fmt.Println(tokens, decoder.Length())
	// Output: [5 17 99 42 115 45 24 24] 7
}
