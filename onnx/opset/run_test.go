package opset_test

import (
	"bytes"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/rope-rewrite/rope-rewrite/internal/engine"
	"github.com/rope-rewrite/rope-rewrite/internal/testmodel"
	"github.com/rope-rewrite/rope-rewrite/internal/testruntime"
	"github.com/rope-rewrite/rope-rewrite/onnx"
	"github.com/rope-rewrite/rope-rewrite/onnx/opset"
)

// small is a model of a few nodes and what it is fed with.
type small struct {
	version   int64
	feeds     map[string]engine.Tensor
	ranks     bool // the model says the ranks of what it is fed with
	nodes     []*onnx.Node
	constants []*onnx.Tensor
	functions []*onnx.Function
	outputs   []string
}

// model makes the model anew: Raise changes it.
func (s small) model() *onnx.Model {
	m := onnx.New()
	m.RequireIR(4)
	m.RequireOpset("", s.version)
	if len(s.functions) > 0 {
		m.RequireIR(8)
		m.RequireOpset("own", 1)
	}
	m.Graph.Name = "small"
	for _, n := range s.nodes {
		m.Graph.Nodes = append(m.Graph.Nodes, n.Clone())
	}
	for _, f := range s.functions {
		c := *f
		m.Functions = append(m.Functions, &c)
	}
	m.Graph.Initializers = s.constants
	for name, f := range s.feeds {
		v := &onnx.ValueInfo{Name: name, Type: f.Type}
		if s.ranks {
			v.HasShape, v.Shape = true, make([]onnx.Dim, len(f.Dims))
			for i := range v.Shape {
				v.Shape[i].Value = onnx.UnknownDim
			}
		}
		m.Graph.AddInput(v)
	}
	for _, name := range s.outputs {
		m.Graph.AddOutput(&onnx.ValueInfo{Name: name})
	}
	return m
}

// run runs a model in ONNX Runtime as it stands.
func (s small) run(m *onnx.Model) (map[string]engine.Tensor, error) {
	return testmodel.Run(m, s.feeds, s.outputs...)
}

// keeps fails unless the model, raised to each of the versions, gives what it gave before,
// bit for bit. Without versions these are all that there are.
func (s small) keeps(t *testing.T, to ...int64) {
	t.Helper()
	s.compare(t, identical, to...)
}

// compare is keeps with another sense of equal.
func (s small) compare(t *testing.T, same func(got, want engine.Tensor) error, to ...int64) {
	t.Helper()
	testruntime.Require(t)
	want, err := s.run(s.model())
	if err != nil {
		t.Fatalf("the model itself does not run: %v", err)
	}
	if to == nil {
		for v := s.version + 1; v <= newest(t); v++ {
			to = append(to, v)
		}
	}
	for _, v := range to {
		m := s.model()
		raised, err := opset.Raise(m, v)
		if err != nil {
			t.Fatalf("to %d: %v", v, err)
		}
		if raised.From != s.version || raised.To != v || m.Opset("") != v {
			t.Errorf("to %d: the report is %+v, the model has %d", v, raised, m.Opset(""))
		}
		got, err := s.run(m)
		if err != nil {
			t.Fatalf("raised to %d it does not run: %v", v, err)
		}
		for _, name := range s.outputs {
			if err := same(got[name], want[name]); err != nil {
				t.Fatalf("raised to %d, %q: %v", v, name, err)
			}
		}
	}
}

func newest(t *testing.T) int64 {
	t.Helper()
	v, err := opset.Newest()
	if err != nil {
		t.Fatal(err)
	}
	return v
}

func identical(got, want engine.Tensor) error {
	if got.Type != want.Type || !slices.Equal(got.Dims, want.Dims) {
		return fmt.Errorf("it is %v %v, want %v %v", got.Type, got.Dims, want.Type, want.Dims)
	}
	if !bytes.Equal(got.Data, want.Data) {
		return errors.New("it has other numbers")
	}
	return nil
}

// within is equal up to a difference of each number.
func within(bound float64) func(got, want engine.Tensor) error {
	return func(got, want engine.Tensor) error {
		if got.Type != want.Type || !slices.Equal(got.Dims, want.Dims) {
			return fmt.Errorf("it is %v %v, want %v %v", got.Type, got.Dims, want.Type, want.Dims)
		}
		w := want.Values()
		for i, x := range got.Values() {
			if !(math.Abs(x-w[i]) <= bound) {
				return fmt.Errorf("number %d is %g, want %g", i, x, w[i])
			}
		}
		return nil
	}
}

// drawn is a tensor of numbers that are the same in every run.
func drawn(dims ...int64) engine.Tensor {
	r := rand.New(rand.NewPCG(1, uint64(len(dims))))
	v := make([]float32, engine.Elements(dims))
	for i := range v {
		v[i] = float32(r.NormFloat64())
	}
	return engine.Float32s(v, dims...)
}

// fed is a model of one node that reads x and writes y.
func fed(version int64, x engine.Tensor, op string, attrs ...*onnx.Attribute) small {
	return small{
		version: version, feeds: map[string]engine.Tensor{"x": x}, outputs: []string{"y"},
		nodes: []*onnx.Node{named(onnx.NewNode(op, []string{"x"}, []string{"y"}, attrs...))},
	}
}

// named gives a node its operator's name.
func named(n *onnx.Node) *onnx.Node {
	n.Name = "the " + n.OpType
	return n
}

func floats(name string, v ...float32) *onnx.Tensor {
	return onnx.NewTensor(name, onnx.Float, []int64{int64(len(v))}, engine.Float32s(v).Data)
}

func ints(name string, v ...int64) *onnx.Tensor {
	return onnx.NewTensor(name, onnx.Int64, []int64{int64(len(v))}, engine.Int64s(v).Data)
}
