package lm_test

import (
	"context"
	"math"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/rope-rewrite/rope-rewrite/internal/testruntime"
	"github.com/rope-rewrite/rope-rewrite/lm"
	"github.com/rope-rewrite/rope-rewrite/rewrite"
	"github.com/rope-rewrite/rope-rewrite/rope"
)

// rewritten opens a model that the rewriter has changed.
func rewritten(t testing.TB, model string, options rewrite.Options) *lm.Sequence {
	t.Helper()
	library := testruntime.Require(t)
	path := patched(t, filepath.Join(models, model, "model.onnx"), library, options)
	if config, err := os.ReadFile(filepath.Join(models, model, "config.json")); err == nil {
		if err := os.WriteFile(filepath.Join(filepath.Dir(path), "config.json"), config, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return sequence(t, path, lm.Options{Threads: 1, OpsLibrary: library})
}

// A cache of fixed capacity gives what the original's growing one gives, in
// whatever pieces a text comes, again after Reset, and up to its last place.
func TestFixedEqualsGrowing(t *testing.T) {
	for _, model := range []string{"llama__optimum", "llama__dynamo18", "gpt_neox__optimum"} {
		original, fixed := open(t, model), rewritten(t, model, rewrite.Options{Cache: rewrite.Cache{Capacity: 40}})
		if original.Decoder().Capacity() != 0 || fixed.Decoder().Capacity() != 40 {
			t.Fatalf("%s: capacities %d and %d", model, original.Decoder().Capacity(), fixed.Decoder().Capacity())
		}
		text := make([]int64, 40)
		for i := range text {
			text[i] = int64(i*i*7+3) % 128
		}
		for _, pieces := range [][]int{{40}, {13, 1, 1, 20, 5}, slices.Repeat([]int{1}, 40)} {
			if err := original.Truncate(0); err != nil {
				t.Fatal(err)
			}
			if err := fixed.Truncate(0); err != nil {
				t.Fatal(err)
			}
			at := 0
			for _, n := range pieces {
				want, err := original.Forward(context.Background(), lm.Row{Tokens: text[at : at+n]})
				if err != nil {
					t.Fatal(err)
				}
				got, err := fixed.Forward(context.Background(), lm.Row{Tokens: text[at : at+n]})
				if err != nil {
					t.Fatal(err)
				}
				for i := range want.Data {
					if diff := math.Abs(float64(got.Data[i] - want.Data[i])); !(diff <= 1e-4) {
						t.Fatalf("%s in pieces %v: logit %d after %d tokens is %g, want %g", model, pieces, i, at, got.Data[i], want.Data[i])
					}
				}
				at += n
			}
			if _, err := fixed.Forward(context.Background(), lm.Row{Tokens: text[:1]}); err == nil || !strings.Contains(err.Error(), "40") || fixed.Length() != 40 {
				t.Errorf("%s: a token beyond the capacity: %v, length %d", model, err, fixed.Length())
			}
		}
	}
}

// What Go allocates for a token does not depend on how many stand before it,
// as it does with the growing cache and its attention mask.
func TestFixedAllocatesTheSameEverywhere(t *testing.T) {
	d := rewritten(t, "llama__optimum", rewrite.Options{Cache: rewrite.Cache{Capacity: 4096}})
	var at [2]uint64
	for i, tokens := range []int{10, 4000} {
		if _, err := d.Forward(context.Background(), lm.Row{Tokens: make([]int64, tokens-d.Length())}); err != nil {
			t.Fatal(err)
		}
		at[i] = math.MaxUint64
		for range 3 { // in one of them the list of tokens takes no new memory
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			for range 16 {
				if _, err := d.Forward(context.Background(), lm.Row{Tokens: []int64{1}}); err != nil {
					t.Fatal(err)
				}
			}
			runtime.ReadMemStats(&after)
			at[i] = min(at[i], (after.TotalAlloc-before.TotalAlloc)/16)
		}
	}
	if at[0] > 4096 || at[1] > at[0]+256 {
		t.Errorf("a token costs %d bytes after 10 tokens and %d after 4000", at[0], at[1])
	}
}

// Documents in one text do not see each other; the model's answer for the
// second is what it is alone behind the anchor.
func TestForwardDocuments(t *testing.T) {
	anchor, err := rope.ParseSpec(rope.MaskAxis, "anchor")
	if err != nil {
		t.Fatal(err)
	}
	for _, capacity := range []int64{0, 64} {
		d := rewritten(t, "llama__optimum", rewrite.Options{
			Edits:     []rope.Spec{anchor},
			Documents: rewrite.Documents{Input: rewrite.DocumentsInput},
			Cache:     rewrite.Cache{Capacity: capacity},
		})
		run := func(pieces ...[]int64) []float32 {
			t.Helper()
			if err := d.Truncate(0); err != nil {
				t.Fatal(err)
			}
			var last []float32
			for i, p := range pieces {
				logits, err := d.Forward(context.Background(), lm.Row{Tokens: p, Documents: slices.Repeat([]int64{int64(i)}, len(p))}) // the first is the anchor
				if err != nil {
					t.Fatal(err)
				}
				last = slices.Clone(logits.Last())
			}
			return last
		}
		whole := run([]int64{1}, []int64{10, 11, 12}, []int64{20, 21})
		changed := run([]int64{1}, []int64{90, 91, 92}, []int64{20, 21})
		if !slices.Equal(whole, changed) {
			t.Errorf("capacity %d: another first document changes the second", capacity)
		}
		if other := run([]int64{2}, []int64{10, 11, 12}, []int64{20, 21}); slices.Equal(whole, other) {
			t.Errorf("capacity %d: another anchor changes nothing", capacity)
		}
		if _, err := d.Forward(context.Background(), lm.Row{Tokens: []int64{30}, Documents: []int64{lm.Reader}}); err != nil {
			t.Fatal(err)
		}
		if _, err := d.Forward(context.Background(), lm.Row{Tokens: []int64{30, 31}, Documents: []int64{1}}); err == nil {
			t.Errorf("capacity %d: two tokens with one document id were accepted", capacity)
		}
	}
}
