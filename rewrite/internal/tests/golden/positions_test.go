package golden_test

import (
	"context"
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

// TestOwnPositions compares models that compute the positions of tokens themselves with
// transformers in float64, as they are and scaled: with left padding, in a batch, in one call and
// decoded token by token with the cache.
func TestOwnPositions(t *testing.T) {
	t.Parallel()
	testruntime.Require(t)
	scalings := map[string]string{"plain": "", "linear2": "linear:factor=2", "yarn4": "yarn:factor=4,original_max_position_embeddings=16"}
	for _, name := range []string{"llama__dynamo18-counted", "llama__ts17-counted", "llama__dynamo18-from-end"} {
		for golden, scaling := range scalings {
			for _, target := range []rewrite.Target{rewrite.Ops, rewrite.PlainONNX} {
				if scaling == "" && target != rewrite.Ops {
					continue
				}
				t.Run(name+"/"+golden+"/"+string(target), func(t *testing.T) {
					t.Parallel()
					opts := rewrite.Options{Target: target}
					if scaling != "" {
						opts.Edits = []rope.Spec{kit.Spec(t, rope.ScalingAxis, scaling)}
					}
					patched, _ := kit.Patch(t, kit.Model(name), opts)
					compareOwn(t, name, golden, patched)
				})
			}
		}
	}
}

// compareOwn compares a patched model with a golden of its own in every way of running it.
func compareOwn(t *testing.T, name, golden, patched string) {
	t.Helper()
	f, err := npz.Open(filepath.Join(kit.Testdata, "models", name, "golden.npz"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	ids, shape, err := f.Int64("ids")
	if err != nil {
		t.Fatal(err)
	}
	mask, _, err := f.Int64("mask")
	if err != nil {
		t.Fatal(err)
	}
	want, _, err := f.Float32(golden)
	if err != nil {
		t.Fatal(err)
	}
	d, err := decoder.Open(context.Background(), kit.Local(t), patched, decoder.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	batch, length := int64(shape[0]), int64(shape[1])
	ways := [][]int64{{length}}
	if d.Cached() {
		ways = append(ways, []int64{17, length - 17}, slices.Concat([]int64{13}, slices.Repeat([]int64{1}, int(length-13))))
	}
	for _, chunks := range ways {
		logits, err := d.Chunks(context.Background(), decoder.Sequence{Batch: batch, Length: length, IDs: ids, Mask: mask, Positions: make([]int64, batch*length)}, chunks...)
		if err != nil {
			t.Fatal(err)
		}
		if len(logits) != len(want) {
			t.Fatalf("%d logits, the golden has %d", len(logits), len(want))
		}
		worst, width := 0.0, len(want)/len(mask)
		for i, x := range want {
			if mask[i/width] != 0 {
				worst = max(worst, abs(logits[i]-float64(x)))
			}
		}
		if !(worst <= 1e-4) {
			t.Errorf("in %d calls: off by %.2g, at most 1e-4 was expected", len(chunks), worst)
		}
	}
}

// TestOwnPositionsAgain: a method that gives the op other positions leaves those of the graph in the
// model, so that the next rewrite finds them.
func TestOwnPositionsAgain(t *testing.T) {
	t.Parallel()
	testruntime.Require(t)
	for name, positions := range map[string]string{"llama__ts17-counted": "randomized:range=4096", "llama__dynamo18-counted": "self-extend:window=8,group=4"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			path := kit.Model(name)
			for _, opts := range []rewrite.Options{
				{Edits: []rope.Spec{kit.Spec(t, rope.ScalingAxis, "linear:factor=2")}},
				{Edits: []rope.Spec{kit.Spec(t, rope.PositionsAxis, positions)}},
				{Edits: []rope.Spec{kit.Spec(t, rope.ScalingAxis, "linear:factor=2")}},
			} {
				path, _ = kit.Patch(t, path, opts)
			}
			compareOwn(t, name, "linear2", path)
			path, _ = kit.Patch(t, path, rewrite.Options{Earlier: rewrite.Earlier{Restore: true}})
			compareOwn(t, name, "plain", path)
		})
	}
}

func abs(x float64) float64 { return max(x, -x) }

// TestOwnPositionsOfLlama puts positions that a graph computes into an export, and compares it
// with the goldens of the export: scaled, with a position map, and with a cache of un-rotated keys.
func TestOwnPositionsOfLlama(t *testing.T) {
	t.Parallel()
	testruntime.Require(t)
	methods := []struct {
		golden string
		opts   func(t *testing.T) rewrite.Options
	}{
		{"linear4", func(t *testing.T) rewrite.Options {
			return rewrite.Options{Edits: []rope.Spec{kit.Spec(t, rope.ScalingAxis, "linear:factor=4")}}
		}},
		{"string", func(t *testing.T) rewrite.Options {
			return rewrite.Options{Edits: []rope.Spec{kit.Spec(t, rope.PositionsAxis, "string:shift=16,window=4")}}
		}},
		{"plain", func(*testing.T) rewrite.Options { return rewrite.Options{Cache: rewrite.Cache{Raw: true}} }},
	}
	for i, c := range testsample.Of(t, byIndex(), 4) {
		for k, m := range methods {
			if testing.Short() && k != i%len(methods) {
				continue
			}
			t.Run(c.Name+"/"+m.golden, func(t *testing.T) {
				t.Parallel()
				p := kit.NewPatient(t, "llama__dynamo18")
				p.OwnPositions(func() string { return c.Compute(p) })
				patched, _ := kit.Patch(t, p.Saved(), m.opts(t))
				d, err := decoder.Open(context.Background(), kit.Local(t), patched, decoder.Options{})
				if err != nil {
					t.Fatal(err)
				}
				defer d.Close()
				for _, padded := range []bool{false, true} {
					g := kit.ReadGolden(t, "llama", m.golden, padded)
					for way, chunks := range kit.Ways {
						logits, err := d.Chunks(context.Background(), g.Sequence, chunks...)
						if err != nil {
							t.Fatal(err)
						}
						if got := g.Distance(t, logits); !(got <= 1e-4) {
							t.Errorf("%s, padded %v: off by %.2g, at most 1e-4 was expected", way, padded, got)
						}
					}
				}
			})
		}
	}
}

// byIndex are the positions that a graph computes which are the index plus one number for each row.
func byIndex() []kit.PositionCase {
	return slices.DeleteFunc(slices.Clone(kit.ComputedPositions), func(c kit.PositionCase) bool { return c.Unlike })
}

// TestUnlikePositions: positions that are not the index plus one number for each row can be scaled,
// and are refused for what moves tokens, also where the model was rewritten before.
func TestUnlikePositions(t *testing.T) {
	t.Parallel()
	testruntime.Require(t)
	unlike := slices.DeleteFunc(slices.Clone(kit.ComputedPositions), func(c kit.PositionCase) bool { return !c.Unlike })
	for _, c := range testsample.Of(t, unlike, 3) {
		t.Run(c.Name, func(t *testing.T) {
			t.Parallel()
			p := kit.NewPatient(t, "llama__dynamo18")
			p.OwnPositions(func() string { return c.Compute(p) })
			own := p.Saved()
			scaled, _ := kit.Patch(t, own, rewrite.Options{Edits: []rope.Spec{kit.Spec(t, rope.ScalingAxis, "linear:factor=2")}, Numerics: rewrite.Numerics{Angles: "original"}})
			p.Scaled(0.5)
			kit.CompareModels(t, kit.Local(t), p.Saved(), scaled, 50_000)
			for what, opts := range map[string]rewrite.Options{
				"a position map": {Edits: []rope.Spec{kit.Spec(t, rope.PositionsAxis, "string:shift=16,window=4")}},
				"a raw cache":    {Cache: rewrite.Cache{Raw: true}},
				"documents":      {Edits: []rope.Spec{kit.Spec(t, rope.MaskAxis, "intra-document-reset")}, Documents: rewrite.Documents{Input: rewrite.DocumentsInput}},
			} {
				for _, path := range []string{own, scaled} {
					_, err := kit.Rewrite(context.Background(), kit.OpenModel(t, path), opts)
					if err == nil || !strings.Contains(err.Error(), "the graph computes its positions") || !strings.Contains(err.Error(), "Scalings are possible") {
						t.Errorf("%s: %v", what, err)
					}
				}
			}
		})
	}
}
