package rewrite

// Again returns options with which what was evaluated of a model is not evaluated again by later tests
// that rewrite the same file, or one with the same attentions, with other methods.
func (o Options) Again(path string) Options { return o }
