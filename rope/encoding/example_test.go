package encoding_test

import (
	"fmt"

	"github.com/rope-rewrite/rope-rewrite/rope"
	"github.com/rope-rewrite/rope-rewrite/rope/encoding"
	"github.com/rope-rewrite/rope-rewrite/rope/ref"
)

func ExampleSlopes() {
	slopes := encoding.Slopes(4)
	fmt.Println(slopes, encoding.ALiBi{Slope: slopes[0]}.Bias(10))
	// Output: [0.25 0.0625 0.015625 0.00390625] -2.5
}

func ExampleALiBi() {
	a := encoding.ALiBi{Slope: 0.25}
	fmt.Println(a.Bias(1), a.Bias(100), a.Bias(-100)) // a later key is as far as an earlier one
	// Output: -0.25 -25 -25
}

func ExampleT5() {
	var decoder encoding.T5
	fmt.Println(decoder.Bucket(15), decoder.Bucket(20), decoder.Bucket(1000))
	encoder := encoding.T5{Bidirectional: true}
	fmt.Println(encoder.Bucket(3), encoder.Bucket(-3))
	// Output:
	// 15 17 31
	// 3 19
}

func ExampleT5_Biases() {
	learned := []float64{0.5, 0.25, -1, -3} // of one head, by bucket
	bias := encoding.T5{Buckets: 4, MaxDistance: 8}.Biases(learned)
	for _, distance := range []int64{0, 1, 2, 3, 4, 100} {
		fmt.Print(bias(distance), " ")
	}
	// Output: 0.5 0.25 -1 -1 -3 -3
}

func ExampleKERPLELog() {
	fmt.Printf("%.4f\n", encoding.KERPLELog{R1: 1, R2: 0.5}.Bias(10))
	// Output: -1.7918
}

func ExampleKERPLEPower() {
	fmt.Println(encoding.KERPLEPower{R1: 0.5, R2: 2}.Bias(3))
	// Output: -4.5
}

func ExampleSandwich() {
	s := encoding.Sandwich{Factor: encoding.SandwichFactors(8)[0]}
	fmt.Printf("%.2f %.2f\n", s.Bias(0), s.Bias(100))
	// Output: 64.00 30.54
}

func ExampleXPos() {
	x := encoding.XPos{Pairs: 4}
	query, _ := x.Factors(612, 100)
	fmt.Printf("%.4f\n", query) // 512 tokens after the middle: ζ itself
	fmt.Printf("%.4f\n", x.Zetas())
	// Output:
	// [0.2857 0.4643 0.6429 0.8214]
	// [0.2857 0.4643 0.6429 0.8214]
}

func ExampleSinusoidal() {
	fmt.Printf("%.4f\n", encoding.Sinusoidal{Size: 4}.At(3))
	// Output: [0.1411 -0.9900 0.0300 0.9996]
}

func ExampleLearned() {
	opt := encoding.Learned{Table: [][]float64{{0}, {0}, {0.5}, {0.25}}, Offset: 2}
	fmt.Println(opt.At(1))
	fmt.Println(opt.At(2))
	// Output:
	// [0.25] <nil>
	// [] position 2: the table has positions 0 to 1
}

// The rotation of RoPE: a score depends on the distance alone.
func ExamplePowers() {
	rotation := rope.Encoding{Frequencies: encoding.Powers(4, 10000), ExactAngles: true}
	query, key := []float64{1, 0, 0, 1}, []float64{1, 1, 0, 0}
	for _, p := range []float64{10, 1000} {
		q, k := ref.Rotate(rotation, query, p), ref.Rotate(rotation, key, p-7)
		score := 0.0
		for i := range q {
			score += q[i] * k[i]
		}
		fmt.Printf("%.6f\n", score)
	}
	// Output:
	// 0.683959
	// 0.683959
}

func ExampleRotation2D() {
	e := encoding.Rotation2D{Size: 8}.Encoding()
	fmt.Println(e.Frequencies, e.Axes)
	fmt.Printf("%.4f\n", ref.Rotate(e, []float64{1, 1, 1, 1, 0, 0, 0, 0}, 1, 0)) // row 1, column 0
	// Output:
	// [1 0.01 1 0.01] [0 0 1 1]
	// [0.5403 1.0000 1.0000 1.0000 0.8415 0.0100 0.0000 0.0000]
}

func ExampleRoPEBias() {
	r := encoding.RoPEBias{
		Rotation: rope.Encoding{Frequencies: []float64{0.1}, ExactAngles: true},
		Query:    []float64{2, 0}, Key: []float64{2, 0},
	}
	nothing := []float64{0, 0}
	fmt.Printf("%.3f %.3f\n", r.Score(nothing, nothing, 8, 8), r.Score(nothing, nothing, 8, 0))
	// Output: 4.000 2.787
}

func ExampleLinearAttention() {
	l := encoding.LinearAttention{Rotation: rope.Encoding{Frequencies: []float64{0}}, Causal: true}
	same := [][]float64{{0, 0}, {0, 0}}
	fmt.Println(l.Run(same, same, [][]float64{{1}, {3}})) // nothing turns and keys are alike: means
	// Output: [[1] [2]]
}

func ExampleAll() {
	for d := range encoding.All() {
		if d.Name == "ALiBi" {
			fmt.Println(d.Go, d.Source)
		}
	}
	// Output: encoding.ALiBi Press et al., arXiv:2108.12409, §3
}
