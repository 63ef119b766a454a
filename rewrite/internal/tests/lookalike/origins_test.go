package lookalike_test

import (
	"context"
	"strings"
	"testing"

	"github.com/rope-rewrite/rope-rewrite/internal/testruntime"
	"github.com/rope-rewrite/rope-rewrite/onnx"
	"github.com/rope-rewrite/rope-rewrite/rewrite"
	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/eval"
	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/ir"
	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/tests/kit"
	"github.com/rope-rewrite/rope-rewrite/rope"
)

// Keys of latent attention are put together of channels that every head has by
// itself and rotated ones that all share.
func concatenatedParts() []lookalike {
	latent, cachedLatent := []string{"../coverage/deepseek_v3__ts17"}, []string{"../coverage/deepseek_v3__dynamo18"}
	return []lookalike{
		{name: "channels of the key that are not rotated in another order", models: latent, change: func(p *patient) {
			p.Key(func(old string) string {
				return p.Node("Gather", []string{old, p.Ints(1, 2, 3, 4, 5, 6, 7, 0, 8, 9, 10, 11, 12, 13, 14, 15)}, onnx.IntAttr("axis", 2))
			})
		}},
		{name: "both in another order", models: latent, change: func(p *patient) {
			order := p.Ints(15, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 0)
			p.Key(func(old string) string { return p.Node("Gather", []string{old, order}, onnx.IntAttr("axis", 2)) })
			p.Query(func(old string) string { return p.Node("Gather", []string{old, order}, onnx.IntAttr("axis", 3)) })
		}, kept: both("channel")},
		{name: "rotated channels that the heads do not share", models: latent, change: func(p *patient) {
			p.Key(func(old string) string { return p.Op("Mul", old, p.Floats([]int64{4, 1, 1}, 1, 1, 2, 1)) })
		}, kept: both("heads 0 and 2")},
		{name: "latent states in a cache", models: cachedLatent, change: func(*patient) {}},
		{name: "places of channels as constants", models: cachedLatent, change: func(p *patient) {
			p.placesOfChannels([2][]int64{{0, 1, 2, 3, 4, 5, 6, 7}, {8, 9, 10, 11, 12, 13, 14, 15}})
		}},
		{name: "places of channels as constants, in another order", models: cachedLatent, change: func(p *patient) {
			p.placesOfChannels([2][]int64{{0, 1, 2, 3, 4, 5, 6, 7}, {8, 10, 9, 11, 12, 13, 14, 15}})
		}, kept: both("are not one block")},
		{name: "rotated channels doubled behind the cache", models: cachedLatent, change: func(p *patient) {
			for _, s := range p.Sites {
				p.After(s.Key.Shared.Present, func(old string) string { return p.Op("Mul", old, p.Float(2)) })
			}
		}, kept: both("of its key is 1 times channel 8")},
		{name: "a rotated channel twice behind the cache", models: cachedLatent, change: func(p *patient) {
			for _, s := range p.Sites {
				p.After(s.Key.Shared.Present, func(old string) string {
					return p.Node("Gather", []string{old, p.Ints(0, 0, 2, 3, 4, 5, 6, 7)}, onnx.IntAttr("axis", -1))
				})
			}
		}, kept: both("is none of those it is assembled from")},
		{name: "rotated channels of the key that are the mean of all tokens", models: cachedLatent, change: func(p *patient) {
			for _, s := range p.Sites {
				p.After(s.Key.Shared.Present, func(old string) string {
					return p.Op("Add", p.Op("Mul", old, p.Float(0)), p.Op("ReduceMean", old, p.Ints(2)))
				})
			}
		}, kept: both("is assembled from several values")},
	}
}

// placesOfChannels gives the ScatterND nodes of each layer, which are two, constant indices.
func (p *patient) placesOfChannels(rows [2][]int64) {
	made := 0
	for _, n := range p.Graph.Nodes {
		if n.OpType != "ScatterND" {
			continue
		}
		t := ir.Int64Tensor(p.Fresh("places"), []int64{8, 1}, rows[made%2]...)
		p.Graph.AddInitializer(t)
		n.Inputs[1] = t.Name
		made++
	}
	if made == 0 {
		p.TB.Fatal("there is no ScatterND")
	}
}

// Keys and values of latent states are made anew in every call, so that there is
// nothing of fixed capacity to write them into.
func TestLatentCacheOfFixedCapacity(t *testing.T) {
	testruntime.Require(t)
	m := kit.OpenModel(t, "../../../../testdata/coverage/deepseek_v3__dynamo18/model.onnx")
	_, err := kit.Rewrite(context.Background(), m, rewrite.Options{Cache: rewrite.Cache{Capacity: 64}})
	if err == nil || !strings.Contains(err.Error(), "latent states") {
		t.Errorf("the error is %v; latent states were expected in it", err)
	}
}

// Without the op, frequencies of latent attention can be changed in its own nodes, its
// cache cannot: the op's body takes its place, and gives what the op gives.
func TestLatentWithoutTheOp(t *testing.T) {
	t.Parallel()
	testruntime.Require(t)
	const export = "../../../../testdata/coverage/deepseek_v3__dynamo18/model.onnx"
	for scaling, form := range map[string]rewrite.Form{
		"linear:factor=4": rewrite.OwnNodes,
		"dynamic:factor=4,original_max_position_embeddings=16,length=run": rewrite.Inlined,
	} {
		opts := rewrite.Options{Edits: []rope.Spec{kit.Spec(t, rope.ScalingAxis, scaling)}}
		byOp, _ := kit.Patch(t, export, opts)
		opts.Target = rewrite.PlainONNX
		path, report := kit.Patch(t, export, opts)
		if s := report.Sites[0]; s.Form != form || form == rewrite.Inlined && !strings.Contains(s.FormReason, "latent states") {
			t.Errorf("%s: it is written as %q for %q", scaling, s.Form, s.FormReason)
		}
		g := kit.ReadGolden(t, "llama", "plain", true)
		for i, id := range g.Sequence.IDs {
			g.Sequence.IDs[i] = id % 64 // tokens that the model has
		}
		if off := kit.Largest(kit.Real(g, kit.Chunked(t, kit.OpenPlainly(t, path), g.Sequence, kit.ThenDecode)), kit.Real(g, kit.Chunked(t, kit.Open(t, byOp), g.Sequence, kit.ThenDecode))); !(off <= 1e-4) {
			t.Errorf("%s: off by %.2g from the op", scaling, off)
		}
	}
}

func TestBoxAt(t *testing.T) {
	box := []float64{0, 3, 0, 4, 1, 3, 1, 4} // rows 0 and 1, columns 3 and 4
	if at, ok := eval.BoxAt([]int64{2, 2, 2}, box); !ok || at[0] != 0 || at[1] != 3 {
		t.Errorf("a box is at %v, %v", at, ok)
	}
	for i := range box {
		other := append([]float64(nil), box...)
		other[i] += 2
		if _, ok := eval.BoxAt([]int64{2, 2, 2}, other); ok && i > 1 {
			t.Errorf("%v is taken for a box", other)
		}
	}
	for _, dims := range [][]int64{nil, {4, 2}, {2, 2, 1}} {
		if _, ok := eval.BoxAt(dims, box); ok {
			t.Errorf("indices of the shape %v are taken for a box", dims)
		}
	}
}
