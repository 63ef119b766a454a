// Package suggest finds the name that was probably meant by a mistyped one:
//
//	fmt.Errorf("unknown method %q%s", word, suggest.Hint(word, names))
package suggest
