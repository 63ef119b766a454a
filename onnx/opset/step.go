package opset

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/rope-rewrite/rope-rewrite/internal/short"
	"github.com/rope-rewrite/rope-rewrite/onnx"
)

// step is one node at one version that changed its operator.
type step struct {
	*scope
	node *onnx.Node // not to be changed
}

// one is the answer of a conversion that needs no other nodes.
func one(n *onnx.Node) []*onnx.Node { return []*onnx.Node{n} }

// copy returns a copy of the node that can be changed. It lacks the attributes named.
func (s *step) copy(without ...string) *onnx.Node {
	n := s.node.Clone()
	n.Attributes = slices.DeleteFunc(n.Attributes, func(a *onnx.Attribute) bool { return slices.Contains(without, a.Name) })
	return n
}

// attribute returns the attribute of that name, nil where the node has none. Another type
// than the operator's is an error: no runtime would have loaded the node.
func (s *step) attribute(name string, t onnx.AttributeType) (*onnx.Attribute, error) {
	a := s.node.Attribute(name)
	if a != nil && a.Type != t {
		return nil, fmt.Errorf("its attribute %s has another type than the operator's", name)
	}
	return a, nil
}

func (s *step) int(name string, otherwise int64) (int64, error) {
	a, err := s.attribute(name, onnx.AttrInt)
	if a == nil || err != nil {
		return otherwise, err
	}
	return a.Int, nil
}

func (s *step) float(name string, otherwise float32) (float32, error) {
	a, err := s.attribute(name, onnx.AttrFloat)
	if a == nil || err != nil {
		return otherwise, err
	}
	return a.Float, nil
}

func (s *step) text(name, otherwise string) (string, error) {
	a, err := s.attribute(name, onnx.AttrString)
	if a == nil || err != nil {
		return otherwise, err
	}
	return string(a.Bytes), nil
}

// ints returns a list; nil where the node has no such attribute.
func (s *step) ints(name string) ([]int64, error) {
	a, err := s.attribute(name, onnx.AttrInts)
	if a == nil || err != nil {
		return nil, err
	}
	return append([]int64{}, a.Ints...), nil
}

// inputs says that the node has as many inputs as the operator had before, where the next
// ones compute something else.
func (s *step) inputs(count int) error {
	if len(s.node.Inputs) != count {
		return fmt.Errorf("it has %d inputs, and the operator takes %d", len(s.node.Inputs), count)
	}
	return nil
}

// output returns the name of the node's first output.
func (s *step) output() (string, error) {
	if len(s.node.Outputs) == 0 || s.node.Outputs[0] == "" {
		return "", errors.New("it has no output")
	}
	return s.node.Outputs[0], nil
}

// onlyFirst returns the node without its further outputs, if nothing reads them.
func (s *step) onlyFirst(without ...string) (*onnx.Node, error) {
	n := s.copy(without...)
	for _, v := range n.Outputs[min(len(n.Outputs), 1):] {
		if v != "" && s.read[v] {
			return nil, fmt.Errorf("its output %q is read", short.Name(v))
		}
	}
	n.Outputs = n.Outputs[:min(len(n.Outputs), 1)]
	return n, nil
}

// list is the name of a constant list of integers.
func (s *step) list(what string, values ...int64) string {
	return s.constant(what, onnx.Int64, []int64{int64(len(values))}, raw64(values))
}

// scalar is the name of a constant integer.
func (s *step) scalar(what string, value int64) string {
	return s.constant(what, onnx.Int64, nil, raw64([]int64{value}))
}

// floats is the name of a constant list of numbers.
func (s *step) floats(what string, values ...float32) string {
	return s.constant(what, onnx.Float, []int64{int64(len(values))}, raw32(values))
}

// number is the name of a constant number.
func (s *step) number(what string, value float32) string {
	return s.constant(what, onnx.Float, nil, raw32([]float32{value}))
}

// constant is the name of a constant, one for all nodes of the scope that read that value.
// It is a node and no initializer, because functions have none.
func (s *step) constant(what string, t onnx.DataType, dims []int64, raw []byte) string {
	key := fmt.Sprintf("%s %v %v %x", what, t, dims, raw)
	if name := s.shared[key]; name != "" {
		return name
	}
	name := s.names.Fresh(what)
	tensor := onnx.NewTensor("", t, dims, raw)
	s.constants = append(s.constants, onnx.NewNode("Constant", nil, []string{name}, onnx.TensorAttr("value", tensor)))
	s.shared[key] = name
	s.facts.known[name] = ofTensor(tensor)
	return name
}

// append returns the name of the only output of a node that stands before or behind the
// converted one, and the node.
func (s *step) append(op, part string, inputs []string, attrs ...*onnx.Attribute) (string, *onnx.Node) {
	out := s.names.Fresh(label(s.node) + "/" + part)
	n := onnx.NewNode(op, inputs, []string{out}, attrs...)
	n.Name = s.names.Fresh(out)
	return out, n
}

func raw64(values []int64) []byte {
	out := []byte{}
	for _, v := range values {
		out = binary.LittleEndian.AppendUint64(out, uint64(v))
	}
	return out
}

func raw32(values []float32) []byte {
	out := []byte{}
	for _, v := range values {
		out = binary.LittleEndian.AppendUint32(out, math.Float32bits(v))
	}
	return out
}
