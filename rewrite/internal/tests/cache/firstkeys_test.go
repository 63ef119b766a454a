package cache_test

import (
	"context"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"testing"

	"github.com/rope-rewrite/rope-rewrite/internal/decoder"
	"github.com/rope-rewrite/rope-rewrite/internal/testruntime"
	"github.com/rope-rewrite/rope-rewrite/internal/testsample"
	"github.com/rope-rewrite/rope-rewrite/onnx"
	"github.com/rope-rewrite/rope-rewrite/rewrite"
	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/tests/kit"
	"github.com/rope-rewrite/rope-rewrite/rope"
)

// paddedBatch is a batch of texts with so many places of padding on the left.
func paddedBatch(length int64, padding ...int64) decoder.Sequence {
	rng := rand.New(rand.NewPCG(16, 4))
	s := decoder.Sequence{Batch: int64(len(padding)), Length: length}
	for _, pad := range padding {
		for j := range length {
			s.IDs = append(s.IDs, 3+rng.Int64N(125))
			s.Mask = append(s.Mask, min(1, max(0, j-pad+1)))
			s.Positions = append(s.Positions, max(0, j-pad))
		}
	}
	return s
}

// textOf is one text of a batch without its padding.
func textOf(s decoder.Sequence, b, pad int64) decoder.Sequence {
	cut := func(list []int64) []int64 { return list[b*s.Length+pad : (b+1)*s.Length] }
	return decoder.Sequence{Batch: 1, Length: s.Length - pad, IDs: cut(s.IDs), Mask: cut(s.Mask), Positions: cut(s.Positions)}
}

// byIndex is a model whose tokens stand at their index, past and padding counted,
// instead of at position_ids.
func byIndex(t *testing.T, path string) string {
	t.Helper()
	m, err := onnx.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close()
	g := m.Graph
	g.RemoveInput("position_ids")
	for name, x := range map[string]int64{"index_axis": 1, "index_one": 1, "index_row": 0} {
		dims := []int64{1}
		if name == "index_one" {
			dims = nil
		}
		g.AddInitializer(onnx.NewTensor(name, onnx.Int64, dims, []byte{byte(x), 0, 0, 0, 0, 0, 0, 0}))
	}
	first := g.Nodes[0]
	add := func(op string, output string, inputs ...string) string {
		g.InsertNode(first, onnx.NewNode(op, inputs, []string{output}))
		return output
	}
	size := func(input, output string) string {
		dim := add("Gather", output+"_dim", add("Shape", output+"_dims", input), "index_axis")
		return add("Squeeze", output, dim)
	}
	total, length := size("attention_mask", "index_total"), size("input_ids", "index_length")
	add("Unsqueeze", "position_ids", add("Range", "index_range", add("Sub", "index_past", total, length), total, "index_one"), "index_row")
	out := filepath.Join(t.TempDir(), "model.onnx")
	if err := m.Save(out, onnx.SaveOptions{}); err != nil {
		t.Fatal(err)
	}
	return out
}

// First keys are a text's own: behind padding it gives what it gives alone, in
// one call and in several, with every kind of cache and for both targets.
func TestFirstKeysOfPaddedTexts(t *testing.T) {
	t.Parallel()
	testruntime.Require(t)
	padding := []int64{0, 7, 29}
	batch := paddedBatch(48, padding...)
	const text, cache = "first-keys:count=4,window=8", "first-keys:count=4,window=8,positions=cache"
	for _, c := range testsample.Of(t, []struct {
		export string
		masks  []string
		plain  bool // the target onnx can write it
	}{
		{"llama__optimum", []string{text, cache}, true},
		{"llama__optimum by index", []string{text, cache}, true},
		{"llama__dynamo23", []string{text}, false},
		{"gpt_neox__dynamo18", []string{text}, true},
		{"llama__dynamo18-nocache", []string{text, cache}, true},
		{"gpt_neox__ts17", []string{cache}, false},
	}, 2) {
		for _, mask := range c.masks {
			t.Run(c.export+"/"+mask, func(t *testing.T) {
				path := kit.Model(c.export)
				if c.export == "llama__optimum by index" {
					path = byIndex(t, kit.Model("llama__optimum"))
				}
				opts := rewrite.Options{Edits: []rope.Spec{kit.Spec(t, rope.MaskAxis, mask)}}
				check := func(way string, opts rewrite.Options) {
					t.Helper()
					patched, _ := kit.Patch(t, path, opts)
					d := kit.Open(t, patched)
					calls := [][]int64{{48}}
					if d.Cached() {
						calls = append(calls, []int64{17, 31}, slices.Concat([]int64{5, 30}, slices.Repeat([]int64{1}, 13)))
					}
					for _, chunks := range calls {
						logits := kit.Chunked(t, d, batch, chunks)
						width := int64(len(logits)) / (batch.Batch * batch.Length)
						for b, pad := range padding {
							one := textOf(batch, int64(b), pad)
							alone, err := d.Chunks(context.Background(), one, one.Length)
							if err != nil {
								t.Fatal(err)
							}
							row := logits[int64(b)*48*width:][pad*width : 48*width]
							if off := kit.Largest(row, alone); !(off <= 1e-4) {
								t.Errorf("%s, %d calls: the text behind %d places of padding is off by %.2g", way, len(chunks), pad, off)
							}
						}
					}
				}
				check("op", opts)
				if mask == text && c.plain {
					opts.Target = rewrite.PlainONNX
					check("onnx", opts)
					opts.Target = ""
				}
				if c.export == "llama__optimum" || c.export == "llama__optimum by index" {
					opts.Cache.Capacity = 48
					check("fixed", opts)
				}
			})
		}
	}
}
