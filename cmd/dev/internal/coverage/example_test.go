package coverage_test

import (
	"context"
	"fmt"
	"os"

	"github.com/rope-rewrite/rope-rewrite/cmd/dev/internal/coverage"
)

func ExampleLook() {
	r := coverage.Look(context.Background(), "../../../../testdata/coverage/gemma3__ts17-cache", os.Args[0])
	fmt.Printf("%d of %d layers\n", r.Rewritten, r.Layers)
	// Output:
	// 2 of 2 layers
}
