package lm_test

import (
	"context"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/rope-rewrite/rope-rewrite/lm"
	"github.com/rope-rewrite/rope-rewrite/rewrite"
	"github.com/rope-rewrite/rope-rewrite/rope"
)

func maskOf(t testing.TB, text string) []rope.Spec {
	t.Helper()
	s, err := rope.ParseSpec(rope.MaskAxis, text)
	if err != nil {
		t.Fatal(err)
	}
	return []rope.Spec{s}
}

// A ring gives what a growing cache gives, far behind its own size. It goes back one token, and no further than that.
func TestRing(t *testing.T) {
	for _, mask := range []string{"sliding-window:window=9", "first-keys:window=9,count=2,positions=cache"} {
		edits := maskOf(t, mask)
		growing := rewritten(t, "llama__optimum", rewrite.Options{Edits: edits})
		ring := rewritten(t, "llama__optimum", rewrite.Options{Edits: edits, Cache: rewrite.Cache{Capacity: 64, Ring: true}})
		if ring.Decoder().Capacity() != 0 || ring.Decoder().CacheRows() > 11 {
			t.Fatalf("%s: capacity %d, %d rows", mask, ring.Decoder().Capacity(), ring.Decoder().CacheRows())
		}
		same := func(tokens ...int64) {
			t.Helper()
			want, err := growing.Forward(context.Background(), lm.Row{Tokens: tokens})
			if err != nil {
				t.Fatal(err)
			}
			got, err := ring.Forward(context.Background(), lm.Row{Tokens: tokens})
			if err != nil {
				t.Fatal(err)
			}
			for i := range want.Data {
				if off := math.Abs(float64(got.Data[i] - want.Data[i])); !(off <= 1e-4) {
					t.Fatalf("%s: logit %d after %d tokens is off by %g", mask, i, ring.Length(), off)
				}
			}
		}
		text := make([]int64, 100)
		for i := range text {
			text[i] = int64(i*i*7+3) % 128
		}
		same(text[:5]...)
		for _, token := range text[5:30] {
			same(token)
		}
		same(text[30:70]...)
		for _, s := range []*lm.Sequence{growing, ring} {
			if err := s.Truncate(69); err != nil {
				t.Fatal(err)
			}
		}
		same(text[69:75]...)
		if err := ring.Truncate(70); err == nil || !strings.Contains(err.Error(), "snapshot") || ring.Length() != 75 {
			t.Errorf("%s: back by five tokens: %v, length %d", mask, err, ring.Length())
		}
		snapshot, err := ring.Snapshot()
		if err != nil {
			t.Fatal(err)
		}
		defer snapshot.Close()
		same(text[75:90]...)
		if err := ring.Restore(snapshot); err != nil {
			t.Fatal(err)
		}
		if err := growing.Truncate(75); err != nil {
			t.Fatal(err)
		}
		same(text[75:80]...)
		// What cannot be kept of a text is computed again.
		other := append(slices.Clone(text[:60]), 1, 2, 3)
		want, err := growing.Compute(context.Background(), lm.Row{Tokens: other})
		if err != nil {
			t.Fatal(err)
		}
		got, err := ring.Compute(context.Background(), lm.Row{Tokens: other})
		if err != nil {
			t.Fatal(err)
		}
		for i, w := range want.Last() {
			if off := math.Abs(float64(got.Last()[i] - w)); !(off <= 1e-4) {
				t.Fatalf("%s: logit %d of another text is off by %g", mask, i, off)
			}
		}
	}
}

// After a call that ends with an error a ring is as it was before.
func TestRingAfterError(t *testing.T) {
	ring := rewritten(t, "llama__optimum", rewrite.Options{Edits: maskOf(t, "sliding-window:window=9"), Cache: rewrite.Cache{Capacity: 64, Ring: true}})
	text := make([]int64, 30)
	for i := range text {
		text[i] = int64(i*5+1) % 128
	}
	if _, err := ring.Forward(context.Background(), lm.Row{Tokens: text}); err != nil {
		t.Fatal(err)
	}
	before, err := ring.Snapshot()
	if err != nil {
		t.Fatal(err)
	}
	defer before.Close()
	want, err := ring.Forward(context.Background(), lm.Row{Tokens: []int64{7, 8, 9}})
	if err != nil {
		t.Fatal(err)
	}
	last := slices.Clone(want.Last())
	if err := ring.Restore(before); err != nil {
		t.Fatal(err)
	}
	canceled, cancel := context.WithCancel(context.Background())
	cancel()
	if _, err := ring.Forward(canceled, lm.Row{Tokens: text}); err == nil {
		t.Fatal("a canceled call gives logits")
	}
	got, err := ring.Forward(context.Background(), lm.Row{Tokens: []int64{7, 8, 9}})
	if err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(got.Last(), last) {
		t.Error("after a canceled call the ring is another")
	}
}
