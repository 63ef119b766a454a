package tokenizer_test

import (
	"fmt"
	"log"

	"github.com/rope-rewrite/rope-rewrite/lm/tokenizer"
)

func Example() {
	t, err := tokenizer.Open("../../testdata/smollm2")
	if err != nil {
		log.Fatal(err)
	}
	ids, err := t.Encode("<|im_start|>user\nHéllo 👍🏽<|im_end|>")
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(ids)
	fmt.Println(t.Decode(ids, false))
	fmt.Println(t.Decode(ids, true))
	// Output:
	// [1 4093 198 56 2756 31394 15107 235 231 10813 233 138 2]
	// user
	// Héllo 👍🏽
	// <|im_start|>user
	// Héllo 👍🏽<|im_end|>
}

// A model gives one id after another. A letter can take several.
func ExampleStream() {
	t, err := tokenizer.Open("../../testdata/smollm2")
	if err != nil {
		log.Fatal(err)
	}
	ids, err := t.Encode("Hé 👍!")
	if err != nil {
		log.Fatal(err)
	}
	s := t.Stream(false)
	for _, id := range ids {
		token, _ := t.Token(id)
		fmt.Printf("%q %q\n", token, s.Add(id))
	}
	fmt.Printf("%q\n", s.Flush())
	// Output:
	// "H" "H"
	// "Ã©" "é"
	// "ĠðŁ" " "
	// "ĳ" ""
	// "į" "👍"
	// "!" "!"
	// ""
}
