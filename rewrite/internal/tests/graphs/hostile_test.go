package graphs_test

import (
	"context"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/rope-rewrite/rope-rewrite/internal/testruntime"
	"github.com/rope-rewrite/rope-rewrite/internal/testsample"
	"github.com/rope-rewrite/rope-rewrite/onnx"
	"github.com/rope-rewrite/rope-rewrite/rewrite"
	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/tests/kit"
)

// endless returns a Loop that never stops and carries value through.
func (p *patient) endless(value string) string {
	count, condition, carried := p.Fresh("count"), p.Fresh("condition"), p.Fresh("carried")
	out, same := p.Fresh("out"), p.Fresh("same")
	body := &onnx.Graph{
		Name: "forever",
		Inputs: []*onnx.ValueInfo{
			onnx.NewValueInfo(count, onnx.Int64),
			onnx.NewValueInfo(condition, onnx.Bool),
			{Name: carried, Type: onnx.Int64},
		},
		Nodes: []*onnx.Node{
			onnx.NewNode("Identity", []string{condition}, []string{same}),
			onnx.NewNode("Identity", []string{carried}, []string{out}),
		},
		Outputs: []*onnx.ValueInfo{onnx.NewValueInfo(same, onnx.Bool), {Name: out, Type: onnx.Int64}},
	}
	return p.Node("Loop", []string{"", p.Op("Equal", p.Int(1), p.Int(1)), value}, onnx.GraphAttr("body", body))
}

// hidden adds a condition made from value to the mask.
func (p *patient) hidden(value func() string) {
	p.VisibleIf(func() string {
		largest := p.Node("ReduceMax", []string{p.Cast(value(), onnx.Float)}, onnx.IntAttr("keepdims", 0))
		return p.Op("Greater", largest, p.Float(-1))
	})
}

// TestHostileGraphs: nothing that a graph asks for ends the process or takes
// the machine's memory; the site is kept with the reason.
func TestHostileGraphs(t *testing.T) {
	t.Parallel()
	testruntime.Require(t)
	for _, c := range testsample.Of(t, []struct {
		name   string
		change func(p *patient)
		reason string // of both sites, or what Rewrite's error says
	}{
		{"a range of terabytes", func(p *patient) {
			p.hidden(func() string { return p.Op("Range", p.Int(0), p.Int(1<<40), p.Int(1)) })
		}, "would make a tensor"},
		{"zeros of terabytes", func(p *patient) {
			p.hidden(func() string { return p.Op("ConstantOfShape", p.Ints(1<<20, 1<<20)) })
		}, "would make a tensor"},
		{"zeros of eight gigabytes", func(p *patient) {
			p.hidden(func() string { return p.Op("ConstantOfShape", p.Ints(1<<31)) })
		}, "would make a tensor"},
		{"an expansion of eight gigabytes", func(p *patient) {
			p.hidden(func() string { return p.Op("Expand", p.Float(1), p.Op("Mul", p.Ints(1<<16, 1<<14), p.Ints(2, 1))) })
		}, "would make a tensor"},
		{"tiles of terabytes", func(p *patient) {
			p.hidden(func() string { return p.Op("Tile", p.Floats([]int64{1}, 1), p.Ints(1<<40)) })
		}, "would make a tensor"},
		{"padding of terabytes", func(p *patient) {
			p.hidden(func() string { return p.Op("Pad", p.Floats([]int64{1}, 1), p.Ints(0, 1<<40)) })
		}, "would make a tensor"},
		{"a product of terabytes", func(p *patient) {
			p.hidden(func() string {
				line := p.Op("Range", p.Int(0), p.Int(1<<20), p.Int(1))
				return p.Op("Mul", p.Op("Unsqueeze", line, p.Ints(0)), p.Op("Unsqueeze", line, p.Ints(1)))
			})
		}, "would make a tensor"},
		{"a matrix of terabytes", func(p *patient) {
			p.hidden(func() string {
				line := p.Cast(p.Op("Unsqueeze", p.Op("Range", p.Int(0), p.Int(1<<20), p.Int(1)), p.Ints(0)), onnx.Float)
				return p.Op("MatMul", p.Node("Transpose", []string{line}, onnx.IntsAttr("perm", 1, 0)), line)
			})
		}, "would make a tensor"},
		{"a range as long as the past squared", func(p *patient) {
			p.hidden(func() string {
				past := p.Size("past_key_values.0.key", 2)
				return p.Op("Range", p.Int(0), p.Op("Add", p.Op("Mul", past, past), p.Int(1)), p.Int(1))
			})
		}, "would make a tensor"},
		{"an endless loop", func(p *patient) {
			p.hidden(func() string { return p.endless(p.Int(1)) })
		}, "is a Loop, which cannot be evaluated"},
		{"an endless loop in a branch", func(p *patient) {
			p.hidden(func() string {
				before := len(p.Graph.Nodes)
				out := p.endless(p.Int(1))
				inner := p.Graph.Nodes[before:]
				branch := &onnx.Graph{Name: "branch", Nodes: append([]*onnx.Node{}, inner...), Outputs: []*onnx.ValueInfo{{Name: out, Type: onnx.Int64}}}
				p.Graph.Nodes = p.Graph.Nodes[:before]
				other := p.Fresh("other")
				rest := &onnx.Graph{Name: "rest", Nodes: []*onnx.Node{onnx.NewNode("Identity", []string{p.Int(1)}, []string{other})}, Outputs: []*onnx.ValueInfo{{Name: other, Type: onnx.Int64}}}
				return p.Node("If", []string{p.Op("Equal", p.Int(1), p.Int(1))}, onnx.GraphAttr("then_branch", branch), onnx.GraphAttr("else_branch", rest))
			})
		}, "is a Loop, which cannot be evaluated"},
		{"an endless loop whose shape is read", func(p *patient) {
			p.hidden(func() string { return p.Op("Shape", p.endless(p.Ints(1, 2))) })
		}, "is a Loop, which cannot be evaluated"},
		{"an op of another library", func(p *patient) {
			p.hidden(func() string {
				v := p.Op("Evil", p.Int(1))
				p.Graph.Nodes[len(p.Graph.Nodes)-1].Domain = "evil.library"
				p.RequireOpset("evil.library", 1)
				return v
			})
		}, "is of the domain \"evil.library\""},
		{"an attribute that ends ONNX Runtime's process", func(p *patient) {
			p.hidden(func() string {
				x := p.Floats([]int64{1, 1, 8}, make([]float32, 8)...)
				v := p.Node("GroupQueryAttention", []string{x, x, x, "", "", p.Cast(p.Ints(1), onnx.Int32), p.Cast(p.Int(1), onnx.Int32)},
					onnx.IntAttr("num_heads", 1), onnx.IntAttr("kv_num_heads", 1<<40))
				n := p.Graph.Nodes[len(p.Graph.Nodes)-1]
				n.Domain = "com.microsoft"
				n.Outputs = append(n.Outputs, v+"/key", v+"/value")
				p.RequireOpset("com.microsoft", 1)
				return v
			})
		}, "its attribute kv_num_heads is 1099511627776"},
		{"a quotient that ends ONNX Runtime's process", func(p *patient) {
			p.hidden(func() string { return p.Op("Div", p.Int(math.MinInt64), p.Int(-1)) })
		}, "ended its own process"},
		{"an axis out of all bounds", func(p *patient) {
			for _, s := range p.Sites {
				s.Softmax.SetAttribute(onnx.IntAttr("axis", 1<<40))
			}
		}, "its axis is 1099511627776"},
		{"inputs of terabytes", func(p *patient) {
			for _, v := range p.Graph.Inputs {
				if v.Name == "past_key_values.0.key" {
					v.Shape[1].Value = 1 << 40
				}
			}
		}, "would be needed"},
		{"many inputs without names for their sizes", func(p *patient) {
			for range 14 {
				name := p.Fresh("input")
				p.Graph.AddInput(onnx.NewValueInfo(name, onnx.Int64, onnx.Dim{Value: onnx.UnknownDim}, onnx.Dim{Value: onnx.UnknownDim}))
				p.hidden(func() string {
					return p.Op("Add", name, p.Op("Squeeze", p.Op("Shape", p.Op("MatMul", p.Cast(name, onnx.Float), p.Floats([]int64{7, 1}, make([]float32, 7)...)))))
				})
			}
		}, `interpretations of its input shapes; the first takes "input_ids" and `},
		{"a value that nobody makes", func(p *patient) {
			p.hidden(func() string { return "nowhere" })
		}, "nowhere"},
		{"a product of one operand", func(p *patient) {
			p.Scores(func(old string) string { return p.Op("Add", old, p.Op("MatMul", old)) })
		}, "has 1 inputs, and the operator takes 2"},
		{"a cycle", func(p *patient) {
			first := p.Rotation(p.Sites[0].Query.Operand)
			first.Cos.Inputs[1] = first.Sum.Outputs[0]
		}, "depends on its own output"},
		{"a table of cosines with a row that is not a number", func(p *patient) {
			rows := make([]float32, 64*8)
			for i := range rows {
				rows[i] = float32(math.Cos(float64(i/8) * math.Pow(10000, -float64(i%8)/8)))
			}
			for i := 40 * 8; i < 41*8; i++ {
				rows[i] = float32(math.NaN())
			}
			for _, s := range p.Sites {
				r := p.Rotation(s.Query.Operand)
				half := p.Op("Gather", p.Floats([]int64{64, 8}, rows...), "position_ids")
				r.Cos.Inputs[1] = p.Op("Unsqueeze", p.Node("Concat", []string{half, half}, onnx.IntAttr("axis", -1)), p.Ints(1))
			}
		}, "at position 40 it gives NaN"},
		{"an input that is given twice", func(p *patient) {
			p.Graph.AddInput(p.Graph.Inputs[0].Clone())
		}, "two inputs have the name"},
		{"two nodes that make one value", func(p *patient) {
			again := p.Sites[0].Softmax.Clone()
			p.Graph.InsertNode(nil, again)
		}, "is made by two nodes"},
	}, 6) {
		t.Run(c.name, func(t *testing.T) {
			p := newPatient(t, "llama__dynamo18-eager")
			c.change(p)
			path := filepath.Join(t.TempDir(), "hostile.onnx")
			if err := p.Save(path, onnx.SaveOptions{}); err != nil {
				t.Fatal(err)
			}
			report, err := kit.Rewrite(context.Background(), kit.OpenModel(t, path), rewrite.Options{Evaluation: rewrite.Evaluation{Worker: []string{os.Args[0]}}, AllowUnchanged: true})
			if err != nil {
				if !strings.Contains(err.Error(), c.reason) {
					t.Fatalf("the error says %v; %q was expected", err, c.reason)
				}
				return
			}
			if report.Rewritten() > 0 {
				t.Error("a hostile site is rewritten")
			}
			for _, s := range report.Sites {
				if s.Op == "Softmax" && !strings.Contains(s.Reason, c.reason) {
					t.Errorf("layer %d is kept because %s; %q was expected", s.Layer, s.Reason, c.reason)
				}
			}
			if len(report.Sites) == 0 {
				t.Error("no site")
			}
		})
	}
}
