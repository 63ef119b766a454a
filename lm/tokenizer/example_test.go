package tokenizer_test

import (
	"fmt"

	"github.com/rope-rewrite/rope-rewrite/lm/tokenizer"
)

// Text to ids, and back as they come.
func Example() {
	t, err := tokenizer.Open("../../testdata/smollm2")
	if err != nil {
		fmt.Println(err)
		return
	}
	ids, err := t.Encode("Hello, world!")
	if err != nil {
		fmt.Println(err)
		return
	}
	stream := t.Stream(false)
	for _, id := range ids {
		fmt.Printf("%d %q\n", id, stream.Add(id))
	}
	// Output:
	// 19556 "Hello"
	// 28 ","
	// 905 " world"
	// 17 "!"
}
