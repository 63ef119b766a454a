package rewrite_test

import (
	"bytes"
	"slices"
	"strings"
	"testing"

	"github.com/rope-rewrite/rope-rewrite/internal/testruntime"
	"github.com/rope-rewrite/rope-rewrite/onnx"
	"github.com/rope-rewrite/rope-rewrite/rewrite"
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
		for _, name := range []string{"llama__optimum", "llama__dynamo18", "llama__dynamo18-eager"} {
			t.Run(name+"/"+c.mask+"/"+c.golden, func(t *testing.T) {
				opts := rewrite.Options{Edits: []rope.Spec{spec(t, rope.MaskAxis, c.mask)}, Target: rewrite.PlainONNX}
				if c.documents != "" {
					opts.Documents = rewrite.DocumentsInput
				}
				path, _ := patch(t, model(name), opts)
				noCustomNodes(t, path)
				d := open(t, path)
				for _, padded := range []bool{false, true} {
					g := readMaskGolden(t, "llama", c.golden, c.documents, padded)
					for _, way := range []string{"prefill", "two chunks", "then decode"} {
						if off := g.distance(t, chunked(t, d, g.sequence, ways[way])); !(off <= 1e-4) {
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
	goldens := readMethodGoldens(t, "methods")
	for export, names := range map[string][]string{
		"llama__dynamo18-nocache": {"dynamic_run", "longrope_run"},
		"llama__optimum":          {"dynamic-linear_run", "longrope_run"},
		"llama__dynamo23":         {"dynamic_run"},
	} {
		for _, name := range names {
			t.Run(export+"/"+name, func(t *testing.T) {
				opts := rewrite.Options{Edits: edits(t, goldens.Cases[name].Edits)}
				byOp, _ := patch(t, model(export), opts)
				opts.Target = rewrite.PlainONNX
				path, _ := patch(t, model(export), opts)
				noCustomNodes(t, path)
				plain, ops := open(t, path), open(t, byOp)
				for _, padded := range []bool{false, true} {
					suffix := ""
					if padded {
						suffix = "_pad"
					}
					want, _, err := goldens.logits.Float32(name + "_full" + suffix)
					if err != nil {
						t.Fatal(err)
					}
					g := readGolden(t, "llama", "plain", padded)
					logits := chunked(t, plain, g.sequence, []int64{48})
					if off := sparseDistance(t, g, logits, want, goldens.Step); !(off <= 1e-4) {
						t.Errorf("padded %v: off by %.2g", padded, off)
					}
					if plain.Cached() {
						steps := append([]int64{goldens.RunPrefill}, slices.Repeat([]int64{1}, int(48-goldens.RunPrefill))...)
						if want, _, err = goldens.logits.Float32(name + suffix); err != nil {
							t.Fatal(err)
						}
						if off := sparseDistance(t, g, chunked(t, plain, g.sequence, steps), want, goldens.Step); !(off <= 1e-4) {
							t.Errorf("padded %v, %d calls: off by %.2g", padded, len(steps), off)
						}
					}
					for _, length := range []int64{48, 16, 17} { // on both sides of the trained length
						s := head(g, length)
						off := largest(real(s, chunked(t, plain, s.sequence, []int64{length})), real(s, chunked(t, ops, s.sequence, []int64{length})))
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
func head(g golden, length int64) golden {
	s := g.sequence
	cut := func(list []int64) (out []int64) {
		for b := range s.Batch {
			out = append(out, list[(b+1)*s.Length-length:(b+1)*s.Length]...)
		}
		return out
	}
	g.sequence.IDs, g.sequence.Mask, g.sequence.Positions, g.sequence.Length = cut(s.IDs), cut(s.Mask), cut(s.Positions), length
	for i := range g.sequence.Positions {
		g.sequence.Positions[i] = int64(i) % length
	}
	return g
}

// Constants in 16 bits. (TestMergedDecoder has those that branches share.)
func TestTargetONNXElsewhere(t *testing.T) {
	t.Parallel()
	testruntime.Require(t)
	for _, export := range []string{"llama__dynamo18-fp16", "gpt_neox__dynamo18-fp16", "llama__genai-fp16"} {
		for _, scaling := range []string{"yarn:factor=3,original_max_position_embeddings=16", "ntk:alpha=3"} {
			if export == "llama__dynamo18-fp16" && scaling == "ntk:alpha=3" {
				continue // gpt_neox shows it
			}
			name, _, _ := strings.Cut(scaling, ":")
			t.Run(export+"/"+name, func(t *testing.T) {
				architecture, route, _ := strings.Cut(export, "__")
				g := readGolden(t, architecture, "plain", false)
				bound := 1e-4
				if strings.HasSuffix(route, "-fp16") { // two computations of the rounding that the model has itself
					bound = 2 * g.distance(t, chunked(t, open(t, model(export)), g.sequence, thenDecode))
				}
				opts := rewrite.Options{Edits: []rope.Spec{spec(t, rope.ScalingAxis, scaling)}}
				byOp, _ := patch(t, model(export), opts)
				opts.Target = rewrite.PlainONNX
				path, _ := patch(t, model(export), opts)
				noCustomNodes(t, path)
				plain, ops := open(t, path), open(t, byOp)
				off := largest(chunked(t, plain, g.sequence, thenDecode), chunked(t, ops, g.sequence, thenDecode))
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
	yarn := []rope.Spec{spec(t, rope.ScalingAxis, "yarn:factor=4")}
	var first []byte
	for range 20 {
		m, err := onnx.Open(model("gpt_neox__dynamo18"))
		if err != nil {
			t.Fatal(err)
		}
		defer m.Close()
		if _, err := rewrite.Rewrite(t.Context(), m, rewrite.Options{Edits: yarn, Target: rewrite.PlainONNX}.Again(model("gpt_neox__dynamo18"))); err != nil {
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
