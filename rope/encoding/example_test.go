package encoding_test

import (
	"fmt"

	"github.com/rope-rewrite/rope-rewrite/rope/encoding"
)

func ExampleSlopes() {
	slopes := encoding.Slopes(4)
	fmt.Println(slopes, encoding.ALiBi{Slope: slopes[0]}.Bias(10))
	// Output: [0.25 0.0625 0.015625 0.00390625] -2.5
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
