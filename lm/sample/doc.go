// Package sample chooses the next token of a text from a model's logits.
//
//	s, err := sample.New(sample.Options{Temperature: 0.7, TopP: 0.9, Seed: 1})
//	choice, err := s.Next(logits, tokens)
//
// The options mean what those of the same names mean in transformers, in the same order: the
// repetition penalty on tokens that the text has, then the temperature, then the best k
// tokens, then the fewest tokens that have the probability p together, then the tokens that
// have at least a share of the best one's probability. Without a temperature the best token
// is taken. Start with Sampler.Next (sample.go).
package sample
