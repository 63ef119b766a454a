package rewrite_test

import (
	"bytes"
	"math"
	"reflect"
	"strings"
	"testing"

	"github.com/rope-rewrite/rope-rewrite/internal/testfuzz"
	"github.com/rope-rewrite/rope-rewrite/rewrite"
)

// FuzzCacheScales: a file of scales is refused in one line, or all of its scales are usable, and it is
// written as it is read again.
func FuzzCacheScales(f *testing.F) {
	seeds := []string{`{"layers": [{"layer": 0, "key": 0.05, "value": 0.02}, {"layer": 1, "key": [1, 0.5], "value": [2e-9, 3]}]}`, `{"layers": [{"layer": -1, "key": 1e-60, "value": null}]}`}
	testfuzz.Run(f, seeds, 4000, func(t testing.TB, data []byte) bool {
		scales, err := rewrite.ParseCacheScales(data)
		if err != nil {
			if text := err.Error(); text == "" || strings.Contains(text, "\n") {
				t.Errorf("the error is not one line: %q", text)
			}
			return false
		}
		for layer, s := range scales {
			for _, x := range append(append([]float32{}, s.Key...), s.Value...) {
				if !(x > 0) || math.IsInf(float64(x), 0) {
					t.Errorf("layer %d has the scale %v", layer, x)
				}
			}
			if layer < 0 || len(s.Key) == 0 || len(s.Value) == 0 {
				t.Errorf("layer %d has %d and %d scales", layer, len(s.Key), len(s.Value))
			}
		}
		var out bytes.Buffer
		if err := rewrite.WriteCacheScales(&out, scales); err != nil {
			t.Fatal(err)
		}
		again, err := rewrite.ParseCacheScales(out.Bytes())
		if err != nil || !reflect.DeepEqual(again, scales) {
			t.Errorf("%v became %v, %v", scales, again, err)
		}
		return true
	})
}
