package customop_test

import (
	"fmt"
	"slices"

	ort "github.com/yalue/onnxruntime_go"

	"github.com/rope-rewrite/rope-rewrite/customop"
	"github.com/rope-rewrite/rope-rewrite/internal/testruntime"
	"github.com/rope-rewrite/rope-rewrite/onnx"
	"github.com/rope-rewrite/rope-rewrite/rewrite/definition"
)

// tensor is one input or output of a run; exactly one of the two lists is set
// (both are nil for a tensor without elements).
type tensor struct {
	dims     []int64
	floats   []float32
	integers []int64
	typ      onnx.DataType // Float, Int64 or Int32
}

func floats(values []float32, dims ...int64) tensor {
	return tensor{dims: dims, floats: values, typ: onnx.Float}
}

func integers(values []int64, dims ...int64) tensor {
	return tensor{dims: dims, integers: values, typ: onnx.Int64}
}

func integers32(values []int64, dims ...int64) tensor {
	return tensor{dims: dims, integers: values, typ: onnx.Int32}
}

func (x tensor) value() (ort.Value, error) {
	switch x.typ {
	case onnx.Int64:
		return ort.NewTensor(x.dims, x.integers)
	case onnx.Int32:
		narrow := make([]int32, len(x.integers))
		for i, v := range x.integers {
			narrow[i] = int32(v)
		}
		return ort.NewTensor(x.dims, narrow)
	}
	return ort.NewTensor(x.dims, x.floats)
}

// tester is a *testing.T or a *rapid.T.
type tester interface {
	testruntime.TB
	Fatalf(format string, args ...any)
	Errorf(format string, args ...any)
	Error(args ...any)
	Cleanup(func())
}

// feeds are the inputs of one run by name.
type feeds map[string]tensor

// toONNX writes a node of this package as a node of a file.
func toONNX(n customop.Node) *onnx.Node {
	node := onnx.NewNode(n.OpType, n.Inputs, n.Outputs)
	node.Name, node.Domain = n.Name, n.Domain
	for _, a := range n.Attributes {
		switch a.Kind {
		case customop.Int:
			node.SetAttribute(onnx.IntAttr(a.Name, a.Int))
		case customop.Float:
			node.SetAttribute(onnx.FloatAttr(a.Name, a.Float))
		case customop.Text:
			node.SetAttribute(onnx.StringAttr(a.Name, a.Text))
		case customop.Ints:
			node.SetAttribute(onnx.IntsAttr(a.Name, a.Ints...))
		case customop.Floats:
			node.SetAttribute(onnx.FloatsAttr(a.Name, a.Floats...))
		}
	}
	return node
}

// opset is the version of the standard operators in the tests' models.
const opset = 17

// modelOf is a model of these nodes, among which one is the op; its inputs, those
// with a type, have no shapes, so that the kernel is the one who checks these.
// What no node reads is an output.
func modelOf(t tester, nodes []*onnx.Node, types map[string]onnx.DataType, opset int64, functions ...*onnx.Function) (data []byte, inputs, outputs []string) {
	t.Helper()
	m := onnx.New()
	m.Functions = functions
	m.RequireIR(8)
	m.RequireOpset("", opset)
	m.RequireOpset(customop.Domain, 1)
	m.Graph.Name = "one op"
	made, read := map[string]bool{"": true}, map[string]bool{"": true}
	for _, node := range nodes {
		for _, name := range node.Inputs {
			if !made[name] && !read[name] {
				m.Graph.AddInput(&onnx.ValueInfo{Name: name, Type: types[name]})
				inputs = append(inputs, name)
			}
			read[name] = true
		}
		for _, name := range node.Outputs {
			made[name] = true
		}
		m.Graph.InsertNode(nil, node)
	}
	for _, node := range nodes {
		for _, name := range node.Outputs {
			if !read[name] {
				m.Graph.AddOutput(&onnx.ValueInfo{Name: name, Type: onnx.Float})
				outputs = append(outputs, name)
			}
		}
	}
	data, err := m.Marshal()
	if err != nil {
		t.Fatal(err)
	}
	return data, inputs, outputs
}

// opSession is a session of one op.
type opSession struct {
	session         *ort.DynamicAdvancedSession
	inputs, outputs []string
}

// newSession creates a session of a one-op model; threads 0 lets ONNX Runtime choose.
func newSession(t tester, node *onnx.Node, types map[string]onnx.DataType, threads int) (opSession, error) {
	t.Helper()
	return sessionOf(t, []*onnx.Node{node}, types, threads)
}

// sessionOf creates a session of nodes in their order.
func sessionOf(t tester, nodes []*onnx.Node, types map[string]onnx.DataType, threads int) (opSession, error) {
	t.Helper()
	library := testruntime.Require(t)
	model, inputs, outputs := modelOf(t, nodes, types, opset)
	return open(t, model, inputs, outputs, threads, func(o *ort.SessionOptions) error { return registerForTest(o, library) })
}

// definedOf creates a session of nodes without the library: the model has the op's
// fallback. flat says that the op's query has three dimensions.
func definedOf(flat bool) opener { return definedAt(flat, opset) }

// definedAt is definedOf against a version of the standard operators.
func definedAt(flat bool, opset int64) opener {
	return func(t tester, nodes []*onnx.Node, types map[string]onnx.DataType, threads int) (opSession, error) {
		t.Helper()
		testruntime.Require(t)
		var functions []*onnx.Function
		for _, n := range nodes {
			if n.Domain == customop.Domain {
				f, err := definition.Body(n, flat, opset)
				if err != nil {
					t.Fatal(err)
				}
				functions = append(functions, f)
			}
		}
		model, inputs, outputs := modelOf(t, nodes, types, opset, functions...)
		return open(t, model, inputs, outputs, threads, func(*ort.SessionOptions) error { return nil })
	}
}

const byLibrary = "the library"

// opener creates a session of nodes in their order.
type opener func(t tester, nodes []*onnx.Node, types map[string]onnx.DataType, threads int) (opSession, error)

// ways are what computes the op: the library, and the fallback where it is missing.
func ways(flat bool) map[string]opener {
	return map[string]opener{byLibrary: sessionOf, "the fallback": definedOf(flat)}
}

// open creates a session of a model.
func open(t tester, model []byte, inputs, outputs []string, threads int, register func(*ort.SessionOptions) error) (opSession, error) {
	t.Helper()
	options, err := ort.NewSessionOptions()
	if err != nil {
		t.Fatal(err)
	}
	defer options.Destroy()
	// What is refused comes back as an error; ONNX Runtime's log would say it again.
	if err := options.SetLogSeverityLevel(ort.LoggingLevelFatal); err != nil {
		t.Fatal(err)
	}
	if threads > 0 {
		if err := options.SetIntraOpNumThreads(threads); err != nil {
			t.Fatal(err)
		}
	}
	// Threads that wait for the next small run in a loop would only take the other tests' time.
	if err := options.AddSessionConfigEntry("session.intra_op.allow_spinning", "0"); err != nil {
		t.Fatal(err)
	}
	if err := register(options); err != nil {
		t.Fatal(err)
	}
	s := opSession{inputs: inputs, outputs: outputs}
	s.session, err = ort.NewDynamicAdvancedSessionWithONNXData(model, inputs, outputs, options)
	if err != nil {
		return opSession{}, err
	}
	t.Cleanup(func() { s.session.Destroy() })
	return s, nil
}

// run feeds the session and copies its outputs.
func (s opSession) run(in feeds) (map[string]tensor, error) {
	inputs := make([]ort.Value, len(s.inputs))
	outputs := make([]ort.Value, len(s.outputs))
	defer func() {
		for _, v := range slices.Concat(inputs, outputs) {
			if v != nil {
				v.Destroy()
			}
		}
	}()
	for i, name := range s.inputs {
		x, ok := in[name]
		if !ok {
			return nil, fmt.Errorf("the test feeds no %s", name)
		}
		v, err := x.value()
		if err != nil {
			return nil, fmt.Errorf("feeding %s: %w", name, err)
		}
		inputs[i] = v
	}
	if err := s.session.Run(inputs, outputs); err != nil {
		return nil, err
	}
	got := map[string]tensor{}
	for i, name := range s.outputs {
		v, ok := outputs[i].(*ort.Tensor[float32])
		if !ok {
			return nil, fmt.Errorf("%s is a %T", name, outputs[i])
		}
		got[name] = floats(slices.Clone(v.GetData()), slices.Clone(v.GetShape())...)
	}
	return got, nil
}

// typesOf are the element types of what will be fed.
func typesOf(in feeds) map[string]onnx.DataType {
	types := map[string]onnx.DataType{}
	for name, x := range in {
		types[name] = x.typ
	}
	return types
}
