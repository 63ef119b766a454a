package method_test

import (
	"bytes"
	"context"
	"errors"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/rope-rewrite/rope-rewrite/internal/decoder"
	"github.com/rope-rewrite/rope-rewrite/internal/testruntime"
	"github.com/rope-rewrite/rope-rewrite/internal/testsample"
	"github.com/rope-rewrite/rope-rewrite/onnx"
	"github.com/rope-rewrite/rope-rewrite/rewrite"
	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/tests/kit"
	"github.com/rope-rewrite/rope-rewrite/rope"
)

// TestMaskGoldens compares patched models with an eager reference in which who
// sees whom is a table: in prefill and decode, batched, padded, with a growing
// and with a fixed cache.
func TestMaskGoldens(t *testing.T) {
	t.Parallel()
	testruntime.Require(t)
	for _, c := range testsample.Of(t, []struct {
		mask, golden, documents string
		everywhere              bool // the golden exists for every architecture, else for llama
	}{
		{"anchor", "anchor", "documents", true},
		{"intra-document", "intra", "documents", true},
		{"intra-document-reset", "intra", "documents", true}, // inside a document only distances matter
		{"intra-document-reset:start=9", "intra", "documents", false},
		{"anchor:restart=true", "anchor_reset", "documents", false},
		{"anchor", "readers", "documents_readers", false},
		{"first-keys:count=2,window=8", "first_keys", "", false},
	}, 2) {
		for _, name := range testsample.Of(t, []string{"llama__optimum", "llama__dynamo18", "llama__dynamo23",
			"qwen3__optimum", "qwen3__dynamo18", "gpt_neox__optimum", "gpt_neox__dynamo18"}, 2) {
			architecture, _, _ := strings.Cut(name, "__")
			llama := architecture == "llama"
			if !c.everywhere && name != "llama__optimum" && name != "llama__dynamo18" {
				continue
			}
			t.Run(name+"/"+c.mask+"/"+c.golden, func(t *testing.T) {
				opts := rewrite.Options{Edits: []rope.Spec{kit.Spec(t, rope.MaskAxis, c.mask)}}
				if c.documents != "" {
					opts.Documents.Input = rewrite.DocumentsInput
				}
				path, _ := kit.Patch(t, kit.Model(name), opts)
				growing := kit.Open(t, path)
				opts.Cache.Capacity = 48
				path, _ = kit.Patch(t, kit.Model(name), opts)
				fixed := kit.Open(t, path)
				worst := 0.0
				check := func(g kit.Golden, way string, logits []float64, err error) {
					t.Helper()
					if err != nil {
						t.Fatalf("%s, padded %v: %v", way, g.Padded, err)
					}
					off := g.Distance(t, logits)
					worst = max(worst, off)
					if !(off <= 1e-4) {
						t.Errorf("%s, padded %v: off by %.2g", way, g.Padded, off)
					}
				}
				for _, padded := range []bool{false, true} {
					if padded && !llama {
						continue // there is no golden
					}
					g := kit.ReadMaskGolden(t, architecture, c.golden, c.documents, padded)
					for way, chunks := range kit.Ways {
						if way == "token by token" {
							continue // the decode of 16 tokens shows the same
						}
						logits, err := growing.Chunks(context.Background(), g.Sequence, chunks...)
						check(g, way, logits, err)
						logits, err = fixed.Chunks(context.Background(), g.Sequence, chunks...)
						check(g, way+", fixed cache", logits, err)
					}
					logits, err := fixed.Ragged(context.Background(), g.Sequence, 32)
					check(g, "rows of their own length", logits, err)
				}
				t.Logf("off by at most %.2g", worst)
			})
		}
	}
}

// Eight documents packed into one row give the logits of eight runs of the
// original model, and a reader behind them sees all of them.
func TestPackedDocuments(t *testing.T) {
	t.Parallel()
	testruntime.Require(t)
	ctx := context.Background()
	for _, name := range testsample.Of(t, []string{"llama__optimum", "llama__dynamo18", "qwen3__optimum", "qwen3__dynamo18", "gpt_neox__optimum", "gpt_neox__dynamo18", "llama__genai-fp32"}, 2) {
		for _, mask := range []string{"intra-document", "intra-document-reset"} {
			if mask == "intra-document-reset" && name != "llama__dynamo18" {
				continue
			}
			t.Run(name+"/"+mask, func(t *testing.T) {
				path, _ := kit.Patch(t, kit.Model(name), rewrite.Options{
					Edits:     []rope.Spec{kit.Spec(t, rope.MaskAxis, mask)},
					Documents: rewrite.Documents{Input: "packs"},
				})
				packed, original := kit.Open(t, path), kit.Open(t, kit.Model(name))
				lengths := []int64{3, 1, 17, 8, 5, 30, 2, 11}
				rng := rand.New(rand.NewPCG(5, 6))
				row := decoder.Sequence{Batch: 1}
				for i, n := range lengths {
					for range n {
						row.IDs = append(row.IDs, 4+rng.Int64N(124))
						row.Documents = append(row.Documents, int64(i+1))
						row.Positions = append(row.Positions, row.Length)
						row.Length++
					}
				}
				for range 2 { // readers
					row.IDs, row.Documents, row.Positions = append(row.IDs, 77), append(row.Documents, -1), append(row.Positions, row.Length)
					row.Length++
				}
				row.Mask = slices.Repeat([]int64{1}, int(row.Length))
				run := func(d *decoder.Decoder, s decoder.Sequence, chunks ...int64) []float64 {
					t.Helper()
					logits, err := d.Chunks(ctx, s, chunks...)
					if err != nil {
						t.Fatal(err)
					}
					return logits
				}
				all := run(packed, row, row.Length)
				worst, start := 0.0, int64(0)
				for _, n := range lengths {
					one := decoder.Sequence{Batch: 1, Length: n, IDs: row.IDs[start : start+n], Mask: row.Mask[:n], Positions: row.Positions[:n]}
					worst = max(worst, kit.Largest(run(original, one, n), all[start*128:(start+n)*128]))
					start += n
				}
				if !(worst <= 1e-4) {
					t.Errorf("packed documents are off by %.2g from separate runs", worst)
				}
				chunked := run(packed, row, 40, 20, row.Length-60)
				if off := kit.Largest(chunked, all); !(off <= 1e-4) {
					t.Errorf("in chunks they are off by %.2g", off)
				}
				t.Logf("packed documents are off by %.2g from separate runs", worst)

				// Another first token in each document moves the readers and, beside
				// its own document, nothing else.
				at := int64(0)
				for i, n := range lengths {
					changed := row
					changed.IDs = slices.Clone(row.IDs)
					changed.IDs[at] = 3
					other := run(packed, changed, row.Length)
					for place := range row.Length {
						moved := kit.Largest(other[place*128:(place+1)*128], all[place*128:(place+1)*128]) > 1e-4
						inside := place >= at && place < at+n
						reader := place >= row.Length-2
						if moved != (inside || reader) {
							t.Errorf("document %d changed: place %d moved is %v", i+1, place, moved)
						}
					}
					at += n
				}
			})
		}
	}
}

// What documents need and do not get is said, before the model is changed.
func TestDocumentsRefused(t *testing.T) {
	t.Parallel()
	testruntime.Require(t)
	anchor := []rope.Spec{kit.Spec(t, rope.MaskAxis, "anchor")}
	for _, c := range []struct {
		opts rewrite.Options
		want string
	}{
		{rewrite.Options{Edits: anchor}, "layer 0: the mask uses document ids, which the graph does not have; give --documents input"},
		{rewrite.Options{Documents: rewrite.Documents{Input: "ids"}}, "no mask uses the document ids"},
		{rewrite.Options{Documents: rewrite.Documents{Input: "ids"}, Edits: []rope.Spec{kit.Spec(t, rope.ScalingAxis, "yarn:factor=4")}, Target: rewrite.PlainONNX}, "no mask uses the document ids"},
		{rewrite.Options{Edits: anchor, Documents: rewrite.Documents{Input: "logits"}}, `the graph already has a value named "logits"; give the new input for document ids another name`},
		{rewrite.Options{Edits: anchor, Documents: rewrite.Documents{Input: "x"}, Cache: rewrite.Cache{Capacity: 8, LengthInput: "x"}}, "give the new input for cache lengths another name"},
		{rewrite.Options{Cache: rewrite.Cache{Capacity: -1}}, "a cache of -1 tokens"},
		{rewrite.Options{Cache: rewrite.Cache{Capacity: 1 << 31}}, "expected a capacity from 1 to 2147483647"},
	} {
		m, err := onnx.Open(kit.Model("llama__optimum"))
		if err != nil {
			t.Fatal(err)
		}
		before, err := m.Marshal()
		if err != nil {
			t.Fatal(err)
		}
		_, err = kit.Rewrite(context.Background(), m, c.opts)
		if unfit := (*rewrite.EditError)(nil); !errors.As(err, &unfit) || !strings.Contains(err.Error(), c.want) {
			t.Errorf("error %v lacks %q", err, c.want)
		} else if unfit.What == "" || unfit.Given != "" {
			t.Errorf("the error %v is about %q %q, want documents, a mask or a cache", err, unfit.What, unfit.Given)
		}
		if after, err := m.Marshal(); err != nil || !bytes.Equal(before, after) {
			t.Errorf("the model is changed by what is refused with %q (%v)", c.want, err)
		}
		m.Close()
	}
}
