package paddingreaders_test

import (
	"context"
	"fmt"

	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/paddingreaders"
	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/site"
)

// The attentions of a branch of an If are given to other nodes of the model, which cannot
// be followed from there: it is not known that nothing depends on padding, so the caller
// keeps them.
func Example() {
	branch := &site.Scope{Where: "a branch of layer_0/If"}
	_, err := paddingreaders.Culprits(context.Background(), nil, branch, nil)
	fmt.Println(err)
	// Output: nodes of the model read the output of a branch of layer_0/If
}
