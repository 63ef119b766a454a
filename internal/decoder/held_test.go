package decoder_test

import (
	"context"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/rope-rewrite/rope-rewrite/internal/decoder"
	"github.com/rope-rewrite/rope-rewrite/internal/engine"
)

// held opens a model whose caches are held with one scale each.
func held(t *testing.T, eng engine.Engine, name string, scale float32) (*decoder.Decoder, error) {
	t.Helper()
	scales := map[string][]float32{}
	for _, c := range open(t, eng, model(name)).Caches {
		scales[c.Present] = []float32{scale}
	}
	d, err := decoder.Open(context.Background(), eng, model(name), decoder.Options{Held: scales})
	if err == nil {
		t.Cleanup(func() { d.Close() })
	}
	return d, err
}

// With fixed scales a cache holds whole numbers of steps of what it held, cut off at both ends, and the same
// call reads them: its logits change.
func TestHeld(t *testing.T) {
	eng := worker(t)
	step := decoder.Step{Batch: 1, Length: 6, IDs: []int64{1, 2, 3, 4, 5, 6}, Mask: slices.Repeat([]int64{1}, 6), Positions: []int64{0, 1, 2, 3, 4, 5}}
	for _, name := range []string{"llama__optimum", "llama__dynamo23"} { // a Concat that is read, and an Attention with caches
		const scale = 1.0 / 256
		_, exact, err := open(t, eng, model(name)).Run(context.Background(), step)
		if err != nil {
			t.Fatal(err)
		}
		d, err := held(t, eng, name, scale)
		if err != nil {
			t.Fatal(err)
		}
		_, cache, err := d.Run(context.Background(), step)
		if err != nil {
			t.Fatal(err)
		}
		cut := 0
		for i, x := range cache[0].Values() { // of the first layer, before which nothing has changed
			want := min(max(math.RoundToEven(exact[0].Values()[i]/scale), -128), 127)
			if math.Abs(want) >= 127 {
				cut++
			}
			if math.Abs(x/scale-want) > 1e-3 {
				t.Errorf("%s: number %d is %g steps, want %g", name, i, x/scale, want)
			}
		}
		if cut == 0 {
			t.Errorf("%s: the scale cuts nothing off", name)
		}
		var first, second []float64
		for i, of := range []*[]float64{&first, &second} {
			which := []*decoder.Decoder{open(t, eng, model(name)), d}[i]
			out, _, err := which.Run(context.Background(), step)
			if err != nil {
				t.Fatal(err)
			}
			*of = out.Values()
		}
		if slices.Equal(first, second) {
			t.Errorf("%s: the logits of the same call do not change", name)
		}
	}
	if _, err := held(t, eng, "llama__genai-fp32", 1); err == nil || !strings.Contains(err.Error(), "its attention does not read the cache's output") {
		t.Errorf("a GroupQueryAttention that turns its keys: %v", err)
	}
}
