package lm_test

import (
	"context"
	"fmt"
	"sync"

	"github.com/rope-rewrite/rope-rewrite/customop"
	"github.com/rope-rewrite/rope-rewrite/lm"
	"github.com/rope-rewrite/rope-rewrite/lm/chat"
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

// Two clients talk to one model at the same time. What a conversation has said already is not computed again.
func ExampleModel_NewConversation() {
	if err := customop.InitRuntime(""); err != nil {
		fmt.Println(err)
		return
	}
	model, err := lm.Open("../testdata/models/llama__optimum", lm.Options{Threads: 1, Folder: "../testdata/lm", Rows: 2})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer model.Close()
	model.Chat, err = chat.Parse("{% for m in messages %}{{ m.content }}.{% endfor %}", nil)
	if err != nil {
		fmt.Println(err)
		return
	}
	var clients sync.WaitGroup
	said := make([]int, 2)
	for i := range said {
		clients.Go(func() {
			talk, err := model.NewConversation()
			if err != nil {
				fmt.Println(err)
				return
			}
			defer talk.Close()
			for _, question := range []string{"Who", "Where"} {
				talk.Messages = append(talk.Messages, chat.Message{Role: "user", Content: question})
				for _, err := range talk.Reply(context.Background(), lm.GenerateOptions{MaxTokens: 3, IgnoreEnd: true}) {
					if err != nil {
						fmt.Println(err)
						return
					}
					said[i]++
				}
			}
		})
	}
	clients.Wait()
	fmt.Println(said, "tokens")
	// Output:
	// [6 6] tokens
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
	text, err := decoder.NewSequence()
	if err != nil {
		fmt.Println(err)
		return
	}
	defer text.Close()
	tokens := []int64{5, 17, 99, 42}
	for next := tokens; len(tokens) < 8; {
		logits, err := text.Forward(context.Background(), lm.Row{Tokens: next})
		if err != nil {
			fmt.Println(err)
			return
		}
		next = []int64{lm.Argmax(logits.Last())}
		tokens = append(tokens, next...)
	}
	fmt.Println(tokens, text.Length())
	// Output: [5 17 99 42 115 45 24 24] 7
}
