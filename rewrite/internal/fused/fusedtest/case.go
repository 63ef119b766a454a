package fusedtest

import (
	"context"
	"encoding/json"
	"fmt"
	"math"
	"os"
	"slices"
	"testing"

	"github.com/rope-rewrite/rope-rewrite/internal/engine"
	"github.com/rope-rewrite/rope-rewrite/internal/testruntime"
	"github.com/rope-rewrite/rope-rewrite/onnx"
	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/fused"
)

// Case is one node with inputs and the outputs that they must give.
type Case struct {
	Name       string
	Domain     string
	OpType     string
	Opset      int64
	Attributes map[string]any // integers as whole numbers, floats as {"float": x}
	Inputs     []*Array       // nil is an absent input
	Outputs    []*Array
	NotRun     string // part of what ONNX Runtime says where it does not run the node
}

// Array is a tensor; Type is float, int64 or bool.
type Array struct {
	Type string
	Dims []int64
	Data []float64
}

// Read reads cases.
func Read(t testing.TB, path string) []Case {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	var cases []Case
	if err := json.Unmarshal(data, &cases); err != nil {
		t.Fatal(err)
	}
	if len(cases) == 0 {
		t.Fatalf("%s holds no cases", path)
	}
	return cases
}

// Node returns the case's node, with inputs i0, i1 … and outputs o0, o1 ….
func (c Case) Node(t testing.TB) *onnx.Node {
	t.Helper()
	n := onnx.NewNode(c.OpType, nil, nil)
	n.Name, n.Domain = "the node", c.Domain
	for i, a := range c.Inputs {
		name := ""
		if a != nil {
			name = fmt.Sprintf("i%d", i)
		}
		n.Inputs = append(n.Inputs, name)
	}
	for i := range c.Outputs {
		n.Outputs = append(n.Outputs, fmt.Sprintf("o%d", i))
	}
	for name, v := range c.Attributes {
		switch v := v.(type) {
		case float64:
			n.SetAttribute(onnx.IntAttr(name, int64(v)))
		case map[string]any:
			n.SetAttribute(onnx.FloatAttr(name, float32(v["float"].(float64))))
		default:
			t.Fatalf("attribute %s is %v", name, v)
		}
	}
	return n
}

// Context answers an adapter from the case's inputs.
func (c Case) Context() fused.Context {
	find := func(value string) *Array {
		for i, a := range c.Inputs {
			if a != nil && value == fmt.Sprintf("i%d", i) {
				return a
			}
		}
		return nil
	}
	return fused.Context{
		Opset: c.Opset,
		Rank: func(value string) (int, bool) {
			a := find(value)
			if a == nil {
				return 0, false
			}
			return len(a.Dims), true
		},
		Type: func(value string) onnx.DataType {
			if a := find(value); a != nil {
				return a.element()
			}
			return onnx.Undefined
		},
		Constant: func(string) *onnx.Tensor { return nil },
	}
}

func (a *Array) element() onnx.DataType {
	return map[string]onnx.DataType{"float": onnx.Float, "int64": onnx.Int64, "int32": onnx.Int32, "bool": onnx.Bool}[a.Type]
}

func (a *Array) tensor(t testing.TB) engine.Tensor {
	if a.Type == "float" {
		x := make([]float32, len(a.Data))
		for i, v := range a.Data {
			x[i] = float32(v)
		}
		return engine.Float32s(x, a.Dims...)
	}
	x := make([]int64, len(a.Data))
	for i, v := range a.Data {
		x[i] = int64(v)
	}
	out, err := engine.Integers(a.element(), x, a.Dims...)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// Check expands the node and expects of the expansion what the reference
// evaluator gave: at most twice the error of ONNX Runtime's kernel, or two units
// in the last place of the largest element.
func (c Case) Check(t *testing.T, a fused.Adapter) {
	testruntime.Require(t)
	n := c.Node(t)
	e, err := a.Expand(n, c.Context())
	if err != nil {
		t.Fatal(err)
	}
	expanded, err := c.run(t, e.Nodes, e.Constants)
	if err != nil {
		t.Fatal(err)
	}
	kernel, err := c.run(t, []*onnx.Node{n}, nil)
	switch {
	case c.NotRun == "" && err != nil:
		t.Fatal(err)
	case c.NotRun != "" && err == nil:
		t.Fatalf("ONNX Runtime runs the node; it was expected not to, because of %q", c.NotRun)
	}
	for i, want := range c.Outputs {
		name := n.Outputs[i]
		got := expanded[name]
		if !slices.Equal(got.Dims, want.Dims) {
			t.Errorf("output %d has the shape %v, %v was expected", i, got.Dims, want.Dims)
			continue
		}
		off, largest := distance(got.Values(), want.Data)
		own := 0.0
		if c.NotRun == "" {
			own, _ = distance(kernel[name].Values(), want.Data)
			if !(own <= 1e-6*max(largest, 1)) {
				t.Errorf("output %d of ONNX Runtime's kernel is off by %.3g itself: it means another op", i, own)
			}
		}
		if allowed := max(2*own, largest/(1<<22)); !(off <= allowed) {
			t.Errorf("output %d is off by %.3g, the kernel by %.3g", i, off, own)
		}
	}
}

func distance(got, want []float64) (off, largest float64) {
	for i, w := range want {
		if d := math.Abs(got[i] - w); d > off || math.IsNaN(d) {
			off = d
		}
		largest = max(largest, math.Abs(w))
	}
	return off, largest
}

// run evaluates nodes on the case's inputs.
func (c Case) run(t *testing.T, nodes []*onnx.Node, constants []*onnx.Tensor) (map[string]engine.Tensor, error) {
	t.Helper()
	m := onnx.New()
	m.RequireIR(10)
	m.RequireOpset("", c.Opset)
	if c.Domain != "" {
		m.RequireOpset(c.Domain, 1)
	}
	m.Graph.Name, m.Graph.Nodes, m.Graph.Initializers = "case", nodes, constants
	em := engine.Model{}
	feeds := map[string]engine.Tensor{}
	for i, a := range c.Inputs {
		if a == nil {
			continue
		}
		name := fmt.Sprintf("i%d", i)
		m.Graph.Inputs = append(m.Graph.Inputs, &onnx.ValueInfo{Name: name, Type: a.element()})
		em.Inputs = append(em.Inputs, name)
		feeds[name] = a.tensor(t)
	}
	for i := range c.Outputs {
		name := fmt.Sprintf("o%d", i)
		m.Graph.Outputs = append(m.Graph.Outputs, &onnx.ValueInfo{Name: name, Type: onnx.Float})
		em.Outputs = append(em.Outputs, name)
	}
	var err error
	if em.Bytes, err = m.Marshal(); err != nil {
		t.Fatal(err)
	}
	eng, err := engine.NewLocal(engine.Config{Threads: 1})
	if err != nil {
		t.Fatal(err)
	}
	session, err := eng.Load(context.Background(), em)
	if err != nil {
		return nil, err
	}
	defer session.Close()
	return session.Run(context.Background(), feeds)
}
