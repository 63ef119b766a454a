// Package similar finds the name that somebody meant who mistyped it:
//
//	fmt.Errorf("unknown method %q%s", word, suggest.Hint(word, names))
package suggest
