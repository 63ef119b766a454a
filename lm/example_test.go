package lm_test

import (
	"fmt"

	"github.com/rope-rewrite/rope-rewrite/customop"
	"github.com/rope-rewrite/rope-rewrite/lm"
)

// The four most likely tokens after a prompt, one after another.
func Example() {
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

func ExampleTokenizer() {
	tokenizer, err := lm.OpenTokenizer("../testdata/smollm2")
	if err != nil {
		fmt.Println(err)
		return
	}
	ids, err := tokenizer.Encode("Hello, world!")
	if err != nil {
		fmt.Println(err)
		return
	}
	var text lm.Stream
	for _, id := range ids {
		fmt.Printf("%d %q\n", id, text.Add(tokenizer.Decode(id)))
	}
	// Output:
	// 19556 "Hello"
	// 28 ","
	// 905 " world"
	// 17 "!"
}
