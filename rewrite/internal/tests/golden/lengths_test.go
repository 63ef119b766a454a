package golden_test

import (
	"context"
	"math"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/rope-rewrite/rope-rewrite/internal/decoder"
	"github.com/rope-rewrite/rope-rewrite/internal/npz"
	"github.com/rope-rewrite/rope-rewrite/internal/testruntime"
	"github.com/rope-rewrite/rope-rewrite/rewrite"
	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/tests/kit"
)

// TestLongRoPE: a model whose frequencies change beyond 16 tokens computes what
// transformers does, however a text of 32 is cut into calls: within, beyond and
// across that length, with keys in the cache from before it.
func TestLongRoPE(t *testing.T) {
	t.Parallel()
	testruntime.Require(t)
	original := filepath.Join(kit.Testdata, "coverage", "phi3_longrope__genai-fp32", "model.onnx")
	patched, report := kit.Patch(t, original, rewrite.Options{})
	for _, s := range report.Sites {
		if reach := s.Attention.Encoding.LengthDependent; reach.Trained != 16 || len(reach.Long) != 8 {
			t.Errorf("layer %d: %+v", s.Layer, reach)
		}
	}
	f, err := npz.Open(filepath.Join(kit.Testdata, "coverage", "phi3_longrope.lengths.npz"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	s := decoder.Sequence{Batch: 1, Length: 32}
	for name, into := range map[string]*[]int64{"ids": &s.IDs, "mask": &s.Mask, "pos": &s.Positions} {
		if *into, _, err = f.Int64(name); err != nil {
			t.Fatal(err)
		}
	}
	off := func(path, way string) float64 {
		want, _, err := f.Float32(way)
		if err != nil {
			t.Fatal(err)
		}
		d, err := decoder.Open(context.Background(), kit.Local(t), path, decoder.Options{})
		if err != nil {
			t.Fatal(err)
		}
		defer d.Close()
		got, err := d.Chunks(context.Background(), s, calls(t, way)...)
		if err != nil {
			t.Fatal(err)
		}
		worst := 0.0
		for i, x := range got {
			worst = math.Max(worst, math.Abs(x-float64(want[i])))
		}
		return worst
	}
	ways := 0
	for _, way := range f.Keys() {
		if _, err := strconv.Atoi(way[:1]); err != nil {
			continue
		}
		ways++
		own, got := off(original, way), off(patched, way)
		t.Logf("%s: off by %.2g, the original by %.2g", way, got, own)
		if !(got <= 1e-4) || own > 1e-4 {
			t.Errorf("%s: off by %.2g, the original by %.2g", way, got, own)
		}
	}
	if ways != 8 {
		t.Errorf("%d ways, 8 were expected", ways)
	}
}

// calls reads "10+1x22" as one call of 10 tokens and 22 of one.
func calls(t *testing.T, way string) (list []int64) {
	t.Helper()
	for _, part := range strings.Split(way, "+") {
		length, times, _ := strings.Cut(part, "x")
		n, err := strconv.ParseInt(length, 10, 64)
		count := 1
		if err == nil && times != "" {
			count, err = strconv.Atoi(times)
		}
		if err != nil {
			t.Fatal(err)
		}
		list = append(list, slices.Repeat([]int64{n}, count)...)
	}
	return list
}
