package lm_test

import (
	"fmt"

	"github.com/rope-rewrite/rope-rewrite/lm"
)

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
