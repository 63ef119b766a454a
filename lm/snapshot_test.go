package lm_test

import (
	"context"
	"errors"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/rope-rewrite/rope-rewrite/internal/testruntime"
	"github.com/rope-rewrite/rope-rewrite/lm"
	"github.com/rope-rewrite/rope-rewrite/rewrite"
)

// What was computed once is there again after other texts, as often as it is wanted.
func TestSnapshot(t *testing.T) {
	library := testruntime.Require(t)
	for name, path := range map[string]string{
		"growing":     filepath.Join(models, "llama__optimum", "model.onnx"),
		"float16":     filepath.Join(models, "llama__dynamo18-fp16", "model.onnx"),
		"int8":        patched(t, filepath.Join(models, "llama__optimum", "model.onnx"), library, rewrite.Options{Cache: rewrite.Cache{Type: "int8"}}),
		"fixed, int8": patched(t, filepath.Join(models, "llama__optimum", "model.onnx"), library, rewrite.Options{Cache: rewrite.Cache{Capacity: 40, Type: "int8"}}),
		"fixed":       patched(t, filepath.Join(models, "llama__optimum", "model.onnx"), library, rewrite.Options{Cache: rewrite.Cache{Capacity: 40}}),
	} {
		t.Run(name, func(t *testing.T) {
			d := sequence(t, path, lm.Options{Threads: 1, OpsLibrary: library})
			prefix, text := []int64{5, 17, 99, 42, 7, 8, 9}, []int64{11, 12, 13, 14}
			step := func(tokens []int64) []float32 {
				t.Helper()
				logits, err := d.Forward(context.Background(), lm.Row{Tokens: tokens})
				if err != nil {
					t.Fatal(err)
				}
				return slices.Clone(logits.Last())
			}
			run := func() (rows [][]float32) {
				for _, token := range text {
					rows = append(rows, step([]int64{token}))
				}
				return rows
			}
			step(prefix)
			want := run()
			if err := d.Truncate(0); err != nil {
				t.Fatal(err)
			}
			step(prefix)
			s, err := d.Snapshot()
			if err != nil {
				t.Fatal(err)
			}
			for i := range 3 {
				if got := run(); !slices.EqualFunc(got, want, slices.Equal[[]float32]) {
					t.Errorf("text %d after the prefix has other logits", i)
				}
				step([]int64{60, 61, 62})
				if i == 1 {
					if err := d.Truncate(0); err != nil {
						t.Fatal(err)
					}
					step(slices.Repeat([]int64{3}, 20))
				}
				if err := d.Restore(s); err != nil {
					t.Fatal(err)
				}
				if d.Length() != len(prefix) || s.Length() != len(prefix) {
					t.Errorf("%d tokens, the snapshot has %d", d.Length(), s.Length())
				}
			}
			if err := errors.Join(s.Close(), s.Close()); err != nil {
				t.Error(err)
			}
			if got := run(); !slices.EqualFunc(got, want, slices.Equal[[]float32]) {
				t.Error("the text after a closed snapshot has other logits")
			}
			if err := d.Restore(s); err == nil || !strings.Contains(err.Error(), "closed") {
				t.Errorf("a closed snapshot: %v", err)
			}
		})
	}
}

// A prompt in chunks has the logits of one call; an error or a context that ends leaves the
// cache unchanged.
func TestPrefill(t *testing.T) {
	library := testruntime.Require(t)
	for name, path := range map[string]string{
		"growing": filepath.Join(models, "llama__optimum", "model.onnx"),
		"fixed":   patched(t, filepath.Join(models, "llama__optimum", "model.onnx"), library, rewrite.Options{Cache: rewrite.Cache{Capacity: 40}}),
	} {
		t.Run(name, func(t *testing.T) {
			d := sequence(t, path, lm.Options{Threads: 1, OpsLibrary: library, Chunk: 4})
			before, text := []int64{5, 17, 99}, []int64{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11}
			logits, err := d.Forward(context.Background(), lm.Row{Tokens: slices.Concat(before, text)})
			if err != nil {
				t.Fatal(err)
			}
			want := slices.Clone(logits.Last())
			if err := d.Truncate(0); err != nil {
				t.Fatal(err)
			}
			if _, err := d.Forward(context.Background(), lm.Row{Tokens: before}); err != nil {
				t.Fatal(err)
			}
			bad := slices.Clone(text)
			bad[9] = 5000
			if _, err := d.Prefill(context.Background(), lm.Row{Tokens: bad}); err == nil || !strings.Contains(err.Error(), "5000") || d.Length() != len(before) {
				t.Errorf("a token beyond the vocabulary: %v, %d tokens", err, d.Length())
			}
			ctx := &ends{Context: context.Background(), after: 2}
			if _, err := d.Prefill(ctx, lm.Row{Tokens: text}); !errors.Is(err, context.Canceled) || d.Length() != len(before) {
				t.Errorf("a context that ends: %v, %d tokens", err, d.Length())
			}
			if _, err := d.Prefill(context.Background(), lm.Row{Tokens: nil}); err == nil {
				t.Error("no tokens were accepted")
			}
			logits, err = d.Prefill(context.Background(), lm.Row{Tokens: text})
			if err != nil {
				t.Fatal(err)
			}
			for i, x := range logits.Last() {
				if off := x - want[i]; !(off <= 1e-4 && off >= -1e-4) {
					t.Fatalf("score %d is %g, want %g", i, x, want[i])
				}
			}
			if d.Decoder().Capacity() > 0 {
				if _, err := d.Prefill(context.Background(), lm.Row{Tokens: slices.Repeat([]int64{1}, 27)}); err == nil || !strings.Contains(err.Error(), "has 41 tokens and the cache room for 40") {
					t.Errorf("too much: %v", err)
				}
			}
		})
	}
}

// ends is a context that has ended when it was asked some times.
type ends struct {
	context.Context
	after int
}

func (e *ends) Err() error {
	if e.after--; e.after < 0 {
		return context.Canceled
	}
	return nil
}
