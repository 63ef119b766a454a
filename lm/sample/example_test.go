package sample_test

import (
	"fmt"

	"github.com/rope-rewrite/rope-rewrite/lm/sample"
)

// The best token, and how likely the model found it.
func Example() {
	s, err := sample.New(sample.Options{LogProbs: true})
	if err != nil {
		fmt.Println(err)
		return
	}
	c, err := s.Next([]float32{0, 2, 1}, nil)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Printf("token %d, ln p = %.3f\n", c.Token, c.LogProb)
	// Output: token 1, ln p = -0.408
}
