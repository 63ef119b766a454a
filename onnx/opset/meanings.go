package opset

import (
	"errors"
	"fmt"

	"github.com/rope-rewrite/rope-rewrite/internal/short"
	"github.com/rope-rewrite/rope-rewrite/onnx"
)

// Conversions of what an operator computes, and refusals.

// refuse: there is no surely equal node.
func refuse(*step) ([]*onnx.Node, error) {
	return nil, errors.New("there is no conversion; export the model against the newer version")
}

// unchanged: the change concerns nodes that no runtime ran.
func unchanged(s *step) ([]*onnx.Node, error) { return one(s.node), nil }

// renamed: another operator took the place, which computes the same of such nodes.
func renamed(op string) func(*step) ([]*onnx.Node, error) {
	return func(s *step) ([]*onnx.Node, error) {
		n := s.copy()
		n.OpType = op
		return one(n), nil
	}
}

// oneAxis: Softmax, LogSoftmax and Hardmax. They took all axes from one on together. Where
// that is the last axis, they still do the same along it. Elsewhere these axes are made one
// before, and taken apart again behind.
func oneAxis(s *step) ([]*onnx.Node, error) {
	axis, err := s.int("axis", 1)
	if err != nil {
		return nil, err
	}
	if err := s.inputs(1); err != nil {
		return nil, err
	}
	out, err := s.output()
	if err != nil {
		return nil, err
	}
	x := s.node.Inputs[0]
	n := s.copy()
	n.SetAttribute(onnx.IntAttr("axis", -1))
	if of := s.facts.of(x); axis == -1 || of.ranked && axis == int64(of.axes)-1 {
		return one(n), nil
	}
	flat, flatten := s.append("Flatten", "flat", []string{x}, onnx.IntAttr("axis", axis))
	shape, measure := s.append("Shape", "shape", []string{x})
	n.Inputs[0], n.Outputs[0] = flat, s.names.Fresh(label(s.node)+"/along")
	back := onnx.NewNode("Reshape", []string{n.Outputs[0], shape}, []string{out})
	back.Name = s.names.Fresh(label(s.node) + "/back")
	if s.to >= 14 { // sizes of zero are sizes; in version 13 an empty tensor is an error of the runtime
		back.SetAttribute(onnx.IntAttr("allowzero", 1))
	}
	return []*onnx.Node{flatten, measure, n, back}, nil
}

// withoutSpatial: BatchNormalization over channels, which all are now.
func withoutSpatial(s *step) ([]*onnx.Node, error) {
	if spatial, err := s.int("spatial", 1); err != nil || spatial != 1 {
		return nil, errors.Join(err, fmt.Errorf("spatial is %d", spatial))
	}
	return one(s.copy("spatial")), nil
}

// withoutMask: a Dropout whose mask nothing reads.
func withoutMask(s *step) ([]*onnx.Node, error) {
	n, err := s.onlyFirst()
	return one(n), err
}

// onlyFirstOutput: a BatchNormalization that is not trained.
func onlyFirstOutput(s *step) ([]*onnx.Node, error) {
	if len(s.node.Outputs) == 1 {
		return one(s.node), nil
	}
	n, err := s.onlyFirst()
	return one(n), err
}

// plainPadding: pooling and transposed convolution with pads that are given, and no window
// that reaches over the end, on which all words agree.
func plainPadding(s *step) ([]*onnx.Node, error) {
	auto, err := s.text("auto_pad", "NOTSET")
	if err != nil {
		return nil, err
	}
	ceil, err := s.int("ceil_mode", 0)
	if err != nil {
		return nil, err
	}
	if auto != "NOTSET" && auto != "" {
		return nil, fmt.Errorf("auto_pad is %q", short.Name(auto))
	}
	if ceil != 0 {
		return nil, errors.New("ceil_mode is set")
	}
	return one(s.node), nil
}

// unshifted: RoiAlign shifted no coordinates before.
func unshifted(s *step) ([]*onnx.Node, error) {
	n := s.copy()
	n.SetAttribute(onnx.StringAttr("coordinate_transformation_mode", "output_half_pixel"))
	return one(n), nil
}

// modeNames: GridSample.
func modeNames(s *step) ([]*onnx.Node, error) {
	mode, err := s.text("mode", "bilinear")
	if err != nil {
		return nil, err
	}
	now := map[string]string{"bilinear": "linear", "nearest": "nearest", "bicubic": "cubic"}[mode]
	if now == "" {
		return nil, fmt.Errorf("its mode is %q", short.Name(mode))
	}
	n := s.copy()
	n.SetAttribute(onnx.StringAttr("mode", now))
	return one(n), nil
}
