package suggest_test

import (
	"fmt"

	"github.com/rope-rewrite/rope-rewrite/internal/suggest"
)

func ExampleHint() {
	fmt.Println("unknown method" + suggest.Hint("YARM", []string{"linear", "yarn"}))
	fmt.Println(suggest.Same("Sliding_Window", "sliding-window"))
	// Output:
	// unknown method (did you mean "yarn"?)
	// true
}
