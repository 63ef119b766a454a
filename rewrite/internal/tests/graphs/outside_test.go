package graphs_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/rope-rewrite/rope-rewrite/internal/testruntime"
	"github.com/rope-rewrite/rope-rewrite/internal/testsample"
	"github.com/rope-rewrite/rope-rewrite/onnx"
	"github.com/rope-rewrite/rope-rewrite/rewrite"
	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/tests/kit"
	"github.com/rope-rewrite/rope-rewrite/rope"
)

// asked are the columns of TestReadOutside.
var asked = []struct {
	name string
	opts func(t *testing.T) rewrite.Options
}{
	{"nothing", func(*testing.T) rewrite.Options { return rewrite.Options{} }},
	{"a scaling", func(t *testing.T) rewrite.Options {
		return rewrite.Options{Edits: []rope.Spec{kit.Spec(t, rope.ScalingAxis, "linear:factor=4")}}
	}},
	{"a mask", func(t *testing.T) rewrite.Options {
		return rewrite.Options{Edits: []rope.Spec{kit.Spec(t, rope.MaskAxis, "sliding-window:window=4")}}
	}},
	{"a raw cache", func(*testing.T) rewrite.Options { return rewrite.Options{Cache: rewrite.Cache{Raw: true}} }},
	{"a scaling, onnx", func(t *testing.T) rewrite.Options {
		return rewrite.Options{Edits: []rope.Spec{kit.Spec(t, rope.ScalingAxis, "linear:factor=4")}, Target: rewrite.PlainONNX}
	}},
	{"a mask, onnx", func(t *testing.T) rewrite.Options {
		return rewrite.Options{Edits: []rope.Spec{kit.Spec(t, rope.MaskAxis, "sliding-window:window=4")}, Target: rewrite.PlainONNX}
	}},
}

// TestReadOutside: a layer is left unchanged, with the reason, where a method changes a value of it that something
// else reads. In its own nodes a scaling reaches whatever is made of the scores. Without a method nothing changes.
func TestReadOutside(t *testing.T) {
	testruntime.Require(t)
	const (
		done = ""
		out  = "is an output of the graph"
		read = "is read by"
	)
	type row struct {
		name   string
		change func(p *patient)
		want   [6]string // of layer 0, by the columns of asked
	}
	for _, c := range testsample.Of(t, []row{
		{"probabilities given", func(p *patient) { p.Output(p.Sites[0].Softmax.Outputs[0]) }, [6]string{done, out, out, done, done, done}},
		{"probabilities read", func(p *patient) { p.Output(p.Op("Neg", p.Sites[0].Softmax.Outputs[0])) }, [6]string{done, read, read, done, done, done}},
		{"scores given", func(p *patient) { p.Output(p.Sites[0].Scores()) }, [6]string{done, out, done, done, done, done}},
		{"masked scores given", func(p *patient) { p.Output(p.Sites[0].SoftmaxInput()) }, [6]string{done, out, out, done, done, out}},
		{"the logarithm of their sum", func(p *patient) {
			p.Output(p.Node("ReduceLogSumExp", []string{p.Sites[0].SoftmaxInput()}, onnx.IntsAttr("axes", -1)))
		}, [6]string{done, read, read, done, done, read}},
		{"new keys given", func(p *patient) { p.Output(p.Sites[0].Key.Cached()) }, [6]string{done, out, done, out, done, done}},
		{"new keys read", func(p *patient) { p.Output(p.Op("Mul", p.Sites[0].Key.Cached(), p.Float(3))) }, [6]string{done, read, done, read, read, done}},
		{"cached keys read", func(p *patient) { p.Output(p.Op("Neg", p.Sites[0].Key.Cache.Present)) }, [6]string{done, read, done, read, read, done}},
		{"rotated queries given", func(p *patient) { p.Output(p.Sites[0].Query.Operand) }, [6]string{done, out, done, done, done, done}},
		{"rotated queries read", func(p *patient) { p.Output(p.Op("Neg", p.Sites[0].Query.Operand)) }, [6]string{done, read, done, done, read, done}},
		{"in a branch", func(p *patient) {
			g := func(name string) *onnx.Attribute {
				return onnx.GraphAttr(name, &onnx.Graph{Name: name, Nodes: []*onnx.Node{onnx.NewNode("Neg", []string{p.Sites[0].Key.Cached()}, []string{name})}, Outputs: []*onnx.ValueInfo{onnx.NewValueInfo(name, onnx.Float)}})
			}
			p.Output(p.Node("If", []string{p.Op("Equal", p.Int(1), p.Int(1))}, g("then_branch"), g("else_branch")))
		}, [6]string{done, read, done, read, read, done}},
		{"in a function", func(p *patient) {
			p.Functions = append(p.Functions, &onnx.Function{Domain: "own", Name: "Less", Inputs: []string{"x"}, Outputs: []string{"y"}, Opsets: p.Opsets(),
				Nodes: []*onnx.Node{onnx.NewNode("Neg", []string{"x"}, []string{"y"})}})
			n := onnx.NewNode("Less", []string{p.Sites[0].Softmax.Outputs[0]}, []string{"less"})
			n.Domain = "own"
			p.RequireOpset("own", 1)
			p.Graph.InsertNode(nil, n)
			p.Output("less")
		}, [6]string{done, read, read, done, done, done}},
		{"a cosine given", func(p *patient) { p.Output(p.First("Cos").Outputs[0]) }, [6]string{done, out, done, done, out, done}},
		{"a cosine read", func(p *patient) {
			p.Output(p.Op("Mul", p.Op("ReduceMean", p.Sites[0].Value.Boundary), p.First("Cos").Outputs[0]))
		}, [6]string{done, read, done, done, read, done}},
		{"the mask given", func(p *patient) { p.Output(p.Up(p.Sites[0].SoftmaxInput(), "Add").Inputs[1]) }, [6]string{done, done, out, done, done, out}},
		{"the mask read", func(p *patient) {
			p.Output(p.Op("Mul", p.Op("ReduceMean", p.Sites[0].Value.Boundary), p.Up(p.Sites[0].SoftmaxInput(), "Add").Inputs[1]))
		}, [6]string{done, done, read, done, done, read}},
		{"what does not change", func(p *patient) {
			p.Output(p.Op("Shape", p.Sites[0].SoftmaxInput()))
			p.Output(p.Op("Mul", p.Sites[0].Output(), p.Float(2)))
			p.Output(p.Op("Neg", p.Sites[0].Key.Boundary))
			p.Output(p.Op("Neg", p.Sites[0].Value.Cached()))
		}, [6]string{}},
	}, 5) {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			p := newPatient(t, "llama__optimum")
			c.change(p)
			path := p.Saved()
			for i, a := range asked {
				report, err := kit.Rewrite(context.Background(), kit.OpenModel(t, path), a.opts(t))
				want := c.want[i]
				if want == done {
					if err != nil {
						t.Errorf("%s: %v: %s", a.name, err, report.Sites[0].Reason)
					}
					continue
				}
				says := err
				if errors.Is(err, rewrite.ErrPartial) {
					if s := report.Sites[0]; s.Status == rewrite.Unchanged && s.Kind == rewrite.ReadOutside {
						says = errors.New(s.Reason)
					}
				}
				if says == nil || !strings.Contains(says.Error(), want) {
					t.Errorf("%s: it says %v, %q was expected", a.name, says, want)
				}
			}
		})
	}
}

// TestValuesTurnToo: where the values of a layer are multiplied by its cosines as well (RoFormer's value_layer), a scaling
// reaches neither the layer nor its rotation alone; the other layer has its own. The positions come from the length.
func TestValuesTurnToo(t *testing.T) {
	testruntime.Require(t)
	p := newPatient(t, "llama__ts17")
	r := p.Rotation(p.Sites[0].Query.Operand)
	p.After(p.Sites[0].Value.Boundary, func(old string) string {
		return p.Op("Add", p.Op("Mul", old, r.Cos.Inputs[1]), p.Op("Mul", p.Op("Neg", old), r.Sin.Inputs[1]))
	})
	path := p.Saved()
	for i, want := range []struct {
		status rewrite.Status
		reason string
	}{{rewrite.Rotation, "the path of its value"}, {rewrite.Unchanged, "its rotation alone cannot be rewritten either: "}} {
		opts := asked[i].opts(t)
		opts.AllowUnchanged = true
		report, err := kit.Rewrite(context.Background(), kit.OpenModel(t, path), opts)
		if err != nil {
			t.Fatal(err)
		}
		if s := report.Sites[0]; s.Status != want.status || !strings.Contains(s.Reason, want.reason) {
			t.Errorf("%s: layer 0 is %s: %s", asked[i].name, s.Status, s.Reason)
		}
	}
}
