package evaluation_test

import (
	"context"
	"fmt"
	"os"

	"github.com/rope-rewrite/rope-rewrite/cmd/internal/evaluation"
	"github.com/rope-rewrite/rope-rewrite/customop"
	"github.com/rope-rewrite/rope-rewrite/lm"
	"github.com/rope-rewrite/rope-rewrite/rewrite"
)

// A model of random weights finds nothing, and the interval of three samples is wide.
func Example() {
	if err := customop.InitRuntime(""); err != nil {
		fmt.Println(err)
		return
	}
	plan := evaluation.Plan{Tasks: []string{"passkey"}, Lengths: []int{400}, Depths: []float64{0.5}, Samples: 3, Seed: 1, Windows: 1}
	variants := []evaluation.Variant{{
		Name: "none", Model: "../../../testdata/models/llama__optimum", AsIs: true,
		Patch: rewrite.Options{Evaluation: rewrite.Evaluation{Worker: []string{os.Args[0]}}}, // a program that calls rewrite.ServeIfWorker first
	}}
	var samples []evaluation.Sample
	err := evaluation.Run(context.Background(), plan, variants, evaluation.Options{
		Model:  lm.Options{Folder: "../../../testdata/lm"},
		Sample: func(s evaluation.Sample) error { samples = append(samples, s); return nil },
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, c := range evaluation.Summarise(samples, plan.Lengths).Cells {
		fmt.Printf("%s, %d tokens: %d of %d, from %.2f to %.2f\n", c.Task, c.Length, c.Right, c.Samples, c.Low, c.High)
	}
	// Output: passkey, 400 tokens: 0 of 3, from 0.00 to 0.56
}
