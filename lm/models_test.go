package lm_test

import (
	"context"
	"math"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/rope-rewrite/rope-rewrite/internal/decoder"
	"github.com/rope-rewrite/rope-rewrite/internal/engine"
	"github.com/rope-rewrite/rope-rewrite/internal/testruntime"
	"github.com/rope-rewrite/rope-rewrite/lm"
	"github.com/rope-rewrite/rope-rewrite/onnx"
	"github.com/rope-rewrite/rope-rewrite/rewrite"
	"github.com/rope-rewrite/rope-rewrite/rope"
)

// Every kind of decoder gives what the same file gives through internal/decoder, which feeds
// it in another way: the cache copied in and out, 16 bits widened.
func TestEveryDecoder(t *testing.T) {
	library := testruntime.Require(t)
	mask, err := rope.ParseSpec(rope.MaskAxis, "intra-document")
	if err != nil {
		t.Fatal(err)
	}
	one := rewrite.CacheScales{Key: []float32{0.03}, Value: []float32{0.03}}
	scales := map[int]rewrite.CacheScales{0: one, 1: one}
	for name, c := range map[string]struct {
		model   string
		options *rewrite.Options // nil leaves the model as it is
	}{
		"growing":                       {"qwen3__optimum", nil},
		"fused attention":               {"llama__dynamo23", nil},
		"windows":                       {"gemma3_text__dynamo18", nil},
		"GroupQueryAttention, float16":  {"llama__genai-fp16", nil},
		"GroupQueryAttention, int4":     {"llama__genai-int4", nil},
		"float16":                       {"llama__dynamo18-fp16", nil},
		"int8":                          {"llama__optimum-int8", nil},
		"merged":                        {"gpt_neox__dynamo18-merged", nil},
		"float16, patched":              {"llama__dynamo18-fp16", &rewrite.Options{}},
		"float16, fixed":                {"llama__dynamo18-fp16", &rewrite.Options{Cache: rewrite.Cache{Capacity: 40}}},
		"raw":                           {"llama__optimum", &rewrite.Options{Cache: rewrite.Cache{Raw: true}}},
		"raw, fixed":                    {"llama__optimum", &rewrite.Options{Cache: rewrite.Cache{Raw: true, Capacity: 40}}},
		"cache of int8":                 {"llama__optimum", &rewrite.Options{Cache: rewrite.Cache{Type: "int8"}}},
		"cache of int8, fixed":          {"qwen3__optimum", &rewrite.Options{Cache: rewrite.Cache{Type: "int8", Capacity: 40}}},
		"cache of float16, fixed":       {"llama__optimum", &rewrite.Options{Cache: rewrite.Cache{Type: "float16", Capacity: 40}}},
		"float16, cache of int8":        {"llama__dynamo18-fp16", &rewrite.Options{Cache: rewrite.Cache{Type: "int8"}}},
		"last logits":                   {"llama__optimum", &rewrite.Options{LogitsPlaces: "at"}},
		"last logits, fixed, documents": {"llama__optimum", &rewrite.Options{LogitsPlaces: "at", Cache: rewrite.Cache{Capacity: 40}, Documents: rewrite.Documents{Input: "ids"}, Edits: []rope.Spec{mask}}},
		"plain nodes":                   {"llama__optimum", &rewrite.Options{Target: rewrite.PlainONNX, Cache: rewrite.Cache{Capacity: 40}}},
		"contrib":                       {"llama__optimum", &rewrite.Options{Target: rewrite.Contrib, Context: rope.Context{Length: 64}}},
		"contrib, cache of int8":        {"llama__optimum", &rewrite.Options{Target: rewrite.Contrib, Context: rope.Context{Length: 64}, Cache: rewrite.Cache{Type: "int8", Scales: scales}}},
		"contrib, int8, fixed":          {"llama__optimum", &rewrite.Options{Target: rewrite.Contrib, Context: rope.Context{Length: 64}, Cache: rewrite.Cache{Type: "int8", Capacity: 40, Scales: scales}}},
	} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(models, c.model, "model.onnx")
			if c.options != nil {
				path = patched(t, path, library, *c.options)
			}
			d := sequence(t, path, lm.Options{Threads: 1, OpsLibrary: library, Chunk: 9})
			tokens := make([]int64, 30)
			rng := rand.New(rand.NewPCG(3, 4))
			for i := range tokens {
				tokens[i] = rng.Int64N(100)
			}
			bound := 1e-5
			if strings.Contains(name, "float16") {
				bound = 2.0 / 1024 // logits rounded to 11 bits, of states rounded to as many
			}
			want, lengths := reference(t, path, library, tokens)
			for range 2 { // the second time after Reset
				got := [][]float32{}
				logits, err := d.Prefill(context.Background(), lm.Row{Tokens: tokens[:20]}) // 9, 9 and 2 tokens
				if err != nil {
					t.Fatal(err)
				}
				got = append(got, slices.Clone(logits.Last()))
				for _, token := range tokens[20:] {
					if logits, err = d.Forward(context.Background(), lm.Row{Tokens: []int64{token}}); err != nil {
						t.Fatal(err)
					}
					got = append(got, slices.Clone(logits.Last()))
				}
				if len(got) != len(lengths) || d.Length() != len(tokens) {
					t.Fatalf("%d rows, %d tokens", len(got), d.Length())
				}
				for i := range got {
					for k, x := range got[i] {
						if off := math.Abs(float64(x) - want[i][k]); !(off <= bound*(1+math.Abs(want[i][k]))) {
							t.Fatalf("after %d tokens score %d is %g, want %g", lengths[i], k, x, want[i][k])
						}
					}
				}
				if err := d.Truncate(0); err != nil {
					t.Fatal(err)
				}
			}
		})
	}
}

// reference gives the last logits after 20 tokens and after each further one.
func reference(t *testing.T, path, library string, tokens []int64) (rows [][]float64, after []int) {
	t.Helper()
	eng, err := engine.NewLocal(engine.Config{Library: library, Threads: 1})
	if err != nil {
		t.Fatal(err)
	}
	defer eng.Close()
	d, err := decoder.Open(context.Background(), eng, path, decoder.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	n := int64(len(tokens))
	s := decoder.Sequence{Batch: 1, Length: n, IDs: tokens, Mask: slices.Repeat([]int64{1}, len(tokens))}
	for i := range n {
		s.Positions = append(s.Positions, i)
	}
	all, err := d.Chunks(context.Background(), s, append([]int64{9, 9, 2}, slices.Repeat([]int64{1}, 10)...)...)
	if err != nil {
		t.Fatal(err)
	}
	width := len(all) / len(tokens)
	for at := 20; at <= len(tokens); at++ {
		rows, after = append(rows, all[(at-1)*width:at*width]), append(after, at)
	}
	return rows, after
}

// patched is the file of a model that the rewriter has changed.
func patched(t testing.TB, path, library string, options rewrite.Options) string {
	t.Helper()
	options.Evaluation.Library = library
	m, err := onnx.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close()
	if _, err := rewrite.Rewrite(context.Background(), m, options); err != nil {
		t.Fatal(err)
	}
	out := filepath.Join(t.TempDir(), "model.onnx")
	if err := m.Save(out, onnx.SaveOptions{}); err != nil {
		t.Fatal(err)
	}
	return out
}
