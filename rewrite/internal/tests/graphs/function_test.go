package graphs_test

import (
	"context"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/rope-rewrite/rope-rewrite/internal/engine"
	"github.com/rope-rewrite/rope-rewrite/internal/testruntime"
	"github.com/rope-rewrite/rope-rewrite/onnx"
	"github.com/rope-rewrite/rope-rewrite/rewrite"
	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/dim"
	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/ir"
	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/tests/kit"
)

// outline makes a function of a run of nodes and puts a call in their place.
func (p *patient) outline(name string, nodes []*onnx.Node, from, to int) (rest []*onnx.Node, f *onnx.Function) {
	body := nodes[from:to]
	f = &onnx.Function{Name: name, Domain: "own", Nodes: slices.Clone(body), Opsets: p.Opsets()}
	made, outside := map[string]bool{}, map[string]bool{}
	for i, n := range nodes {
		for v := range ir.Uses(n) {
			outside[v] = outside[v] || i < from || i >= to
		}
	}
	for _, v := range p.Graph.Outputs {
		outside[v.Name] = true
	}
	for _, f := range p.Functions {
		for _, v := range f.Outputs {
			outside[v] = true
		}
	}
	call := onnx.NewNode(name, nil, nil)
	call.Domain, call.Name = "own", p.Fresh(name)
	for _, n := range body {
		for v := range ir.Uses(n) {
			if !made[v] && !slices.Contains(f.Inputs, v) {
				f.Inputs = append(f.Inputs, v)
			}
		}
		for _, v := range n.Outputs {
			made[v] = true
			if outside[v] {
				f.Outputs = append(f.Outputs, v)
			}
		}
	}
	call.Inputs, call.Outputs = slices.Clone(f.Inputs), slices.Clone(f.Outputs)
	return slices.Concat(nodes[:from:from], []*onnx.Node{call}, nodes[to:]), f
}

// inFunctions puts each attention into a function, its softmax's axis into an
// attribute, a part of it into a function of its own, and the norm before the
// first layer too.
func (p *patient) inFunctions() {
	p.RequireOpset("own", 1)
	for i, s := range p.Sites {
		first := slices.IndexFunc(p.Graph.Nodes, func(n *onnx.Node) bool { return slices.Contains(n.Outputs, s.Query.Boundary) })
		last := slices.Index(p.Graph.Nodes, s.ValueMatMul)
		nodes, attention := p.outline("Attention"+string(rune('0'+i)), p.Graph.Nodes, first+1, last+1)
		p.Graph.Nodes = nodes
		p.Functions = append(p.Functions, attention)
		at := slices.Index(attention.Nodes, s.Softmax)
		outer, inner := p.outline("Inner"+string(rune('0'+i)), attention.Nodes, at/2, at+1)
		attention.Nodes = outer
		p.Functions = append(p.Functions, inner)
		for _, n := range inner.Nodes {
			if n.OpType == "Softmax" {
				n.SetAttribute(&onnx.Attribute{Name: "axis", RefName: "along", Type: onnx.AttrInt})
			}
		}
		inner.AttributeNames = []string{"along"}
		outer[at/2].SetAttribute(onnx.IntAttr("along", -1))
	}
	pow := slices.Index(p.Graph.Nodes, p.First("Pow"))
	nodes, norm := p.outline("Norm", p.Graph.Nodes, pow, pow+4)
	p.Graph.Nodes = nodes
	p.Functions = append(p.Functions, norm)
}

// TestFunctions: attention that a model hides in functions of its own is measured,
// and calls of which nothing is replaced stay calls.
func TestFunctions(t *testing.T) {
	t.Parallel()
	testruntime.Require(t)
	eng, err := engine.NewLocal(engine.Config{Threads: 1})
	if err != nil {
		t.Fatal(err)
	}
	defer eng.Close()
	for name, past := range map[string]int64{"llama__dynamo18": 9, "llama__ts17": 0} {
		t.Run(name, func(t *testing.T) {
			p := newPatient(t, name)
			p.inFunctions()
			path := p.Saved()
			m := kit.OpenModel(t, path)
			report, err := kit.Rewrite(context.Background(), m, rewrite.Options{})
			if err != nil {
				t.Fatal(err)
			}
			for _, s := range report.Sites {
				if s.Status != rewrite.Rewritten {
					t.Errorf("layer %d is unchanged: %s", s.Layer, s.Reason)
				}
			}
			var calls []string
			for _, n := range m.Graph.Nodes {
				if n.Domain == "own" {
					calls = append(calls, n.OpType)
				}
			}
			if !slices.Equal(calls, []string{"Norm"}) {
				t.Errorf("the functions %v are called, the norm alone was expected", calls)
			}
			patched := filepath.Join(t.TempDir(), "patched.onnx")
			if err := m.Save(patched, onnx.SaveOptions{}); err != nil {
				t.Fatal(err)
			}
			agree(t, eng, path, patched, dim.Point{B: 2, L: 7, P: past}, 2)
		})
	}
}

// TestFunctionsStay: a model of which nothing is rewritten has its calls as before.
func TestFunctionsStay(t *testing.T) {
	testruntime.Require(t)
	p := newPatient(t, "llama__ts17")
	p.inFunctions()
	for _, f := range p.Functions {
		for _, n := range f.Nodes {
			if n.OpType == "Softmax" {
				n.OpType = "LogSoftmax" // no attention that is known
				n.Attributes = nil
			}
		}
	}
	m := kit.OpenModel(t, p.Saved())
	before, err := m.Marshal()
	if err != nil {
		t.Fatal(err)
	}
	report, err := kit.Rewrite(context.Background(), m, rewrite.Options{AllowUnchanged: true})
	if err != nil {
		t.Fatal(err)
	}
	if len(report.Sites) != 1 || report.Rewritten() > 0 || !strings.Contains(report.Sites[0].Reason, "rotates hidden states by position") {
		t.Errorf("the sites are %+v; one that is kept was expected", report.Sites)
	}
	after, err := m.Marshal()
	if err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(before, after) {
		t.Error("the model is changed")
	}
}

// TestForeignFunctions: functions that cannot be inlined are not passed over in silence.
func TestForeignFunctions(t *testing.T) {
	testruntime.Require(t)
	p := newPatient(t, "llama__dynamo18-nocache")
	for _, n := range p.All("Softmax") {
		n.Domain = "local"
	}
	p.RequireOpset("local", 1)
	p.Functions = []*onnx.Function{{
		Name: "Softmax", Domain: "local", Inputs: []string{"x"}, Outputs: []string{"y"}, AttributeNames: []string{"axis"},
		Nodes: []*onnx.Node{onnx.NewNode("Softmax", []string{"x"}, []string{"y"})}, Opsets: []onnx.Opset{{Domain: "", Version: 13}},
	}}
	report, err := kit.Rewrite(context.Background(), kit.OpenModel(t, p.Saved()), rewrite.Options{AllowUnchanged: true})
	if err != nil {
		t.Fatal(err)
	}
	if len(report.Sites) != 1 || report.Rewritten() > 0 || !strings.Contains(report.Sites[0].Reason, "2 nodes call them") {
		t.Errorf("the sites are %+v; one that is kept was expected", report.Sites)
	}
	if !strings.Contains(strings.Join(report.Warnings, "\n"), "version 13") {
		t.Errorf("the warnings are %q", report.Warnings)
	}
}
