package opset

import (
	"errors"
	"fmt"

	"github.com/rope-rewrite/rope-rewrite/internal/short"
	"github.com/rope-rewrite/rope-rewrite/onnx"
)

// Conversions of Upsample and Resize.

// scalesToInput: Upsample.
func scalesToInput(s *step) ([]*onnx.Node, error) {
	scales, err := s.attribute("scales", onnx.AttrFloats)
	if err != nil {
		return nil, err
	}
	if scales == nil {
		return nil, errors.New("it has no scales")
	}
	if err := s.inputs(1); err != nil {
		return nil, err
	}
	n := s.copy("scales")
	n.Inputs = append(n.Inputs, s.floats("scales", scales.Floats...))
	return one(n), nil
}

// coordinates: Resize did not say how it computes coordinates. For scales of 1 and more
// it is the way that is called asymmetric now, and the nearest is the one below.
func coordinates(s *step) ([]*onnx.Node, error) {
	if err := s.inputs(2); err != nil {
		return nil, err
	}
	mode, err := s.text("mode", "nearest")
	if err != nil {
		return nil, err
	}
	if mode != "nearest" && mode != "linear" {
		return nil, fmt.Errorf("its mode is %q", short.Name(mode))
	}
	scales := s.facts.of(s.node.Inputs[1]).tensor
	if scales == nil {
		return nil, errors.New("its scales are not constant")
	}
	list, err := scales.Floats()
	if err != nil {
		return nil, err
	}
	for _, x := range list {
		if !(x >= 1) {
			return nil, fmt.Errorf("it scales by %g, and how coordinates are computed for scales below 1 is not specified", x)
		}
	}
	n := s.copy()
	n.Inputs = []string{n.Inputs[0], s.floats("roi"), n.Inputs[1]}
	n.SetAttribute(onnx.StringAttr("coordinate_transformation_mode", "asymmetric"))
	if mode == "nearest" {
		n.SetAttribute(onnx.StringAttr("nearest_mode", "floor"))
	}
	return one(n), nil
}

// scalesOrSizes: a Resize to sizes had an empty tensor of scales.
func scalesOrSizes(s *step) ([]*onnx.Node, error) {
	way, err := s.text("coordinate_transformation_mode", "half_pixel")
	if err != nil {
		return nil, err
	}
	if way == "tf_half_pixel_for_nn" {
		return nil, fmt.Errorf("coordinate_transformation_mode is %q", short.Name(way))
	}
	if len(s.node.Inputs) < 4 || s.node.Inputs[3] == "" || s.node.Inputs[2] == "" {
		return one(s.node), nil
	}
	n := s.copy()
	n.Inputs[2] = ""
	return one(n), nil
}
