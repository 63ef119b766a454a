package main

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/rogpeppe/go-internal/testscript"
	"google.golang.org/protobuf/proto"

	"github.com/rope-rewrite/rope-rewrite/onnx"
	"github.com/rope-rewrite/rope-rewrite/onnx/onnxpb"
)

// spoil writes a changed copy of a model:
//
//	site-N     the scores of the N-th attention layer go through a sine: it cannot be measured
//	names      every name but those of inputs and outputs has 10,000 characters
//	inputs     those of inputs and outputs, too
//	unmade     names, and a node reads a value that nothing makes
//	locations  as stripped, the file's name of 10,000 characters
//	unrotated  every angle is zero: attention without rotation
//	shift      the scores of the first attention are doubled: another model, which runs
//	escapes    site-0, its names with control characters and those that turn text
//	long       site-0, its names of 200,000 characters
//	bare       no node but an identity: no attention
//	greedy     the scores of the first attention meet a zero that a gigabyte is made for
//	dangling   a node that nothing needs reads what nothing makes
//	stripped   large weights are external data that is not there
//	outside    large weights are external data, weights.bin beside it
//	old        of an op library: one that says to know no newer specification than 1
func spoil(ts *testscript.TestScript, neg bool, args []string) {
	switch args[0] {
	case "stripped", "outside":
		strip(ts, ts.MkAbs(args[1]), ts.MkAbs(args[2]), "weights.bin", args[0] == "outside")
		return
	case "locations":
		strip(ts, ts.MkAbs(args[1]), ts.MkAbs(args[2]), longName, false)
		return
	case "old":
		mark := regexp.MustCompile(`(rope_ops version=[^ ]+ spec=)[0-9]+`)
		library := mark.ReplaceAll([]byte(ts.ReadFile(args[1])), []byte("${1}1"))
		ts.Check(os.WriteFile(ts.MkAbs(args[2]), library, 0o777))
		return
	}
	m, err := onnx.Open(ts.MkAbs(args[1]))
	ts.Check(err)
	defer m.Close()
	g := m.Graph
	switch args[0] {
	case "site-0":
		before(g, nth(ts, g, "Softmax", 0), "Sin")
	case "site-1":
		before(g, nth(ts, g, "Softmax", 1), "Sin")
	case "escapes", "long":
		n := nth(ts, g, "Softmax", 0)
		n.Name = map[string]string{"escapes": "\x1b]0;title\x07\u009b31m\u202e", "long": strings.Repeat("long ", 40_000)}[args[0]]
		before(g, n, "Sin")
		g.AddInput(onnx.NewValueInfo("unread/"+n.Name, onnx.Int64, onnx.Dim{Param: n.Name}))
		m.SetMetadata(n.Name, n.Name)
		m.ProducerName = n.Name
	case "names", "inputs", "unmade":
		lengthen(m, args[0] != "names")
		if args[0] == "unmade" {
			nth(ts, g, "Softmax", 0).Inputs[0] += longName
		}
	case "unrotated":
		for _, n := range g.Nodes {
			if n.OpType == "Sin" || n.OpType == "Cos" {
				before(g, n, "Sub")
			}
		}
	case "shift":
		before(g, nth(ts, g, "Softmax", 0), "Add")
	case "bare":
		g.RemoveNodes(func(*onnx.Node) bool { return true })
		g.RemoveInitializers(func(*onnx.Tensor) bool { return true })
		for _, o := range g.Outputs[1:] {
			g.RemoveOutput(o.Name)
		}
		for _, i := range g.Inputs[1:] {
			g.RemoveInput(i.Name)
		}
		g.ValueInfo = nil
		g.InsertNode(nil, onnx.NewNode("Identity", []string{g.Inputs[0].Name}, []string{g.Outputs[0].Name}))
	case "greedy":
		n := nth(ts, g, "Softmax", 0)
		g.AddInitializer(onnx.NewTensor("greedy/size", onnx.Int64, []int64{1}, []byte{0, 0, 0, 16, 0, 0, 0, 0})) // 2²⁸
		g.InsertNode(n, onnx.NewNode("ConstantOfShape", []string{"greedy/size"}, []string{"greedy/zeros"}))
		g.InsertNode(n, onnx.NewNode("ReduceMax", []string{"greedy/zeros"}, []string{"greedy/zero"}, onnx.IntAttr("keepdims", 0)))
		g.InsertNode(n, onnx.NewNode("Add", []string{n.Inputs[0], "greedy/zero"}, []string{"greedy/scores"}))
		n.Inputs[0] = "greedy/scores"
	case "dangling":
		n := onnx.NewNode("Neg", []string{"nowhere"}, []string{"unread"})
		n.Name = "the-last"
		g.InsertNode(nil, n)
	default:
		ts.Fatalf("spoil %s?", args[0])
	}
	ts.Check(m.Save(ts.MkAbs(args[2]), onnx.SaveOptions{}))
}

// longName is what spoil appends to names. Nothing else that the command says has twenty of its letters in a row.
var longName = strings.Repeat("q", 10_000)

// repeated is a part of longName that is longer than what a message may have of it, on one line or on several.
var repeated = regexp.MustCompile(`(?:q\s*){101}`)

// lengthen makes every name of a model long: nodes, values, weights, metadata, and those of inputs and outputs or not.
func lengthen(m *onnx.Model, ends bool) {
	g := m.Graph
	named := map[string]string{"": ""}
	if !ends {
		for _, v := range slices.Concat(g.Inputs, g.Outputs) {
			named[v.Name] = v.Name
		}
	}
	long := func(name string) string {
		if _, ok := named[name]; !ok {
			named[name] = name + "/" + longName + "/" + name
		}
		return named[name]
	}
	for _, n := range g.Nodes {
		n.Name = n.Name + longName + n.OpType
		for i := range n.Inputs {
			n.Inputs[i] = long(n.Inputs[i])
		}
		for i := range n.Outputs {
			n.Outputs[i] = long(n.Outputs[i])
		}
	}
	for _, t := range g.Initializers {
		t.Name = long(t.Name)
	}
	for _, v := range slices.Concat(g.Inputs, g.Outputs, g.ValueInfo) {
		v.Name = long(v.Name)
	}
	g.Name, m.ProducerName = longName, longName
	m.SetMetadata("key"+longName, "value"+longName)
}

// strip makes large weights external data, which it writes or leaves away.
func strip(ts *testscript.TestScript, from, to, location string, keep bool) {
	data, err := os.ReadFile(from)
	ts.Check(err)
	m := new(onnxpb.ModelProto)
	ts.Check(proto.Unmarshal(data, m))
	var weights []byte
	for _, w := range m.Graph.Initializer {
		if len(w.RawData) <= 4096 {
			continue
		}
		entries := map[string]string{"location": location}
		if keep {
			entries["offset"], entries["length"] = fmt.Sprint(len(weights)), fmt.Sprint(len(w.RawData))
			weights = append(weights, w.RawData...)
		}
		w.RawData, w.DataLocation, w.ExternalData = nil, onnxpb.TensorProto_EXTERNAL.Enum(), nil
		for _, key := range slices.Sorted(maps.Keys(entries)) {
			w.ExternalData = append(w.ExternalData, &onnxpb.StringStringEntryProto{Key: proto.String(key), Value: proto.String(entries[key])})
		}
	}
	data, err = proto.Marshal(m)
	ts.Check(err)
	ts.Check(os.WriteFile(to, data, 0o666))
	if keep {
		ts.Check(os.WriteFile(filepath.Join(filepath.Dir(to), location), weights, 0o666))
	}
}

// before puts an op of one argument, or of the same argument twice, before n.
func before(g *onnx.Graph, n *onnx.Node, opType string) {
	inputs := []string{n.Inputs[0]}
	if opType != "Sin" {
		inputs = append(inputs, n.Inputs[0])
	}
	changed := n.Inputs[0] + "/" + opType + "/" + n.Name
	g.InsertNode(n, onnx.NewNode(opType, inputs, []string{changed}))
	n.Inputs[0] = changed
}

func nth(ts *testscript.TestScript, g *onnx.Graph, opType string, i int) *onnx.Node {
	for _, n := range g.Nodes {
		if n.OpType == opType {
			if i == 0 {
				return n
			}
			i--
		}
	}
	ts.Fatalf("the model has too few nodes of %s", opType)
	return nil
}
