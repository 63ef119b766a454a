package main

import (
	"unicode/utf8"

	"github.com/rope-rewrite/rope-rewrite/lm"
)

// score is what a token's logits say of it, in the form of chat completions.
type score struct {
	Token   string  `json:"token"`
	LogProb float64 `json:"logprob"`
	Bytes   []int   `json:"bytes"` // null where a token holds a part of a letter
	Top     []score `json:"top_logprobs,omitempty"`
}

// least stands for −∞, which JSON does not have.
const least = -9999

func (s *server) score(t lm.Token) score {
	own := s.oneScore(t.ID, t.LogProb)
	for _, l := range t.Top {
		own.Top = append(own.Top, s.oneScore(l.Token, l.LogProb))
	}
	return own
}

func (s *server) oneScore(token int64, logProb float64) score {
	text := s.model.Tokenizer.Decode([]int64{token}, true)
	one := score{Token: text, LogProb: max(least, logProb)}
	for _, b := range []byte(text) {
		one.Bytes = append(one.Bytes, int(b))
	}
	for _, letter := range text {
		if letter == utf8.RuneError {
			one.Bytes = nil
		}
	}
	return one
}
