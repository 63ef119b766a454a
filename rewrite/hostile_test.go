package rewrite_test

import (
	"context"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/rope-rewrite/rope-rewrite/internal/testruntime"
	"github.com/rope-rewrite/rope-rewrite/rewrite"

	"github.com/rope-rewrite/rope-rewrite/onnx"
)

// endless returns a Loop that never stops and carries value through.
func (p *patient) endless(value string) string {
	count, condition, carried := p.fresh("count"), p.fresh("condition"), p.fresh("carried")
	out, same := p.fresh("out"), p.fresh("same")
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
	return p.node("Loop", []string{"", p.op("Equal", p.int(1), p.int(1)), value}, onnx.GraphAttr("body", body))
}

// hidden adds a condition made from value to the mask.
func (p *patient) hidden(value func() string) {
	p.visibleIf(func() string {
		largest := p.node("ReduceMax", []string{p.cast(value(), onnx.Float)}, onnx.IntAttr("keepdims", 0))
		return p.op("Greater", largest, p.float(-1))
	})
}

// TestHostileGraphs: nothing that a graph asks for ends the process or takes
// the machine's memory; the site is kept with the reason.
func TestHostileGraphs(t *testing.T) {
	t.Parallel()
	testruntime.Require(t)
	for _, c := range []struct {
		name   string
		change func(p *patient)
		reason string // of both sites, or what Rewrite's error says
	}{
		{"a range of terabytes", func(p *patient) {
			p.hidden(func() string { return p.op("Range", p.int(0), p.int(1<<40), p.int(1)) })
		}, "would make a tensor"},
		{"zeros of terabytes", func(p *patient) {
			p.hidden(func() string { return p.op("ConstantOfShape", p.ints(1<<20, 1<<20)) })
		}, "would make a tensor"},
		{"zeros of eight gigabytes", func(p *patient) {
			p.hidden(func() string { return p.op("ConstantOfShape", p.ints(1<<31)) })
		}, "would make a tensor"},
		{"an expansion of eight gigabytes", func(p *patient) {
			p.hidden(func() string { return p.op("Expand", p.float(1), p.op("Mul", p.ints(1<<16, 1<<14), p.ints(2, 1))) })
		}, "would make a tensor"},
		{"tiles of terabytes", func(p *patient) {
			p.hidden(func() string { return p.op("Tile", p.floats([]int64{1}, 1), p.ints(1<<40)) })
		}, "would make a tensor"},
		{"padding of terabytes", func(p *patient) {
			p.hidden(func() string { return p.op("Pad", p.floats([]int64{1}, 1), p.ints(0, 1<<40)) })
		}, "would make a tensor"},
		{"a product of terabytes", func(p *patient) {
			p.hidden(func() string {
				line := p.op("Range", p.int(0), p.int(1<<20), p.int(1))
				return p.op("Mul", p.op("Unsqueeze", line, p.ints(0)), p.op("Unsqueeze", line, p.ints(1)))
			})
		}, "would make a tensor"},
		{"a matrix of terabytes", func(p *patient) {
			p.hidden(func() string {
				line := p.cast(p.op("Unsqueeze", p.op("Range", p.int(0), p.int(1<<20), p.int(1)), p.ints(0)), onnx.Float)
				return p.op("MatMul", p.node("Transpose", []string{line}, onnx.IntsAttr("perm", 1, 0)), line)
			})
		}, "would make a tensor"},
		{"a range as long as the past squared", func(p *patient) {
			p.hidden(func() string {
				past := p.size("past_key_values.0.key", 2)
				return p.op("Range", p.int(0), p.op("Add", p.op("Mul", past, past), p.int(1)), p.int(1))
			})
		}, "would make a tensor"},
		{"an endless loop", func(p *patient) {
			p.hidden(func() string { return p.endless(p.int(1)) })
		}, "is a Loop, which is not evaluated"},
		{"an endless loop in a branch", func(p *patient) {
			p.hidden(func() string {
				before := len(p.Graph.Nodes)
				out := p.endless(p.int(1))
				inner := p.Graph.Nodes[before:]
				branch := &onnx.Graph{Name: "branch", Nodes: append([]*onnx.Node{}, inner...), Outputs: []*onnx.ValueInfo{{Name: out, Type: onnx.Int64}}}
				p.Graph.Nodes = p.Graph.Nodes[:before]
				other := p.fresh("other")
				rest := &onnx.Graph{Name: "rest", Nodes: []*onnx.Node{onnx.NewNode("Identity", []string{p.int(1)}, []string{other})}, Outputs: []*onnx.ValueInfo{{Name: other, Type: onnx.Int64}}}
				return p.node("If", []string{p.op("Equal", p.int(1), p.int(1))}, onnx.GraphAttr("then_branch", branch), onnx.GraphAttr("else_branch", rest))
			})
		}, "is a Loop, which is not evaluated"},
		{"an endless loop whose shape is read", func(p *patient) {
			p.hidden(func() string { return p.op("Shape", p.endless(p.ints(1, 2))) })
		}, "is a Loop, which is not evaluated"},
		{"an op of another library", func(p *patient) {
			p.hidden(func() string {
				v := p.op("Evil", p.int(1))
				p.Graph.Nodes[len(p.Graph.Nodes)-1].Domain = "evil.library"
				p.RequireOpset("evil.library", 1)
				return v
			})
		}, "is of the domain \"evil.library\""},
		{"an attribute that ends ONNX Runtime's process", func(p *patient) {
			p.hidden(func() string {
				x := p.floats([]int64{1, 1, 8}, make([]float32, 8)...)
				v := p.node("GroupQueryAttention", []string{x, x, x, "", "", p.cast(p.ints(1), onnx.Int32), p.cast(p.int(1), onnx.Int32)},
					onnx.IntAttr("num_heads", 1), onnx.IntAttr("kv_num_heads", 1<<40))
				n := p.Graph.Nodes[len(p.Graph.Nodes)-1]
				n.Domain = "com.microsoft"
				n.Outputs = append(n.Outputs, v+"/key", v+"/value")
				p.RequireOpset("com.microsoft", 1)
				return v
			})
		}, "its attribute kv_num_heads is 1099511627776"},
		{"a quotient that ends ONNX Runtime's process", func(p *patient) {
			p.hidden(func() string { return p.op("Div", p.int(math.MinInt64), p.int(-1)) })
		}, "ended its own process"},
		{"an axis out of all bounds", func(p *patient) {
			for _, s := range p.sites {
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
				name := p.fresh("input")
				p.Graph.AddInput(onnx.NewValueInfo(name, onnx.Int64, onnx.Dim{Value: onnx.UnknownDim}, onnx.Dim{Value: onnx.UnknownDim}))
				p.hidden(func() string {
					return p.op("Add", name, p.op("Squeeze", p.op("Shape", p.op("MatMul", p.cast(name, onnx.Float), p.floats([]int64{7, 1}, make([]float32, 7)...)))))
				})
			}
		}, "readings of its input shapes"},
		{"a value that nobody makes", func(p *patient) {
			p.hidden(func() string { return "nowhere" })
		}, "nowhere"},
		{"a product of one operand", func(p *patient) {
			p.scores(func(old string) string { return p.op("Add", old, p.op("MatMul", old)) })
		}, "has 1 inputs, at least 2 are needed"},
		{"a cycle", func(p *patient) {
			first := p.rotation(p.sites[0].Query.Operand)
			first.cos.Inputs[1] = first.sum.Outputs[0]
		}, "depends on its own output"},
		{"two nodes that make one value", func(p *patient) {
			again := p.sites[0].Softmax.Clone()
			p.Graph.InsertNode(nil, again)
		}, "is made by two nodes"},
	} {
		t.Run(c.name, func(t *testing.T) {
			p := newPatient(t, "llama__dynamo18-eager")
			c.change(p)
			path := filepath.Join(t.TempDir(), "hostile.onnx")
			if err := p.Save(path, onnx.SaveOptions{}); err != nil {
				t.Fatal(err)
			}
			report, err := rewrite.Rewrite(context.Background(), openModel(t, path), rewrite.Options{Worker: []string{os.Args[0]}, AllowKept: true})
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
