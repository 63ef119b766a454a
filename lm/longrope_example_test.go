package lm_test

import (
	"context"
	"fmt"
	"log"
	"math"
	"os"
	"path/filepath"

	"github.com/rope-rewrite/rope-rewrite/customop"
	"github.com/rope-rewrite/rope-rewrite/lm"
	"github.com/rope-rewrite/rope-rewrite/onnx"
	"github.com/rope-rewrite/rope-rewrite/rewrite"
	"github.com/rope-rewrite/rope-rewrite/rope"
)

// A text outgrows the trained length of LongRoPE. From there on all keys are turned by the long
// factors, but deeper layers' keys still stem from calls with the short ones. Computed anew at the
// crossing, the cache is that of one call with the whole text.
func ExampleSequence_Truncate() {
	if err := customop.InitRuntime(""); err != nil {
		log.Fatal(err)
	}
	const trained = 16
	path, err := longRoPE(trained)
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(filepath.Dir(path))
	decoder, err := lm.OpenDecoder(path, lm.Options{Threads: 1})
	if err != nil {
		log.Fatal(err)
	}
	defer decoder.Close()
	sequence, err := decoder.NewSequence()
	if err != nil {
		log.Fatal(err)
	}
	defer sequence.Close()
	var text []int64
	for i := range int64(24) {
		text = append(text, 4+(37*i)%120)
	}
	// last gives the scores after the text, which comes token by token.
	last := func(anew bool) []float32 {
		var logits lm.Logits
		err := sequence.Truncate(0)
		for i := 0; i < len(text) && err == nil; i++ {
			next := text[i : i+1]
			if anew && i == trained { // the first token beyond
				if err = sequence.Truncate(0); err != nil {
					break
				}
				next = text[:i+1]
			}
			logits, err = sequence.Forward(context.Background(), lm.Row{Tokens: next})
		}
		if err != nil {
			log.Fatal(err)
		}
		return append([]float32(nil), logits.Last()...)
	}
	continued, anew := last(false), last(true)
	if err := sequence.Truncate(0); err != nil {
		log.Fatal(err)
	}
	logits, err := sequence.Forward(context.Background(), lm.Row{Tokens: text}) // in one call
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println("continued:", distance(continued, logits.Last()) < 1e-4)
	fmt.Println("computed anew:", distance(anew, logits.Last()) < 1e-4)
	// Output:
	// continued: false
	// computed anew: true
}

// longRoPE rewrites a small model and returns the path of the new one.
func longRoPE(trained int) (string, error) {
	m, err := onnx.Open("../testdata/models/llama__optimum/model.onnx")
	if err != nil {
		return "", err
	}
	defer m.Close()
	scaling, err := rope.ParseSpec(rope.ScalingAxis, fmt.Sprintf("longrope:length=run,factor=4,original_max_position_embeddings=%d,"+
		"short_factor=[1;1;1;1;1;1;1;1],long_factor=[1;1.6;2.2;2.8;3.4;4;4.6;5.2]", trained))
	if err != nil {
		return "", err
	}
	if _, err := rewrite.Rewrite(context.Background(), m, rewrite.Options{Edits: []rope.Spec{scaling}}); err != nil {
		return "", err
	}
	folder, err := os.MkdirTemp("", "longrope")
	if err != nil {
		return "", err
	}
	path := filepath.Join(folder, "model.onnx")
	return path, m.Save(path, onnx.SaveOptions{})
}

func distance(a, b []float32) (worst float64) {
	for i := range a {
		worst = math.Max(worst, math.Abs(float64(a[i]-b[i])))
	}
	return worst
}
