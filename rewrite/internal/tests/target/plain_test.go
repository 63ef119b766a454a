package target_test

import (
	"bytes"
	"slices"
	"strings"
	"testing"

	"github.com/rope-rewrite/rope-rewrite/internal/testruntime"
	"github.com/rope-rewrite/rope-rewrite/internal/testsample"
	"github.com/rope-rewrite/rope-rewrite/onnx"
	"github.com/rope-rewrite/rope-rewrite/rewrite"
	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/tests/kit"
	"github.com/rope-rewrite/rope-rewrite/rope"
)

// Masks before the model's own softmax hide what the oracle's tables hide.
func TestTargetONNXMasks(t *testing.T) {
	t.Parallel()
	testruntime.Require(t)
	for _, c := range []struct{ mask, golden, documents string }{
		{"anchor", "anchor", "documents"},
		{"intra-document", "intra", "documents"},
		{"anchor", "readers", "documents_readers"},
		{"first-keys:count=2,window=8", "first_keys", ""},
	} {
		for _, name := range testsample.Of(t, []string{"llama__optimum", "llama__dynamo18", "llama__dynamo18-eager"}, 1) {
			t.Run(name+"/"+c.mask+"/"+c.golden, func(t *testing.T) {
				opts := rewrite.Options{Edits: []rope.Spec{kit.Spec(t, rope.MaskAxis, c.mask)}, Target: rewrite.PlainONNX}
				if c.documents != "" {
					opts.Documents.Input = rewrite.DocumentsInput
				}
				path, _ := kit.Patch(t, kit.Model(name), opts)
				kit.NoCustomNodes(t, path)
				d := kit.Open(t, path)
				for _, padded := range []bool{false, true} {
					g := kit.ReadMaskGolden(t, "llama", c.golden, c.documents, padded)
					for _, way := range []string{"prefill", "two chunks", "then decode"} {
						if off := g.Distance(t, kit.Chunked(t, d, g.Sequence, kit.Ways[way])); !(off <= 1e-4) {
							t.Errorf("%s, padded %v: off by %.2g", way, padded, off)
						} else {
							t.Logf("%s, padded %v: off by %.2g", way, padded, off)
						}
					}
				}
			})
		}
	}
}

// Frequencies may go by the length of each call: with a cache, of raw keys.
func TestTargetONNXLengthOfRun(t *testing.T) {
	t.Parallel()
	testruntime.Require(t)
	goldens := kit.ReadMethodGoldens(t, "methods")
	for export, names := range testsample.OfMap(t, map[string][]string{
		"llama__dynamo18-nocache": {"dynamic_run", "longrope_run"},
		"llama__optimum":          {"dynamic-linear_run", "longrope_run"},
		"llama__dynamo23":         {"dynamic_run"},
	}, 1) {
		for _, name := range names {
			t.Run(export+"/"+name, func(t *testing.T) {
				opts := rewrite.Options{Edits: kit.Edits(t, goldens.Cases[name].Edits)}
				byOp, _ := kit.Patch(t, kit.Model(export), opts)
				opts.Target = rewrite.PlainONNX
				path, _ := kit.Patch(t, kit.Model(export), opts)
				kit.NoCustomNodes(t, path)
				plain, ops := kit.Open(t, path), kit.Open(t, byOp)
				for _, padded := range []bool{false, true} {
					suffix := ""
					if padded {
						suffix = "_pad"
					}
					want, _, err := goldens.Logits.Float32(name + "_full" + suffix)
					if err != nil {
						t.Fatal(err)
					}
					g := kit.ReadGolden(t, "llama", "plain", padded)
					logits := kit.Chunked(t, plain, g.Sequence, []int64{48})
					if off := kit.SparseDistance(t, g, logits, want, goldens.Step); !(off <= 1e-4) {
						t.Errorf("padded %v: off by %.2g", padded, off)
					}
					if plain.Cached() {
						steps := append([]int64{goldens.RunPrefill}, slices.Repeat([]int64{1}, int(48-goldens.RunPrefill))...)
						if want, _, err = goldens.Logits.Float32(name + suffix); err != nil {
							t.Fatal(err)
						}
						if off := kit.SparseDistance(t, g, kit.Chunked(t, plain, g.Sequence, steps), want, goldens.Step); !(off <= 1e-4) {
							t.Errorf("padded %v, %d calls: off by %.2g", padded, len(steps), off)
						}
					}
					for _, length := range []int64{48, 16, 17} { // on both sides of the trained length
						s := head(g, length)
						off := kit.Largest(kit.Real(s, kit.Chunked(t, plain, s.Sequence, []int64{length})), kit.Real(s, kit.Chunked(t, ops, s.Sequence, []int64{length})))
						if t.Logf("padded %v, %d tokens: off by %.2g from the op", padded, length, off); !(off <= 1e-4) {
							t.Errorf("padded %v, %d tokens: off by %.2g from the op", padded, length, off)
						}
					}
				}
			})
		}
	}
}

// head keeps the last tokens of every text, which are no padding.
func head(g kit.Golden, length int64) kit.Golden {
	s := g.Sequence
	cut := func(list []int64) (out []int64) {
		for b := range s.Batch {
			out = append(out, list[(b+1)*s.Length-length:(b+1)*s.Length]...)
		}
		return out
	}
	g.Sequence.IDs, g.Sequence.Mask, g.Sequence.Positions, g.Sequence.Length = cut(s.IDs), cut(s.Mask), cut(s.Positions), length
	for i := range g.Sequence.Positions {
		g.Sequence.Positions[i] = int64(i) % length
	}
	return g
}

// Constants in 16 bits. (TestMergedDecoder has those that branches share.)
func TestTargetONNXElsewhere(t *testing.T) {
	t.Parallel()
	testruntime.Require(t)
	for _, export := range testsample.Of(t, []string{"llama__dynamo18-fp16", "gpt_neox__dynamo18-fp16", "llama__genai-fp16"}, 1) {
		for _, scaling := range []string{"yarn:factor=3,original_max_position_embeddings=16", "ntk:alpha=3"} {
			if export == "llama__dynamo18-fp16" && scaling == "ntk:alpha=3" {
				continue // gpt_neox shows it
			}
			name, _, _ := strings.Cut(scaling, ":")
			t.Run(export+"/"+name, func(t *testing.T) {
				architecture, route, _ := strings.Cut(export, "__")
				g := kit.ReadGolden(t, architecture, "plain", false)
				bound := 1e-4
				if strings.HasSuffix(route, "-fp16") { // two computations of the rounding that the model has itself
					bound = 2 * g.Distance(t, kit.Chunked(t, kit.Open(t, kit.Model(export)), g.Sequence, kit.ThenDecode))
				}
				opts := rewrite.Options{Edits: []rope.Spec{kit.Spec(t, rope.ScalingAxis, scaling)}}
				byOp, _ := kit.Patch(t, kit.Model(export), opts)
				opts.Target = rewrite.PlainONNX
				path, _ := kit.Patch(t, kit.Model(export), opts)
				kit.NoCustomNodes(t, path)
				plain, ops := kit.Open(t, path), kit.Open(t, byOp)
				off := kit.Largest(kit.Chunked(t, plain, g.Sequence, kit.ThenDecode), kit.Chunked(t, ops, g.Sequence, kit.ThenDecode))
				if t.Logf("off by %.2g from the op, at most %.2g", off, bound); !(off <= bound) {
					t.Errorf("off by %.2g from the op, at most %.2g was expected", off, bound)
				}
			})
		}
	}
}

// The same request gives the same file each time.
func TestPlainSameBytes(t *testing.T) {
	t.Parallel()
	testruntime.Require(t)
	yarn := []rope.Spec{kit.Spec(t, rope.ScalingAxis, "yarn:factor=4")}
	var first []byte
	for range testsample.Times(t, 20, 4) {
		m, err := onnx.Open(kit.Model("gpt_neox__dynamo18"))
		if err != nil {
			t.Fatal(err)
		}
		defer m.Close()
		if _, err := kit.Rewrite(t.Context(), m, rewrite.Options{Edits: yarn, Target: rewrite.PlainONNX}); err != nil {
			t.Fatal(err)
		}
		data, err := m.Marshal()
		if err != nil {
			t.Fatal(err)
		}
		if first == nil {
			first = data
		}
		if !bytes.Equal(data, first) {
			t.Fatal("two files differ")
		}
	}
}
