package kit

import "github.com/rope-rewrite/rope-rewrite/rewrite"

// Remembering returns options with which no piece of a model is evaluated twice by
// the tests of a package.
func Remembering(o rewrite.Options) rewrite.Options { return o }
