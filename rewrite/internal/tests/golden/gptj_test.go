package golden_test

import (
	"context"
	"math"
	"path/filepath"
	"testing"

	"github.com/rope-rewrite/rope-rewrite/internal/engine"
	"github.com/rope-rewrite/rope-rewrite/internal/npz"
	"github.com/rope-rewrite/rope-rewrite/internal/testruntime"
	"github.com/rope-rewrite/rope-rewrite/rewrite"
	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/tests/kit"
	"github.com/rope-rewrite/rope-rewrite/rope"
)

// TestAssignedMask: GPT-J's mask is assigned as a whole in TorchScript. It is
// causal, so that position maps are served.
func TestAssignedMask(t *testing.T) {
	t.Parallel()
	testruntime.Require(t)
	const name, step = "gptj__ts17", 4
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
	batch, length := int64(shape[0]), int64(shape[1])
	for _, c := range []struct{ golden, positions string }{
		{"plain", ""}, {"string", "string:shift=16,window=4"}, {"rerope", "rerope:window=10"}, {"self_extend", "self-extend:window=8,group=4"},
	} {
		t.Run(c.golden, func(t *testing.T) {
			opts := rewrite.Options{Context: rope.Context{Length: length, Original: 16}}
			if c.positions != "" {
				opts.Edits = []rope.Spec{kit.Spec(t, rope.PositionsAxis, c.positions)}
			}
			path, report := kit.Patch(t, kit.Model(name), opts)
			if m := report.Sites[0].Mask; m != "causal + padding" {
				t.Errorf("the mask is %s, causal + padding was expected", m)
			}
			want, shape, err := f.Float32(c.golden)
			if err != nil {
				t.Fatal(err)
			}
			session, err := kit.Local(t).Load(context.Background(), engine.Model{Path: path, Library: true,
				Inputs: []string{"input_ids", "attention_mask"}, Outputs: []string{"logits"}})
			if err != nil {
				t.Fatal(err)
			}
			defer session.Close()
			out, err := session.Run(context.Background(), map[string]engine.Tensor{
				"input_ids": engine.Int64s(ids, batch, length), "attention_mask": engine.Int64s(mask, batch, length)})
			if err != nil {
				t.Fatal(err)
			}
			got, rows, width := out["logits"].Values(), int64(shape[1]), int64(shape[2])
			for i, x := range want {
				b, token, channel := int64(i)/width/rows, int64(i)/width%rows*step, int64(i)%width
				if mask[b*length+token] == 0 {
					continue
				}
				if y := got[(b*length+token)*width+channel]; !(math.Abs(y-float64(x)) <= 1e-4) {
					t.Fatalf("row %d, token %d: off by %.2g", b, token, math.Abs(y-float64(x)))
				}
			}
		})
	}
}
