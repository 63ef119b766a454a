package lm_test

import (
	"context"
	"errors"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/rope-rewrite/rope-rewrite/internal/testruntime"
	"github.com/rope-rewrite/rope-rewrite/lm"
	"github.com/rope-rewrite/rope-rewrite/rewrite"
	"github.com/rope-rewrite/rope-rewrite/rope"
)

// sequences are texts with caches of every kind.
func sequences(t *testing.T) map[string]*lm.Sequence {
	library := testruntime.Require(t)
	options := lm.Options{Threads: 1, OpsLibrary: library, Chunk: 5}
	export := func(name string) string { return filepath.Join(models, name, "model.onnx") }
	fixed := rewrite.Options{Cache: rewrite.Cache{Capacity: 40}}
	return map[string]*lm.Sequence{
		"growing":             sequence(t, export("llama__optimum"), options),
		"float16":             sequence(t, export("llama__dynamo18-fp16"), options),
		"GroupQueryAttention": sequence(t, export("llama__genai-fp32"), options),
		"raw":                 sequence(t, patched(t, export("llama__optimum"), library, rewrite.Options{Cache: rewrite.Cache{Raw: true}}), options),
		"fixed":               sequence(t, patched(t, export("llama__optimum"), library, fixed), options),
		"fixed, float16":      sequence(t, patched(t, export("llama__dynamo18-fp16"), library, fixed), options),
	}
}

// A sequence that is shortened goes on as one that never was longer, and computes only what differs.
func TestTruncateAndCompute(t *testing.T) {
	first, second := []int64{5, 17, 99, 42, 7, 8, 9, 10, 11, 12, 13}, []int64{5, 17, 99, 42, 60, 61, 62}
	ctx := context.Background()
	for name, s := range sequences(t) {
		t.Run(name, func(t *testing.T) {
			last := func(logits lm.Logits, err error) []float32 {
				t.Helper()
				if err != nil {
					t.Fatal(err)
				}
				return slices.Clone(logits.Last())
			}
			_ = last(s.Prefill(ctx, lm.Row{Tokens: second[:4]}))
			want := last(s.Forward(ctx, lm.Row{Tokens: second[4:]}))
			if err := s.Truncate(0); err != nil || s.Length() != 0 {
				t.Fatal(err, s.Length())
			}
			_ = last(s.Prefill(ctx, lm.Row{Tokens: first}))
			if err := s.Truncate(4); err != nil || !slices.Equal(s.Tokens(), first[:4]) {
				t.Fatalf("%v: %v", s.Tokens(), err)
			}
			if got := last(s.Forward(ctx, lm.Row{Tokens: second[4:]})); !slices.Equal(got, want) {
				t.Error("a shortened sequence has other logits")
			}
			_ = last(s.Compute(ctx, lm.Row{Tokens: first}))
			if got := last(s.Compute(ctx, lm.Row{Tokens: second})); !slices.Equal(got, want) || !slices.Equal(s.Tokens(), second) {
				t.Errorf("a sequence that was computed over another has other logits, or the tokens %v", s.Tokens())
			}
			for _, n := range []int{-1, 8} {
				if err := s.Truncate(n); err == nil || s.Length() != 7 {
					t.Errorf("to %d tokens: %v, %d are left", n, err, s.Length())
				}
			}
			if _, err := s.Compute(ctx, lm.Row{}); err == nil || s.Length() != 7 {
				t.Errorf("nothing to compute: %v, %d tokens", err, s.Length())
			}
		})
	}
}

// A snapshot of one sequence is restored in another of the same model.
func TestSnapshotOfAnother(t *testing.T) {
	for name, a := range sequences(t) {
		b, err := a.Decoder().NewSequence()
		if err != nil {
			t.Fatal(err)
		}
		ctx, next := context.Background(), lm.Row{Tokens: []int64{3}}
		if _, err := a.Prefill(ctx, lm.Row{Tokens: []int64{5, 6, 7}}); err != nil {
			t.Fatal(err)
		}
		kept, err := a.Snapshot()
		if err != nil {
			t.Fatal(err)
		}
		if err := b.Restore(kept); err != nil {
			t.Fatal(err)
		}
		want, err := a.Forward(ctx, next)
		if err != nil {
			t.Fatal(err)
		}
		got, err := b.Forward(ctx, next)
		if err != nil || !slices.Equal(got.Last(), want.Last()) {
			t.Errorf("%s: other logits, %v", name, err)
		}
		if err := errors.Join(kept.Close(), b.Close()); err != nil {
			t.Error(err)
		}
	}
}

// A context that ends within a call ends the call, and leaves the cache as it was.
func TestCancelledCall(t *testing.T) {
	library := testruntime.Require(t)
	path := filepath.Join(models, "llama__optimum", "model.onnx")
	for name, path := range map[string]string{"growing": path, "fixed": patched(t, path, library, rewrite.Options{Cache: rewrite.Cache{Capacity: 8192}})} {
		s := sequence(t, path, lm.Options{Threads: 1, OpsLibrary: library, Chunk: 8192})
		before, err := s.Forward(context.Background(), lm.Row{Tokens: []int64{1, 2}})
		if err != nil {
			t.Fatal(err)
		}
		want := slices.Clone(before.Last())
		if err := s.Truncate(1); err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithTimeout(context.Background(), 5*time.Millisecond)
		_, err = s.Prefill(ctx, lm.Row{Tokens: make([]int64, 8000)})
		cancel()
		if !errors.Is(err, context.DeadlineExceeded) || s.Length() != 1 {
			t.Errorf("%s: %v, %d tokens", name, err, s.Length())
		}
		if after, err := s.Forward(context.Background(), lm.Row{Tokens: []int64{2}}); err != nil || distance(after.Last(), want) > 1e-5 {
			t.Errorf("%s: other logits after a call that was cancelled, %v", name, err)
		}
	}
}

// What a model cannot be opened with is refused.
func TestOptionsRefused(t *testing.T) {
	library := testruntime.Require(t)
	scaling, err := rope.ParseSpec(rope.ScalingAxis, "dynamic:factor=2,length=run,original_max_position_embeddings=32")
	if err != nil {
		t.Fatal(err)
	}
	byLength := fixedFolder(t, 64)
	write(t, byLength, "model.onnx", string(read(t, patched(t, filepath.Join(models, "llama__optimum", "model.onnx"), library,
		rewrite.Options{Edits: []rope.Spec{scaling}, Cache: rewrite.Cache{Capacity: 64}}))))
	for want, c := range map[string]struct {
		dir     string
		options lm.Options
	}{
		"depend on the length of a call": {byLength, lm.Options{Rows: 4}},
		"-1 rows":                        {byLength, lm.Options{Rows: -1}},
		"execution provider Nothing":     {byLength, lm.Options{Providers: []lm.Provider{{Name: "Nothing"}}}},
	} {
		c.options.OpsLibrary = library
		m, err := lm.Open(c.dir, c.options)
		if err == nil {
			m.Close()
		}
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want a word of %s", err, want)
		}
	}
	m, err := lm.Open(byLength, lm.Options{OpsLibrary: library})
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close()
	s := begin(t, m)
	if _, err := s.Prefill(context.Background(), lm.Row{Tokens: []int64{1, 2, 3}}); err != nil {
		t.Fatal(err)
	}
	if err := s.Truncate(2); err != nil || s.Length() != 0 {
		t.Errorf("keys that depend on the length of their call: %v, %d tokens are left", err, s.Length())
	}
}
