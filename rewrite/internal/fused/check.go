package fused

import (
	"fmt"
	"math"
	"slices"

	"github.com/rope-rewrite/rope-rewrite/internal/short"
	"github.com/rope-rewrite/rope-rewrite/onnx"
)

// MaxHeads bounds head counts. ONNX Runtime ends its process on absurd ones.
const MaxHeads = 1 << 16

// Known returns an error when n has an attribute that is not among those named,
// which an adapter therefore cannot have taken into account.
func Known(n *onnx.Node, attributes ...string) error {
	for _, a := range n.Attributes {
		if !slices.Contains(attributes, a.Name) {
			return fmt.Errorf("the node has the attribute %s, which is unknown for %s", short.Name(a.Name), n.OpType)
		}
	}
	return nil
}

// Arity returns an error when n has more inputs or outputs than are known, or
// lacks one of the first needed inputs.
func Arity(n *onnx.Node, needed, inputs, outputs int) error {
	for i := range needed {
		if Input(n, i) == "" {
			return fmt.Errorf("the node lacks its input %d", i)
		}
	}
	if len(n.Inputs) > inputs {
		return fmt.Errorf("the node has %d inputs, %d are known for %s", len(n.Inputs), inputs, n.OpType)
	}
	if len(n.Outputs) > outputs {
		return fmt.Errorf("the node has %d outputs, %d are known for %s", len(n.Outputs), outputs, n.OpType)
	}
	if Output(n, 0) == "" {
		return fmt.Errorf("its first output has no name")
	}
	return nil
}

// Input returns input i of n, "" where it is absent.
func Input(n *onnx.Node, i int) string {
	if i < len(n.Inputs) {
		return n.Inputs[i]
	}
	return ""
}

// Output returns output i of n, "" where it is absent.
func Output(n *onnx.Node, i int) string {
	if i < len(n.Outputs) {
		return n.Outputs[i]
	}
	return ""
}

// Int returns an integer attribute, def where it is absent, and an error when
// it lies outside [low, high] or is no integer.
func Int(n *onnx.Node, name string, def, low, high int64) (int64, error) {
	a := n.Attribute(name)
	switch {
	case a == nil:
		return def, nil
	case a.Type != onnx.AttrInt:
		return 0, fmt.Errorf("its attribute %s is not an integer", name)
	case a.Int < low || a.Int > high:
		return 0, fmt.Errorf("its attribute %s is %d, which is outside %d to %d", name, a.Int, low, high)
	}
	return a.Int, nil
}

// Float returns a float attribute, def where it is absent, and an error when
// it is not finite or no float.
func Float(n *onnx.Node, name string, def float64) (float64, error) {
	a := n.Attribute(name)
	switch {
	case a == nil:
		return def, nil
	case a.Type != onnx.AttrFloat:
		return 0, fmt.Errorf("its attribute %s is not a float", name)
	case math.IsNaN(float64(a.Float)) || math.IsInf(float64(a.Float), 0):
		return 0, fmt.Errorf("its attribute %s is %g", name, a.Float)
	}
	return float64(a.Float), nil
}
