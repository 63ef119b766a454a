package method_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/rope-rewrite/rope-rewrite/internal/decoder"
	"github.com/rope-rewrite/rope-rewrite/internal/npz"
	"github.com/rope-rewrite/rope-rewrite/internal/testruntime"
	"github.com/rope-rewrite/rope-rewrite/internal/testsample"
	"github.com/rope-rewrite/rope-rewrite/rewrite"
	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/tests/kit"
	"github.com/rope-rewrite/rope-rewrite/rope"
)

// crossing is testdata/goldens/longrope.npz: four texts that outgrow the trained length in
// different calls, by an eager decoder in float64 whose calls turn all cached keys anew.
type crossing struct {
	Trained int64   `json:"trained"`
	Prefill int64   `json:"prefill"`
	Padding []int64 `json:"padding"`
	Models  map[string]struct {
		Short  []float64          `json:"short_factor"`
		Long   []float64          `json:"long_factor"`
		Gain   float64            `json:"gain"`
		Errors map[string]float64 `json:"errors"` // of the same decoder in float32, by case
	} `json:"models"`

	sequence decoder.Sequence // with padding on the left
	logits   *npz.File
}

func readCrossing(t *testing.T) crossing {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(kit.Testdata, "goldens", "longrope.json"))
	if err != nil {
		t.Fatal(err)
	}
	var c crossing
	if err := json.Unmarshal(data, &c); err != nil {
		t.Fatal(err)
	}
	if c.logits, err = npz.Open(filepath.Join(kit.Testdata, "goldens", "longrope.npz")); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.logits.Close() })
	for key, into := range map[string]*[]int64{"ids": &c.sequence.IDs, "mask": &c.sequence.Mask, "pos": &c.sequence.Positions} {
		values, shape, err := c.logits.Int64(key)
		if err != nil {
			t.Fatal(err)
		}
		*into, c.sequence.Batch, c.sequence.Length = values, int64(shape[0]), int64(shape[1])
	}
	return c
}

// scaling is the method with the factors of a model.
func (c crossing) scaling(t *testing.T, name string) rope.Spec {
	t.Helper()
	list := func(v []float64) string {
		return strings.ReplaceAll(strings.Trim(fmt.Sprint(v), "[]"), " ", ";")
	}
	m := c.Models[name]
	return kit.Spec(t, rope.ScalingAxis, fmt.Sprintf("longrope:original_max_position_embeddings=%d,attention_factor=%v,short_factor=[%s],long_factor=[%s],length=run",
		c.Trained, m.Gain, list(m.Short), list(m.Long)))
}

// steps are the calls of a generation: a prefill and single tokens.
func (c crossing) steps(prefill int64) []int64 {
	return append([]int64{prefill}, slices.Repeat([]int64{1}, int(c.sequence.Length-c.Prefill))...)
}

// row is a text by itself, without its padding.
func (c crossing) row(b int64) decoder.Sequence {
	s, skip := c.sequence, c.Padding[b]
	of := func(v []int64) []int64 { return v[b*s.Length+skip : (b+1)*s.Length] }
	return decoder.Sequence{Batch: 1, Length: s.Length - skip, IDs: of(s.IDs), Mask: of(s.Mask), Positions: of(s.Positions)}
}

// filledRight is the batch with the padding of the first call on its right, as caches that
// count the tokens of each row want it.
func (c crossing) filledRight() decoder.Sequence {
	s := c.sequence
	s.IDs, s.Mask, s.Positions = slices.Clone(s.IDs), slices.Clone(s.Mask), slices.Clone(s.Positions)
	for b, skip := range c.Padding {
		for _, v := range [][]int64{s.IDs, s.Mask, s.Positions} {
			first := v[int64(b)*s.Length:][:c.Prefill]
			copy(first, slices.Concat(first[skip:], first[:skip]))
		}
	}
	return s
}

// check compares the real tokens of a sequence with those of a golden: the error may be twice
// that of plain float32, whose largest is taken from all cases of the model.
func (c crossing) check(t *testing.T, name, golden, way string, s decoder.Sequence, logits []float64) {
	t.Helper()
	values, _, err := c.logits.Float32(name + "/" + golden)
	if err != nil {
		t.Fatal(err)
	}
	wide := make([]float64, len(values))
	for i, v := range values {
		wide[i] = float64(v)
	}
	got, want := kit.Real(decoderGolden(s), logits), kit.Real(decoderGolden(c.sequence), wide)
	if len(got) != len(want) {
		t.Fatalf("%s: %d logits of real tokens, the golden has %d", way, len(got), len(want))
	}
	off, plain := kit.Largest(got, want), slices.Max(slices.Collect(maps.Values(c.Models[name].Errors)))
	t.Logf("%s: off by %.2g, %.2f times plain float32", way, off, off/plain)
	if !(off <= 2*plain) {
		t.Errorf("%s: off by %.2g, plain float32 by %.2g", way, off, plain)
	}
}

func decoderGolden(s decoder.Sequence) kit.Golden { return kit.Golden{Sequence: s} }

// TestLongRoPECrossing: a batch of four with padding on the left generates across the trained
// length, each row in another call. Every call is an eager decoder's that turns all cached
// keys by the frequencies of the call; a row by itself, and the text in one call, are those
// decoders' too.
func TestLongRoPECrossing(t *testing.T) {
	t.Parallel()
	testruntime.Require(t)
	c := readCrossing(t)
	for _, export := range testsample.Of(t, []string{"llama__optimum", "llama__dynamo18", "llama__dynamo23"}, 1) {
		for _, h := range kit.Hosts() {
			t.Run(export+"/"+h.Name, func(t *testing.T) {
				opts := rewrite.Options{Edits: []rope.Spec{c.scaling(t, "llama")}}
				d := h.Open(t, kit.Model(export), opts)
				c.check(t, "llama", "run", "batch", c.sequence, kit.Chunked(t, d, c.sequence, c.steps(c.Prefill)))
				c.check(t, "llama", "fresh", "one call", c.sequence, kit.Chunked(t, d, c.sequence, []int64{c.sequence.Length}))
				c.checkAlone(t, "llama", d)
				opts.Cache.Capacity = 40
				d = h.Open(t, kit.Model(export), opts)
				c.check(t, "llama", "run", "batch, fixed cache", c.sequence, kit.Chunked(t, d, c.sequence, c.steps(c.Prefill)))
				ragged, err := d.Ragged(t.Context(), c.sequence, c.Prefill)
				if err != nil {
					t.Fatal(err)
				}
				c.check(t, "llama", "run", "rows of their own length", c.sequence, ragged)
			})
		}
	}
}

// checkAlone runs every row by itself: the lengths of others do not count then.
func (c crossing) checkAlone(t *testing.T, name string, d *decoder.Decoder) {
	t.Helper()
	width := 0
	rows := make([][]float64, c.sequence.Batch)
	for b := range rows {
		s := c.row(int64(b))
		rows[b] = kit.Chunked(t, d, s, c.steps(c.Prefill-c.Padding[b]))
		width = len(rows[b]) / int(s.Length)
	}
	var logits []float64
	for b, row := range rows {
		logits = append(append(logits, make([]float64, int(c.Padding[b])*width)...), row...)
	}
	c.check(t, name, "alone", "row by row", c.sequence, logits)
}

// TestLongRoPECrossingExported: the export of a model that was trained with LongRoPE, as ONNX
// Runtime GenAI's builder writes it, gives the same with raw keys. As exported it keeps the keys
// that were turned before, which is another result.
func TestLongRoPECrossingExported(t *testing.T) {
	t.Parallel()
	testruntime.Require(t)
	c := readCrossing(t)
	const name = "phi3_longrope"
	export := filepath.Join(kit.Testdata, "coverage", name+"__genai-fp32", "model.onnx")
	batch := c.filledRight()
	for _, h := range kit.Hosts() {
		t.Run(h.Name, func(t *testing.T) {
			d := h.Open(t, export, rewrite.Options{Cache: rewrite.Cache{Raw: true}})
			c.check(t, name, "run", "batch", batch, kit.Chunked(t, d, batch, c.steps(c.Prefill)))
			c.checkAlone(t, name, d)
		})
	}
	alone, _, err := c.logits.Float32(name + "/alone")
	if err != nil {
		t.Fatal(err)
	}
	first := c.row(0)
	off := 0.0
	for i, x := range kit.Chunked(t, kit.Open(t, export), first, c.steps(c.Prefill)) {
		off = max(off, x-float64(alone[i]), float64(alone[i])-x)
	}
	if !(off > 0.1) {
		t.Errorf("with rotated keys the original is off by %.2g only", off)
	}
}
