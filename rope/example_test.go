package rope_test

import (
	"fmt"
	"log"
	"math"

	"github.com/rope-rewrite/rope-rewrite/rope"
)

// small is an attention with four channel pairs and base 10000.
func small() rope.Attention {
	a := rope.Attention{Heads: 2, KVHeads: 1, HeadSize: 8, Mask: rope.Mask{Causal: true}}
	for i := range 4 {
		a.Encoding.Frequencies = append(a.Encoding.Frequencies, math.Pow(10000, -float64(i)/4))
	}
	return a
}

func Example() {
	spec, err := rope.ParseSpec(rope.ScalingAxis, "yarn:factor=4,original_max_position_embeddings=2048")
	if err != nil {
		fmt.Println(err)
		return
	}
	edited, _, err := spec.Apply(small(), rope.Context{})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Printf("%.6f gain %.4f\n", edited.Encoding.Frequencies, edited.Encoding.Gain)
	// Output: [1.000000 0.100000 0.006250 0.000250] gain 1.1386
}

func ExampleParseSpec() {
	_, err := rope.ParseSpec(rope.ScalingAxis, "linear:factr=4")
	fmt.Println(err)
	// Output: scaling linear: unknown key "factr" (did you mean "factor"?); keys: factor, rope_theta, partial_rotary_factor, base
}

func ExampleParseRopeParameters() {
	spec, err := rope.ParseRopeParameters([]byte(`{"rope_type": "yarn", "factor": 4.0, "original_max_position_embeddings": 8192, "rope_theta": 1000000.0}`))
	fmt.Println(spec, err)
	// Output: yarn:factor=4,original_max_position_embeddings=8192,rope_theta=1000000 <nil>
}

func ExampleSpec_Apply_positions() {
	spec := rope.Spec{Axis: rope.PositionsAxis, Name: "string"}
	edited, warnings, err := spec.Apply(small(), rope.Context{Length: 8192, Reachable: 8192})
	fmt.Println(edited.Bands, warnings, err)
	// Output: [{0 1 0 1 0 0} {2730 1 -2602 1 0 0}] [] <nil>
}

func ExampleEncoding_Base() {
	fmt.Println(small().Encoding.Base())
	// Output: 10000 true
}

func ExampleMethods() {
	for m := range rope.Methods() {
		fmt.Println(m.Axis, m.Name)
	}
	// Output:
	// scaling none
	// scaling theta
	// scaling linear
	// scaling ntk
	// scaling dynamic-linear
	// scaling dynamic
	// scaling partial-ntk
	// scaling ntk-by-parts
	// scaling yarn
	// scaling longrope
	// scaling llama3
	// scaling proportional
	// scaling beta-ary
	// scaling resonance
	// scaling nope
	// scaling log-n
	// scaling temperature
	// scaling frequencies
	// positions identity
	// positions string
	// positions rerope
	// positions leaky-rerope
	// positions self-extend
	// positions dual-chunk
	// positions randomized
	// mask keep
	// mask causal
	// mask sliding-window
	// mask first-keys
	// mask intra-document
	// mask intra-document-reset
	// mask anchor
}

func ExampleDrawn_Positions() {
	fmt.Println(rope.Drawn{Range: 20}.Positions(8))
	// Output: [3 5 7 10 11 14 16 18]
}

// Two tokens of one head of four channels. The second stands at position 1.
func ExampleApplyRotary() {
	x := []float32{1, 0, 0, 0, 1, 0, 0, 0}
	turned, err := rope.ApplyRotary(x, []int{1, 2, 1, 4}, rope.Rotary{Encoding: rope.Encoding{Frequencies: []float64{1, 0.5}}})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Printf("%.3f\n", turned)
	// Output: [1.000 0.000 0.000 0.000 0.540 0.000 0.841 0.000]
}
