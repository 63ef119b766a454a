package opset

import (
	"errors"
	"fmt"
	"math"

	"github.com/rope-rewrite/rope-rewrite/onnx"
)

// Conversions of attributes that became inputs.

// axesToInput: Squeeze, Unsqueeze and the reductions. No axes mean all of them before and
// after; an empty list does so for reductions alone.
func axesToInput(s *step) ([]*onnx.Node, error) {
	axes, err := s.ints("axes")
	if err != nil {
		return nil, err
	}
	if err := s.inputs(1); err != nil {
		return nil, err
	}
	n := s.copy("axes")
	switch {
	case len(axes) > 0:
		n.Inputs = append(n.Inputs, s.list("axes", axes...))
	case axes != nil && n.OpType == "Squeeze":
		return nil, errors.New("its list of axes is empty, which runtimes read as none or as all")
	case n.OpType == "Unsqueeze":
		return nil, errors.New("it has no axes")
	}
	return one(n), nil
}

// sizesToInput: Split.
func sizesToInput(s *step) ([]*onnx.Node, error) {
	sizes, err := s.ints("split")
	if err != nil {
		return nil, err
	}
	if err := s.inputs(1); err != nil {
		return nil, err
	}
	n := s.copy("split")
	if len(sizes) > 0 {
		n.Inputs = append(n.Inputs, s.list("split", sizes...))
	}
	return one(n), nil
}

// countParts: a Split into equal parts says how many.
func countParts(s *step) ([]*onnx.Node, error) {
	if len(s.node.Inputs) > 1 && s.node.Inputs[1] != "" {
		return one(s.node), nil
	}
	n := s.copy("num_outputs")
	n.SetAttribute(onnx.IntAttr("num_outputs", int64(len(n.Outputs))))
	return one(n), nil
}

// sliceInputs: Slice.
func sliceInputs(s *step) ([]*onnx.Node, error) {
	if err := s.inputs(1); err != nil {
		return nil, err
	}
	lists := map[string][]int64{}
	for _, name := range []string{"starts", "ends", "axes"} {
		var err error
		if lists[name], err = s.ints(name); err != nil {
			return nil, err
		}
	}
	starts, axes := lists["starts"], lists["axes"]
	if axes == nil {
		for i := range starts {
			axes = append(axes, int64(i))
		}
	}
	if len(starts) == 0 || len(lists["ends"]) != len(starts) || len(axes) != len(starts) {
		return nil, fmt.Errorf("it has %d starts, %d ends and %d axes", len(starts), len(lists["ends"]), len(axes))
	}
	n := s.copy("starts", "ends", "axes")
	n.Inputs = append(n.Inputs, s.list("starts", starts...), s.list("ends", lists["ends"]...), s.list("axes", axes...))
	return one(n), nil
}

// kToInput: TopK.
func kToInput(s *step) ([]*onnx.Node, error) {
	k, err := s.int("k", 0)
	if err != nil {
		return nil, err
	}
	if err := s.inputs(1); err != nil {
		return nil, err
	}
	if k < 1 {
		return nil, errors.New("it does not say how many elements it takes")
	}
	n := s.copy("k")
	n.Inputs = append(n.Inputs, s.list("k", k))
	return one(n), nil
}

// limitsToInputs: Clip. Inputs have the type of what is clipped, and the limits that are
// left out are those of that type, not of float32 as before.
func limitsToInputs(s *step) ([]*onnx.Node, error) {
	if err := s.inputs(1); err != nil {
		return nil, err
	}
	if t := s.facts.of(s.node.Inputs[0]).element; t != onnx.Float {
		return nil, fmt.Errorf("its input is not known to be float32 (%s)", t)
	}
	n := s.copy("min", "max")
	for i, name := range []string{"min", "max"} {
		if s.node.Attribute(name) == nil {
			continue
		}
		limit, err := s.float(name, 0)
		if err != nil {
			return nil, err
		}
		if len(n.Inputs) < i+1 {
			n.Inputs = append(n.Inputs, "") // no lower limit
		}
		n.Inputs = append(n.Inputs, s.number(name, limit))
	}
	return one(n), nil
}

// padsToInputs: Pad. What it pads with has the type of the data.
func padsToInputs(s *step) ([]*onnx.Node, error) {
	if err := s.inputs(1); err != nil {
		return nil, err
	}
	pads, err := s.ints("pads")
	if err != nil {
		return nil, err
	}
	if pads == nil {
		return nil, errors.New("it has no pads")
	}
	value, err := s.float("value", 0)
	if err != nil {
		return nil, err
	}
	n := s.copy("pads", "value")
	n.Inputs = append(n.Inputs, s.list("pads", pads...))
	if math.Float32bits(value) != 0 { // not −0 either
		if t := s.facts.of(s.node.Inputs[0]).element; t != onnx.Float {
			return nil, fmt.Errorf("it pads with %g, and its input is not known to be float32 (%s)", value, t)
		}
		n.Inputs = append(n.Inputs, s.number("constant_value", value))
	}
	return one(n), nil
}

// ratioToInput: Dropout, which passes on what it gets where nothing is trained.
func ratioToInput(s *step) ([]*onnx.Node, error) {
	ratio, err := s.float("ratio", 0.5)
	if err != nil {
		return nil, err
	}
	if err := s.inputs(1); err != nil {
		return nil, err
	}
	n, err := s.onlyFirst("ratio")
	if err != nil {
		return nil, err
	}
	n.Inputs = append(n.Inputs, s.number("ratio", ratio))
	return one(n), nil
}

// axisToInput: DFT.
func axisToInput(s *step) ([]*onnx.Node, error) {
	axis, err := s.int("axis", 1)
	if err != nil {
		return nil, err
	}
	n := s.copy("axis")
	if len(n.Inputs) == 1 {
		n.Inputs = append(n.Inputs, "") // no length
	}
	if len(n.Inputs) != 2 {
		return nil, fmt.Errorf("it has %d inputs", len(s.node.Inputs))
	}
	n.Inputs = append(n.Inputs, s.scalar("axis", axis))
	return one(n), nil
}
