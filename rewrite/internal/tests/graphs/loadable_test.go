package graphs_test

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"google.golang.org/protobuf/proto"

	"github.com/rope-rewrite/rope-rewrite/internal/engine"
	"github.com/rope-rewrite/rope-rewrite/internal/testruntime"
	"github.com/rope-rewrite/rope-rewrite/onnx/onnxpb"
	"github.com/rope-rewrite/rope-rewrite/rewrite"
	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/graph"
	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/tests/kit"
)

// outside takes the data of the first large weight away and gives it entries of
// external data; it returns the weight's name.
func outside(t *testing.T, m *onnxpb.ModelProto, pairs ...string) string {
	t.Helper()
	for _, w := range m.Graph.Initializer {
		if len(w.RawData) < 4*graph.MaxKept {
			continue
		}
		w.RawData, w.DataLocation = nil, onnxpb.TensorProto_EXTERNAL.Enum()
		for i := 0; i < len(pairs); i += 2 {
			w.ExternalData = append(w.ExternalData, &onnxpb.StringStringEntryProto{Key: &pairs[i], Value: &pairs[i+1]})
		}
		return w.GetName()
	}
	t.Fatal("no weight is large")
	return ""
}

func relu(from, to string) *onnxpb.NodeProto {
	return &onnxpb.NodeProto{OpType: proto.String("Relu"), Name: proto.String("the-new-node"), Input: []string{from}, Output: []string{to}}
}

// TestModelsThatCannotLoad: what ONNX Runtime refuses to load is no model of
// which anything is proven, however little the attention has to do with it.
func TestModelsThatCannotLoad(t *testing.T) {
	testruntime.Require(t)
	const bytes = 1 << 20 // of weights.bin, more than any weight has
	real, err := engine.NewLocal(engine.Config{Threads: 1})
	if err != nil {
		t.Fatal(err)
	}
	value := func(name string) *onnxpb.ValueInfoProto { return &onnxpb.ValueInfoProto{Name: &name} }
	for _, c := range []struct {
		name   string
		change func(m *onnxpb.ModelProto) string // what the error must name
		says   string                            // empty where the model loads
	}{
		{"whole", func(m *onnxpb.ModelProto) string { return outside(t, m, "location", "weights.bin", "offset", "4096") }, ""},
		{"data missing", func(m *onnxpb.ModelProto) string { return outside(t, m, "location", "none.bin") }, "is missing beside"},
		{"data too short", func(m *onnxpb.ModelProto) string {
			return outside(t, m, "location", "weights.bin", "offset", "1048572")
		}, "too few"},
		{"data beyond 63 bits", func(m *onnxpb.ModelProto) string {
			return outside(t, m, "location", "weights.bin", "offset", "9223372036854775807")
		}, "too few"},
		{"another length", func(m *onnxpb.ModelProto) string {
			return outside(t, m, "location", "weights.bin", "length", "4")
		}, "external data has 4 bytes"},
		{"data outside", func(m *onnxpb.ModelProto) string {
			return outside(t, m, "location", "../weights.bin")
		}, "refused"},
		{"data of no use", func(m *onnxpb.ModelProto) string {
			name := outside(t, m, "location", "none.bin")
			for _, n := range m.Graph.Node {
				for i, v := range n.Input {
					if v == name {
						n.Input[i] = name + "/again"
					}
				}
			}
			for _, w := range m.Graph.Initializer {
				if w.GetName() == name {
					m.Graph.Initializer = append(m.Graph.Initializer, &onnxpb.TensorProto{Name: proto.String(name + "/again"), Dims: w.Dims, DataType: w.DataType,
						RawData: make([]byte, 4*w.Dims[0]*w.Dims[1])})
					break
				}
			}
			return ""
		}, ""},
		{"short data inside", func(m *onnxpb.ModelProto) string {
			w := m.Graph.Initializer[0]
			w.RawData = append([]byte{0}, w.RawData...)
			return w.GetName()
		}, "bytes of data"},
		{"no data inside", func(m *onnxpb.ModelProto) string {
			name := outside(t, m)
			for _, w := range m.Graph.Initializer {
				w.DataLocation = nil
			}
			return name
		}, "its data is missing"},
		{"an input of a node", func(m *onnxpb.ModelProto) string {
			m.Graph.Node = append(m.Graph.Node, relu("nowhere", "unread"))
			return `(Relu "the-new-node") reads "nowhere"`
		}, "model is broken"},
		{"an output of the graph", func(m *onnxpb.ModelProto) string {
			m.Graph.Output = append(m.Graph.Output, value("nowhere"))
			return `the output "nowhere"`
		}, "model is broken"},
		{"an input of a node in a branch", func(m *onnxpb.ModelProto) string {
			choose(m, relu("nowhere", "then"), "then")
			return `(If "the-choice"): node 0 (Relu "the-new-node") reads "nowhere"`
		}, "model is broken"},
		{"a branch that gives a value around it", func(m *onnxpb.ModelProto) string {
			choose(m, relu("logits", "then"), "logits")
			return `the output "logits"`
		}, "model is broken"},
		{"a branch that reads a value around it", func(m *onnxpb.ModelProto) string {
			choose(m, relu("logits", "then"), "then")
			return ""
		}, ""},
		{"nodes in another order", func(m *onnxpb.ModelProto) string {
			m.Graph.Node = append([]*onnxpb.NodeProto{relu("logits", "unread")}, m.Graph.Node...)
			return ""
		}, ""},
		{"an input in a function", func(m *onnxpb.ModelProto) string {
			call := relu("logits", "unread")
			*call.OpType, call.Domain = "Own", proto.String("own")
			m.Graph.Node = append(m.Graph.Node, call)
			opset := &onnxpb.OperatorSetIdProto{Domain: proto.String("own"), Version: proto.Int64(1)}
			m.OpsetImport = append(m.OpsetImport, opset)
			m.Functions = append(m.Functions, &onnxpb.FunctionProto{Name: proto.String("Own"), Domain: proto.String("own"), OpsetImport: m.OpsetImport,
				Input: []string{"x"}, Output: []string{"y"}, Node: []*onnxpb.NodeProto{relu("nowhere", "y")}})
			return `function "Own": node 0 (Relu "the-new-node") reads "nowhere"`
		}, "model is broken"},
	} {
		t.Run(c.name, func(t *testing.T) {
			m := parsed(t, "../../../../testdata/models/llama__dynamo18-eager/model.onnx")
			names := c.change(m)
			data, err := proto.Marshal(m)
			if err != nil {
				t.Fatal(err)
			}
			folder := t.TempDir()
			path := filepath.Join(folder, "model.onnx")
			for file, data := range map[string][]byte{path: data, filepath.Join(folder, "weights.bin"): make([]byte, bytes)} {
				if err := os.WriteFile(file, data, 0o644); err != nil {
					t.Fatal(err)
				}
			}
			session, err := real.Load(context.Background(), engine.Model{Path: path, Inputs: []string{"input_ids"}, Outputs: []string{"logits"}})
			if (err == nil) != (c.says == "") {
				t.Fatalf("ONNX Runtime: %v", err)
			}
			if err == nil {
				defer session.Close()
			}
			measured := false
			report, err := kit.Rewrite(context.Background(), kit.OpenModel(t, path), rewrite.Options{Progress: func(string) { measured = true }})
			if c.says == "" {
				if err != nil || report.Rewritten() != 2 {
					t.Fatalf("%d sites rewritten, error %v", report.Rewritten(), err)
				}
				return
			}
			if err == nil || !strings.Contains(err.Error(), names) || !strings.Contains(err.Error(), c.says) || measured {
				t.Errorf("error %v, measured %t; one that names %q and says %q before anything is measured was expected", err, measured, names, c.says)
			}
		})
	}
}

// choose adds an If of which one branch is a node and gives a value.
func choose(m *onnxpb.ModelProto, n *onnxpb.NodeProto, gives string) {
	branch := func(name string, n *onnxpb.NodeProto, gives string) *onnxpb.AttributeProto {
		float := &onnxpb.TypeProto{Value: &onnxpb.TypeProto_TensorType{TensorType: &onnxpb.TypeProto_Tensor{ElemType: proto.Int32(1)}}}
		return &onnxpb.AttributeProto{Name: &name, Type: onnxpb.AttributeProto_GRAPH.Enum(), G: &onnxpb.GraphProto{
			Name: &name, Node: []*onnxpb.NodeProto{n}, Output: []*onnxpb.ValueInfoProto{{Name: &gives, Type: float}}}}
	}
	m.Graph.Initializer = append(m.Graph.Initializer, &onnxpb.TensorProto{Name: proto.String("the-condition"), DataType: proto.Int32(9), RawData: []byte{1}})
	m.Graph.Node = append(m.Graph.Node, &onnxpb.NodeProto{OpType: proto.String("If"), Name: proto.String("the-choice"), Input: []string{"the-condition"}, Output: []string{"chosen"},
		Attribute: []*onnxpb.AttributeProto{branch("then_branch", n, gives), branch("else_branch", relu("logits", "else"), "else")}})
}
