package graphs_test

import (
	"context"
	"testing"

	"github.com/rope-rewrite/rope-rewrite/internal/testruntime"
	"github.com/rope-rewrite/rope-rewrite/onnx"
	"github.com/rope-rewrite/rope-rewrite/rewrite"
	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/tests/kit"
	"github.com/rope-rewrite/rope-rewrite/rope"
)

// countInside computes the positions of a graph inside a node from the padding mask, under the same
// names in every graph.
func (p *patient) countInside(g *onnx.Graph) {
	length := p.Op("Neg", p.Op("Unsqueeze", p.Size("input_ids", 1), p.Ints(0)))
	var nodes []*onnx.Node
	add := func(op, output string, inputs ...string) {
		nodes = append(nodes, onnx.NewNode(op, inputs, []string{output}))
	}
	add("CumSum", "own/count", "attention_mask", p.Int(1))
	add("Sub", "own/from_0", "own/count", p.Int(1))
	add("Slice", "own/positions", "own/from_0", length, p.Ints(1<<62), p.Ints(1))
	for n := range g.AllNodes() {
		for i, v := range n.Inputs {
			if v == "position_ids" {
				n.Inputs[i] = "own/positions"
			}
		}
	}
	g.Nodes = append(nodes, g.Nodes...)
}

// TestMergedPositions: a branch of a merged decoder computes positions itself, or reads those that the
// graph around it computes.
func TestMergedPositions(t *testing.T) {
	t.Parallel()
	testruntime.Require(t)
	for name, change := range map[string]func(p *patient){
		"around": func(p *patient) { p.OwnPositions(func() string { return p.New(p.Filled(p.CountedFrom(0), 1)) }) },
		"inside": func(p *patient) {
			for sub := range p.First("If").Subgraphs() {
				p.countInside(sub)
			}
		},
	} {
		for golden, opts := range map[string]rewrite.Options{
			"plain": {},
			"yarn4": {Edits: []rope.Spec{kit.Spec(t, rope.ScalingAxis, "yarn:factor=4,original_max_position_embeddings=16")}},
		} {
			t.Run(name+"/"+golden, func(t *testing.T) {
				p := newPatient(t, "gpt_neox__dynamo18-merged")
				change(p)
				path, report := kit.Patch(t, p.Saved(), opts)
				for i, s := range report.Sites {
					want := []string{"", "by index"}[i/2] // the branch without a past counts by itself
					if s.ScoresOnly || s.Positions != want {
						t.Errorf("layer %d: positions %q, %s", s.Layer, s.Positions, s.Reason)
					}
				}
				m := kit.OpenModel(t, path)
				if off := mergedDistance(t, path, m, golden); !(off <= 1e-4) {
					t.Errorf("off by %.2g", off)
				}
				if opts.Edits != nil {
					return
				}
				again, err := kit.Rewrite(context.Background(), m, rewrite.Options{Edits: []rope.Spec{kit.Spec(t, rope.ScalingAxis, "linear:factor=2")}})
				if err != nil || again.Sites[2].Positions != "by index" {
					t.Errorf("again: %v", err)
				}
			})
		}
	}
}
