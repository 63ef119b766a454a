package similar_test

import (
	"fmt"

	"github.com/rope-rewrite/rope-rewrite/internal/similar"
)

func ExampleHint() {
	fmt.Println("unknown method" + similar.Hint("YARM", []string{"linear", "yarn"}))
	fmt.Println(similar.Same("Sliding_Window", "sliding-window"))
	// Output:
	// unknown method (did you mean "yarn"?)
	// true
}
