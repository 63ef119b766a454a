package engine

import (
	"math"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/rope-rewrite/rope-rewrite/onnx"
)

func TestValuesOfFloats(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		v := rapid.SliceOf(rapid.Float32()).Draw(t, "v")
		got := Float32s(v, int64(len(v))).Values()
		for i := range v {
			if x := float64(v[i]); got[i] != x && !(math.IsNaN(got[i]) && math.IsNaN(x)) {
				t.Fatalf("%g became %g", v[i], got[i])
			}
		}
		d := rapid.SliceOf(rapid.Float64()).Draw(t, "d")
		for i, x := range Float64s(d, int64(len(d))).Values() {
			if x != d[i] && !(math.IsNaN(x) && math.IsNaN(d[i])) {
				t.Fatalf("%g became %g", d[i], x)
			}
		}
	})
}

func TestIntegers(t *testing.T) {
	v := []int64{0, 1, 1, 0, 1}
	for _, typ := range []onnx.DataType{onnx.Int64, onnx.Int32, onnx.Uint8, onnx.Bool, onnx.Float, onnx.Double} {
		x, err := Integers(typ, v, 5)
		if err != nil {
			t.Fatal(err)
		}
		if len(x.Data) != 5*typ.Size() || x.Len() != 5 {
			t.Errorf("%v: %d bytes, %d elements", typ, len(x.Data), x.Len())
		}
		if got := x.Values(); !slices.Equal(got, []float64{0, 1, 1, 0, 1}) {
			t.Errorf("%v: %v", typ, got)
		}
	}
	big := []int64{-5, 1 << 40}
	if got := Int64s(big, 2).Values(); got[0] != -5 || got[1] != 1<<40 {
		t.Errorf("%v became %v", big, got)
	}
	if _, err := Integers(onnx.String, v, 5); err == nil {
		t.Error("strings are fed with integers")
	}
}

func TestElements(t *testing.T) {
	for want, dims := range map[int64][]int64{1: {}, 0: {3, 0, 2}, 24: {2, 3, 4}} {
		if got := Elements(dims); got != want {
			t.Errorf("%v has %d elements, %d were expected", dims, got, want)
		}
	}
}
