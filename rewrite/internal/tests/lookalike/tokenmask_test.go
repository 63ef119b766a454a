package lookalike_test

import (
	"errors"
	"slices"

	"github.com/rope-rewrite/rope-rewrite/onnx"
	"github.com/rope-rewrite/rope-rewrite/rope"
)

// tokenMasks hide keys by token ids, which are more numbers than 0 and 1.
func tokenMasks() []lookalike {
	instead := func(hidden func(p *patient) string) func(p *patient) {
		return func(p *patient) {
			p.After("attention_mask", func(string) string { return p.Cast(hidden(p), onnx.Int64) })
		}
	}
	keptAsBias := func(_ int, a rope.Attention) error {
		if a.Mask.Padding || !a.Mask.Bias {
			return errors.New("the mask is " + a.Mask.String() + ", the model's own was expected")
		}
		return nil
	}
	cases := []lookalike{
		{name: "ids of 0", change: instead(func(p *patient) string { return "input_ids" }), is: keptAsBias},
		{name: "ids of 3", change: instead(func(p *patient) string {
			return p.Op("Not", p.Op("Equal", "input_ids", p.Int(3)))
		}), is: keptAsBias},
		{name: "ids of 3 and padding", change: instead(func(p *patient) string {
			return p.Op("And", p.Op("Not", p.Op("Equal", "input_ids", p.Int(3))), p.Cast("attention_mask", onnx.Bool))
		}), is: keptAsBias},
		{name: "ids of 0 and 3", change: instead(func(p *patient) string {
			return p.Op("And", p.Op("Not", p.Op("Equal", "input_ids", p.Int(3))), p.Cast("input_ids", onnx.Bool))
		}), is: keptAsBias},
		{name: "ids of 0 and more than 3", change: instead(func(p *patient) string {
			return p.Op("And", p.Op("Less", "input_ids", p.Int(3)), p.Cast("input_ids", onnx.Bool))
		}), is: keptAsBias},
		{name: "all but ids of 1", change: instead(func(p *patient) string {
			return p.Op("Equal", "input_ids", p.Int(1))
		}), is: keptAsBias},
		{name: "ids of 0, whose rows a branch takes", change: func(p *patient) {
			instead(func(p *patient) string { return "input_ids" })(p)
			p.rowsInBranches()
		}, is: keptAsBias},
		{name: "texts by number", change: func(p *patient) {
			p.texts(func(query, key string) string { return p.Op("Equal", query, key) })
		}, is: keptAsBias},
		{name: "texts by number, later ones hidden", change: func(p *patient) {
			p.texts(func(query, key string) string { return p.Op("Not", p.Op("Less", query, key)) })
		}, is: keptAsBias},
		{name: "ids times a number", change: func(p *patient) {
			p.Scores(func(old string) string {
				more := p.Op("Mul", p.Op("Sub", p.Float(1), p.Cast("input_ids", onnx.Float)), p.Float(-1e9))
				return p.Op("Add", old, p.Op("Unsqueeze", more, p.Ints(1, 2)))
			})
		}, kept: both("its mask is not understood: it depends on more than a padding mask")},
	}
	for i := range cases {
		cases[i].models = []string{"llama__ts17"}
	}
	return cases
}

// texts hides keys by the numbers of the padding mask for query and key, but nothing from padded tokens: with 0 and 1 it is
// padding.
func (p *patient) texts(visible func(query, key string) string) {
	p.Scores(func(old string) string {
		query, key := p.Op("Unsqueeze", "attention_mask", p.Ints(1, 3)), p.Op("Unsqueeze", "attention_mask", p.Ints(1, 2))
		return p.Op("Where", p.Op("Or", visible(query, key), p.Op("Equal", query, p.Int(0))), old, p.Float(-1e9))
	})
}

// rowsInBranches lets both branches of an If take the rows of token ids.
func (p *patient) rowsInBranches() {
	whether := p.Op("Greater", p.Size("input_ids", 0), p.Int(0))
	for _, n := range p.Graph.Nodes {
		if n.OpType != "Gather" || n.Inputs[1] != "input_ids" {
			continue
		}
		branch := func(name string) *onnx.Attribute {
			return onnx.GraphAttr(name, &onnx.Graph{Name: name, Nodes: []*onnx.Node{onnx.NewNode("Gather", slices.Clone(n.Inputs), []string{name + ".rows"})},
				Outputs: []*onnx.ValueInfo{{Name: name + ".rows", Type: onnx.Float}}})
		}
		*n = *onnx.NewNode("If", []string{whether}, n.Outputs, branch("then_branch"), branch("else_branch"))
	}
}
