package main

import (
	"math/rand/v2"

	"github.com/rope-rewrite/rope-rewrite/lm/sample"
)

// sampling is how tokens are chosen: as the model's configuration says where the request is silent.
func (s *server) sampling(c common) (*sample.Options, error) {
	o := s.model.Generation.Sample
	for _, field := range []struct {
		name        string
		given       *float64
		least, most float64
		into        *float64
	}{
		{"temperature", c.Temperature, 0, 2, &o.Temperature},
		{"top_p", c.TopP, 0, 1, &o.TopP},
		{"min_p", c.MinP, 0, 1, &o.MinP},
		{"repetition_penalty", c.RepetitionPenalty, 0.01, 100, &o.RepetitionPenalty},
	} {
		if field.given == nil {
			continue
		}
		if *field.given < field.least || *field.given > field.most {
			return nil, refuse(field.name, "%s must be %v to %v", field.name, field.least, field.most)
		}
		*field.into = *field.given
	}
	if c.TopP != nil && *c.TopP == 0 {
		o.Temperature = 0 // only the best token is in so small a share; package sample reads 0 as all
	}
	if c.TopK != nil {
		most := s.model.Tokenizer.Size()
		if o.TopK = max(0, *c.TopK); *c.TopK < -1 || *c.TopK > most {
			return nil, refuse("top_k", "top_k must be -1 to %d, the number of tokens of the model", most)
		}
	}
	return &o, nil
}

// ofChoice gives each choice of a request a seed of its own.
func ofChoice(o sample.Options, seed *int64, choice int) *sample.Options {
	if seed != nil {
		o.Seed = rand.NewPCG(uint64(*seed), uint64(choice)).Uint64() | 1 // package sample reads 0 as a random one
	}
	return &o
}
