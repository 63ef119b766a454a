package onnx_test

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"google.golang.org/protobuf/proto"

	"github.com/rope-rewrite/rope-rewrite/onnx"
	"github.com/rope-rewrite/rope-rewrite/onnx/onnxpb"
)

func node(op string, inputs, outputs []string, attributes ...*onnxpb.AttributeProto) *onnxpb.NodeProto {
	return &onnxpb.NodeProto{OpType: proto.String(op), Input: inputs, Output: outputs, Attribute: attributes}
}

func tensor(name string) *onnxpb.TensorProto {
	return &onnxpb.TensorProto{Name: proto.String(name), DataType: proto.Int32(1), Dims: []int64{1}, FloatData: []float32{1}}
}

func sparse(name string) *onnxpb.SparseTensorProto {
	return &onnxpb.SparseTensorProto{Values: tensor(name), Dims: []int64{1},
		Indices: &onnxpb.TensorProto{DataType: proto.Int32(7), Dims: []int64{1}, Int64Data: []int64{0}}}
}

func value(name string) *onnxpb.ValueInfoProto {
	return &onnxpb.ValueInfoProto{Name: proto.String(name)}
}

func set(domain string, version int64) *onnxpb.OperatorSetIdProto {
	return &onnxpb.OperatorSetIdProto{Domain: proto.String(domain), Version: proto.Int64(version)}
}

func attribute(name string) *onnxpb.AttributeProto {
	return &onnxpb.AttributeProto{Name: proto.String(name), Type: onnxpb.AttributeProto_INT.Enum(), I: proto.Int64(1)}
}

func function(domain, name, overload string) *onnxpb.FunctionProto {
	return &onnxpb.FunctionProto{Domain: proto.String(domain), Name: proto.String(name), Overload: proto.String(overload)}
}

// branch is an If of two graphs.
func branch(then, otherwise *onnxpb.GraphProto) *onnxpb.NodeProto {
	graph := func(name string, g *onnxpb.GraphProto) *onnxpb.AttributeProto {
		return &onnxpb.AttributeProto{Name: proto.String(name), Type: onnxpb.AttributeProto_GRAPH.Enum(), G: g}
	}
	return node("If", []string{"c"}, []string{"chosen"}, graph("then_branch", then), graph("else_branch", otherwise))
}

// graphDoubles are the doubles that a graph can have, and what is said of each.
var graphDoubles = map[string]*onnxpb.GraphProto{
	`an initializer and another have the name "a"`:               {Initializer: []*onnxpb.TensorProto{tensor("a"), tensor("b"), tensor("a")}},
	`an initializer and a sparse initializer have the name "a"`:  {Initializer: []*onnxpb.TensorProto{tensor("a")}, SparseInitializer: []*onnxpb.SparseTensorProto{sparse("a")}},
	`a sparse initializer and another have the name "a"`:         {SparseInitializer: []*onnxpb.SparseTensorProto{sparse("a"), sparse("a")}},
	`an initializer and an output of a node have the name "a"`:   {Initializer: []*onnxpb.TensorProto{tensor("a")}, Node: []*onnxpb.NodeProto{node("Neg", []string{"x"}, []string{"a"})}},
	`a sparse initializer and an output of a node have the name`: {SparseInitializer: []*onnxpb.SparseTensorProto{sparse("a")}, Node: []*onnxpb.NodeProto{node("Neg", []string{"x"}, []string{"a"})}},
	`an input and an output of a node have the name "a"`:         {Input: []*onnxpb.ValueInfoProto{value("a")}, Node: []*onnxpb.NodeProto{node("Neg", []string{"x"}, []string{"a"})}},
	`an input and another have the name "a"`:                     {Input: []*onnxpb.ValueInfoProto{value("a"), value("a")}},
	`an output of the graph and another have the name "a"`:       {Output: []*onnxpb.ValueInfoProto{value("a"), value("a")}},
	`an output of a node and another have the name "a"`:          {Node: []*onnxpb.NodeProto{node("Neg", []string{"x"}, []string{"a"}), node("Exp", []string{"x"}, []string{"a"})}},
	`an output of a node and another have the name "b"`:          {Node: []*onnxpb.NodeProto{node("Split", []string{"x"}, []string{"b", "b"})}},
	`an attribute and another have the name "axis"`:              {Node: []*onnxpb.NodeProto{node("Concat", []string{"x"}, []string{"a"}, attribute("axis"), attribute("axis"))}},
}

// functionDoubles are those that a function can have beside those of its nodes.
var functionDoubles = map[string]*onnxpb.FunctionProto{
	`an input and another have the name "a"`:                  {Input: []string{"a", "a"}},
	`an output of the function and another have the name "a"`: {Output: []string{"a", "a"}},
	`an input and an output of a node have the name "a"`:      {Input: []string{"a"}, Node: []*onnxpb.NodeProto{node("Neg", []string{"a"}, []string{"a"})}},
	`an attribute and another have the name "k"`:              {Attribute: []string{"k"}, AttributeProto: []*onnxpb.AttributeProto{attribute("k")}},
	`an operator set and another have the name "d"`:           {OpsetImport: []*onnxpb.OperatorSetIdProto{set("d", 1), set("", 18), set("d", 2)}},
	`an operator set and another have the name "ai.onnx"`:     {OpsetImport: []*onnxpb.OperatorSetIdProto{set("ai.onnx", 18), set("", 13)}},
}

// TestDoubles: two things of one name are refused wherever a model can have them, when it is
// opened and when it is checked after a change.
func TestDoubles(t *testing.T) {
	models := map[string]map[string]*onnxpb.ModelProto{} // where → what is said → model
	add := func(where, said string, change func(*onnxpb.ModelProto)) {
		if models[where] == nil {
			models[where] = map[string]*onnxpb.ModelProto{}
		}
		m := smallModel()
		change(m)
		models[where][said] = m
	}
	inside := func(nodes ...*onnxpb.NodeProto) func(*onnxpb.ModelProto) {
		return func(m *onnxpb.ModelProto) {
			f := function("d", "f", "")
			f.Node = nodes
			m.Functions = []*onnxpb.FunctionProto{f}
		}
	}
	for said, g := range graphDoubles {
		add("the graph", said, func(m *onnxpb.ModelProto) { m.Graph = g })
		add("a graph in a node", said, func(m *onnxpb.ModelProto) {
			m.Graph.Node = append(m.Graph.Node, branch(&onnxpb.GraphProto{}, g))
		})
		add("a graph in a graph", said, func(m *onnxpb.ModelProto) {
			m.Graph.Node = append(m.Graph.Node, branch(&onnxpb.GraphProto{Node: []*onnxpb.NodeProto{branch(g, &onnxpb.GraphProto{})}}, &onnxpb.GraphProto{}))
		})
		add("a graph in a function", said, inside(branch(g, &onnxpb.GraphProto{})))
		if len(g.Node) > 0 && len(g.Input)+len(g.Initializer)+len(g.SparseInitializer) == 0 {
			add("a function", said, inside(g.Node...))
		}
	}
	for said, f := range functionDoubles {
		add("a function of its own", said, func(m *onnxpb.ModelProto) {
			f.Name = proto.String("f")
			m.Functions = []*onnxpb.FunctionProto{f}
		})
	}
	functions := func(list ...*onnxpb.FunctionProto) func(*onnxpb.ModelProto) {
		return func(m *onnxpb.ModelProto) { m.Functions = list }
	}
	add("the model", `an operator set and another have the name "ai.onnx"`, func(m *onnxpb.ModelProto) { m.OpsetImport = append(m.OpsetImport, set("ai.onnx", 13)) })
	add("the model", `an operator set and another have the name "d"`, func(m *onnxpb.ModelProto) { m.OpsetImport = append(m.OpsetImport, set("d", 1), set("d", 1)) })
	add("the model", `a function and another have the name "d:f:"`, functions(function("d", "f", ""), function("e", "f", ""), function("d", "f", "")))
	add("the model", `a function and another have the name "d:f:o"`, functions(function("d", "f", "o"), function("d", "f", ""), function("d", "f", "o")))
	add("the model", `an entry of the metadata and another have the name "k"`, func(m *onnxpb.ModelProto) {
		for _, v := range []string{"1", "2"} {
			m.MetadataProps = append(m.MetadataProps, &onnxpb.StringStringEntryProto{Key: proto.String("k"), Value: &v})
		}
	})
	for where, list := range models {
		for said, p := range list {
			_, err := onnx.Open(write(t, filepath.Join(t.TempDir(), "model.onnx"), message(p)))
			if err == nil || !strings.Contains(err.Error(), said) || !strings.Contains(err.Error(), "remove or rename one, or export the model again") {
				t.Errorf("%s: %s: the error is %v", where, said, err)
			}
			m, err := onnx.Parse(message(p))
			if err != nil {
				t.Fatal(err)
			}
			if err := m.CheckValues(); err == nil || !strings.Contains(err.Error(), said) {
				t.Errorf("%s: %s: a check says %v", where, said, err)
			}
		}
	}
	if n := len(models["a function"]); n != 3 {
		t.Errorf("%d doubles were tried in a function", n)
	}
}

// TestUsedAgain: names that may stand twice.
func TestUsedAgain(t *testing.T) {
	weights := func(name string) *onnxpb.GraphProto {
		return &onnxpb.GraphProto{Initializer: []*onnxpb.TensorProto{tensor(name)}, Node: []*onnxpb.NodeProto{node("Neg", []string{name}, []string{"r"})}, Output: []*onnxpb.ValueInfoProto{value("r")}}
	}
	for name, change := range map[string]func(*onnxpb.ModelProto){
		"the default of an input": func(m *onnxpb.ModelProto) {
			m.Graph.Input, m.Graph.Initializer = []*onnxpb.ValueInfoProto{value("x")}, []*onnxpb.TensorProto{tensor("x")}
		},
		"a sparse default": func(m *onnxpb.ModelProto) {
			m.Graph.Input, m.Graph.SparseInitializer = []*onnxpb.ValueInfoProto{value("x")}, []*onnxpb.SparseTensorProto{sparse("x")}
		},
		"weights of two branches": func(m *onnxpb.ModelProto) { m.Graph.Node = append(m.Graph.Node, branch(weights("a"), weights("a"))) },
		"weights inside and around": func(m *onnxpb.ModelProto) {
			m.Graph.Initializer = []*onnxpb.TensorProto{tensor("a")}
			m.Graph.Node = append(m.Graph.Node, branch(weights("a"), weights("b")))
		},
		"a branch's output named like the If's": func(m *onnxpb.ModelProto) {
			g := weights("a")
			g.Node[0].Output[0], g.Output[0].Name = "chosen", proto.String("chosen")
			m.Graph.Node = append(m.Graph.Node, branch(g, weights("b")))
		},
		"outputs that are left out": func(m *onnxpb.ModelProto) { m.Graph.Node[0].Output = []string{"y", "", ""} },
		"an output that is an input too": func(m *onnxpb.ModelProto) {
			m.Graph.Input, m.Graph.Output = []*onnxpb.ValueInfoProto{value("x")}, []*onnxpb.ValueInfoProto{value("x")}
		},
		"overloads, and other domains": func(m *onnxpb.ModelProto) {
			m.Functions = []*onnxpb.FunctionProto{function("d", "f", ""), function("d", "f", "o"), function("e", "f", "")}
		},
	} {
		m := smallModel()
		change(m)
		opened, err := onnx.Open(write(t, filepath.Join(t.TempDir(), "model.onnx"), message(m)))
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		opened.Close()
	}
}

// TestDoubledModels: the exports of testdata/doubles, of which ONNX Runtime reads other numbers
// than the file seems to have, are refused; that with a sparse constant for a dense one has no double.
func TestDoubledModels(t *testing.T) {
	folder := filepath.Join("..", "testdata", "doubles")
	files, err := os.ReadDir(folder)
	if err != nil {
		t.Fatal(err)
	}
	var opened []string
	for _, f := range files {
		m, err := onnx.Open(filepath.Join(folder, f.Name()))
		switch {
		case err == nil:
			m.Close()
			opened = append(opened, f.Name())
		case !strings.Contains(err.Error(), "have the name"):
			t.Errorf("%s: %v", f.Name(), err)
		}
	}
	if len(files) != 5 || !slices.Equal(opened, []string{"sparse_instead_row.onnx"}) {
		t.Errorf("of %d files these were opened: %q", len(files), opened)
	}
}
