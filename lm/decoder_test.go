package lm_test

import (
	"context"
	"errors"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/rope-rewrite/rope-rewrite/internal/npz"
	"github.com/rope-rewrite/rope-rewrite/internal/testruntime"
	"github.com/rope-rewrite/rope-rewrite/lm"
)

func TestMain(m *testing.M) {
	testruntime.Examples()
	os.Exit(m.Run())
}

const models = "../testdata/models"

func open(t *testing.T, model string) *lm.Sequence {
	t.Helper()
	library := testruntime.Require(t)
	return sequence(t, filepath.Join(models, model, "model.onnx"), lm.Options{Threads: 1, OpsLibrary: library})
}

// sequence opens a model and begins a text.
func sequence(t testing.TB, path string, options lm.Options) *lm.Sequence {
	t.Helper()
	d, err := lm.OpenDecoder(path, options)
	if err != nil {
		t.Fatal(err)
	}
	s, err := d.NewSequence()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := errors.Join(s.Close(), d.Close()); err != nil {
			t.Error(err)
		}
	})
	return s
}

// A sequence given at once, in pieces and token by token has the logits that
// PyTorch gives.
func TestForwardEqualsGolden(t *testing.T) {
	file, err := npz.Open("../testdata/goldens/llama.npz")
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	ids, shape, err := file.Int64("ids")
	if err != nil {
		t.Fatal(err)
	}
	want, _, err := file.Float32("plain")
	if err != nil {
		t.Fatal(err)
	}
	length := shape[1]
	ids, want = ids[:length], want[:length*128]
	for _, model := range []string{"llama__optimum", "llama__dynamo18", "llama__genai-fp32"} {
		d := open(t, model)
		for name, pieces := range map[string][]int{"at once": {48}, "pieces": {7, 20, 1, 20}, "singly": slices.Repeat([]int{1}, 48)} {
			var got []float32
			for at, i := 0, 0; i < len(pieces); i++ {
				logits, err := d.Forward(context.Background(), lm.Row{Tokens: ids[at : at+pieces[i]]})
				if err != nil {
					t.Fatal(err)
				}
				got = append(got, logits.Data...)
				at += pieces[i]
			}
			if d.Length() != length {
				t.Errorf("%s %s: length %d", model, name, d.Length())
			}
			for i := range want {
				if diff := math.Abs(float64(got[i] - want[i])); !(diff <= 1e-4) {
					t.Fatalf("%s %s: logit %d of token %d is %g, want %g", model, name, i%128, i/128, got[i], want[i])
				}
			}
			if err := d.Truncate(0); err != nil {
				t.Fatal(err)
			}
		}
	}
}

func TestGreedyWithAndWithoutCache(t *testing.T) {
	for _, model := range []string{"llama__optimum", "llama__dynamo18"} {
		d := open(t, model)
		prompt := []int64{5, 17, 99, 42}
		cached := slices.Clone(prompt)
		for next := prompt; len(cached) < 40; {
			logits, err := d.Forward(context.Background(), lm.Row{Tokens: next})
			if err != nil {
				t.Fatal(err)
			}
			next = []int64{lm.Argmax(logits.Last())}
			cached = append(cached, next...)
		}
		whole := slices.Clone(prompt)
		for len(whole) < 40 {
			if err := d.Truncate(0); err != nil {
				t.Fatal(err)
			}
			logits, err := d.Forward(context.Background(), lm.Row{Tokens: whole})
			if err != nil {
				t.Fatal(err)
			}
			whole = append(whole, lm.Argmax(logits.Last()))
		}
		if !slices.Equal(cached, whole) {
			t.Errorf("%s: with cache %v, without %v", model, cached, whole)
		}
	}
}

func TestForwardAfterError(t *testing.T) {
	d := open(t, "llama__optimum")
	if _, err := d.Forward(context.Background(), lm.Row{Tokens: nil}); err == nil {
		t.Error("no tokens were accepted")
	}
	logits, err := d.Forward(context.Background(), lm.Row{Tokens: []int64{5, 6}})
	if err != nil {
		t.Fatal(err)
	}
	before := slices.Clone(logits.Data)
	if _, err := d.Forward(context.Background(), lm.Row{Tokens: []int64{100000}}); err == nil || d.Length() != 2 {
		t.Errorf("a token beyond the vocabulary: %v, length %d", err, d.Length())
	}
	if err := d.Truncate(0); err != nil {
		t.Fatal(err)
	}
	after, err := d.Forward(context.Background(), lm.Row{Tokens: []int64{5, 6}})
	if err != nil || !slices.Equal(before, after.Data) {
		t.Errorf("the decoder changed by an error: %v", err)
	}
}

func TestOpenRefuses(t *testing.T) {
	testruntime.Require(t)
	for model, want := range map[string]string{
		"none":              "none", // no such file
		"gpt_neox__ts17":    "exported without a key-value cache",
		"llama__ts17-fixed": "a cache of exactly 24 tokens",
	} {
		d, err := lm.OpenDecoder(filepath.Join(models, model, "model.onnx"), lm.Options{})
		if err == nil {
			d.Close()
		}
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want a word of %s", model, err, want)
		}
	}
}

func TestArgmax(t *testing.T) {
	if got := lm.Argmax([]float32{1, 3, 3, 2}); got != 1 {
		t.Errorf("argmax %d", got)
	}
}
