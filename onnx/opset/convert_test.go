package opset_test

import (
	"fmt"
	"math"
	"strings"
	"testing"

	"github.com/rope-rewrite/rope-rewrite/internal/engine"
	"github.com/rope-rewrite/rope-rewrite/onnx"
	"github.com/rope-rewrite/rope-rewrite/onnx/opset"
)

// The old operators took all axes from one on together, along any axis of any rank, empty
// tensors too, whether the rank is known or not.
func TestOneAxis(t *testing.T) {
	for _, op := range []string{"Softmax", "LogSoftmax", "Hardmax"} {
		for _, dims := range [][]int64{{5}, {3, 4}, {2, 3, 4}, {2, 3, 1, 4}, {1, 2, 2, 3, 2}, {2, 0, 3}, {2, 3, 0}} {
			for axis := -len(dims); axis < len(dims); axis++ {
				t.Run(fmt.Sprint(op, dims, axis), func(t *testing.T) {
					s := fed(11, drawn(dims...), op, onnx.IntAttr("axis", int64(axis)))
					to := []int64{13, 14, 26}
					if s.feeds["x"].Len() == 0 {
						to = to[1:]
					}
					s.keeps(t, to...)
					s.ranks = true
					s.keeps(t, to...)
				})
			}
		}
		for _, version := range []int64{7, 12} { // without an axis it is 1
			fed(version, drawn(2, 3, 4), op).keeps(t)
		}
	}
}

// Where the rank is known and the axis is the last, one node stays.
func TestOneAxisStaysOneNode(t *testing.T) {
	shape := []*onnx.Node{
		onnx.NewNode("Transpose", []string{"x"}, []string{"t"}, onnx.IntsAttr("perm", 0, 2, 1, 3)),
		onnx.NewNode("Mul", []string{"t", "scale"}, []string{"m"}),
		onnx.NewNode("Softmax", []string{"m"}, []string{"y"}, onnx.IntAttr("axis", 3)),
	}
	s := small{version: 12, feeds: map[string]engine.Tensor{"x": drawn(2, 3, 4, 5)}, nodes: shape, outputs: []string{"y"},
		constants: []*onnx.Tensor{onnx.NewTensor("scale", onnx.Float, nil, engine.Float32s([]float32{0.25}).Data)}}
	s.keeps(t)
	m := s.model()
	if _, err := opset.Raise(m, 17); err != nil {
		t.Fatal(err)
	}
	if ops := opsOf(m); ops != "Transpose Mul Softmax" {
		t.Errorf("the nodes are %s", ops)
	}
}

func opsOf(m *onnx.Model) string {
	var ops []string
	for n := range m.Graph.AllNodes() {
		ops = append(ops, n.OpType)
	}
	return strings.Join(ops, " ")
}

func TestReductions(t *testing.T) {
	for _, op := range []string{"L1", "L2", "LogSum", "LogSumExp", "Max", "Mean", "Min", "Prod", "Sum", "SumSquare"} {
		for _, axes := range [][]int64{nil, {}, {0}, {-1}, {2, 0}, {0, 1, 2}} {
			for _, keep := range []int64{0, 1} {
				t.Run(fmt.Sprint(op, axes, keep), func(t *testing.T) {
					attrs := []*onnx.Attribute{onnx.IntAttr("keepdims", keep)}
					if axes != nil {
						attrs = append(attrs, onnx.IntsAttr("axes", axes...))
					}
					s := fed(11, drawn(2, 3, 4), "Reduce"+op, attrs...)
					s.nodes[0].Outputs = []string{"z"} // which may be a scalar; the tests read none
					s.nodes = append(s.nodes, onnx.NewNode("Expand", []string{"z", "one"}, []string{"y"}))
					s.constants = []*onnx.Tensor{ints("one", 1)}
					s.keeps(t, 13, 17, 18, 26)
				})
			}
		}
	}
}

func TestAxesOfSize1(t *testing.T) {
	for _, axes := range [][]int64{{0}, {-1}, {0, 3}, {2, -4}} {
		fed(11, drawn(2, 3), "Unsqueeze", onnx.IntsAttr("axes", axes[:1]...)).keeps(t)
		fed(11, drawn(2, 3), "Unsqueeze", onnx.IntsAttr("axes", axes...)).keeps(t)
	}
	fed(11, drawn(1, 3, 1, 2), "Squeeze").keeps(t)
	fed(11, drawn(1, 3, 1, 2), "Squeeze", onnx.IntsAttr("axes", -2)).keeps(t)
	fed(8, drawn(1, 3, 1, 2), "Squeeze", onnx.IntsAttr("axes", 0, 2)).keeps(t)
	refused(t, fed(11, drawn(1, 3), "Squeeze", onnx.IntsAttr("axes")), 13, `node "the Squeeze": Squeeze changed in opset 13`, "empty")
}

func TestSplit(t *testing.T) {
	split := func(version int64, outputs []string, attrs ...*onnx.Attribute) small {
		s := fed(version, drawn(2, 6), "Split", attrs...)
		s.nodes[0].Outputs, s.outputs = outputs, outputs
		return s
	}
	three := []string{"a", "b", "c"}
	split(11, three, onnx.IntAttr("axis", -1)).keeps(t)
	split(11, three, onnx.IntAttr("axis", 1), onnx.IntsAttr("split", 1, 0, 5)).keeps(t)
	split(8, three, onnx.IntAttr("axis", 1), onnx.IntsAttr("split", 1, 2, 3)).keeps(t)
	split(13, three, onnx.IntAttr("axis", 1)).keeps(t)
	split(7, []string{"a", "b"}).keeps(t)
	sized := split(13, three, onnx.IntAttr("axis", 1))
	sized.nodes[0].Inputs, sized.constants = []string{"x", "sizes"}, []*onnx.Tensor{ints("sizes", 4, 1, 1)}
	sized.keeps(t)
}

func TestSliceTopKDropout(t *testing.T) {
	fed(9, drawn(4, 5, 6), "Slice", onnx.IntsAttr("starts", 1, -3), onnx.IntsAttr("ends", math.MaxInt64, -1)).keeps(t)
	fed(7, drawn(4, 5, 6), "Slice", onnx.IntsAttr("axes", 2, 0), onnx.IntsAttr("starts", 0, 2), onnx.IntsAttr("ends", -2, 2)).keeps(t)
	for _, axis := range []int64{-1, 1} {
		s := fed(9, drawn(3, 7), "TopK", onnx.IntAttr("k", 3), onnx.IntAttr("axis", axis))
		s.nodes[0].Outputs, s.outputs = []string{"y", "i"}, []string{"y", "i"}
		s.keeps(t)
	}
	fed(7, drawn(3, 7), "Dropout", onnx.FloatAttr("ratio", 0.3)).keeps(t)
	fed(11, drawn(3, 7), "Dropout").keeps(t)
	masked := fed(10, drawn(3, 7), "Dropout")
	masked.nodes[0].Outputs = []string{"y", "mask"}
	masked.keeps(t) // nothing reads the mask
	masked.outputs = []string{"y", "mask"}
	refused(t, masked, 12, `Dropout changed in opset 12`, `its output "mask" is read`)
}

func TestClip(t *testing.T) {
	x := engine.Float32s([]float32{float32(math.Inf(-1)), -2, 0, 0.5, 3, float32(math.Inf(1))}, 6)
	fed(6+1, x, "Clip").keeps(t)
	fed(10, x, "Clip", onnx.FloatAttr("min", -1)).keeps(t)
	fed(10, x, "Clip", onnx.FloatAttr("max", 1)).keeps(t)
	fed(7, x, "Clip", onnx.FloatAttr("max", 1), onnx.FloatAttr("min", 0.25)).keeps(t)
	unknown := fed(10, x, "Clip", onnx.FloatAttr("max", 1))
	unknown.nodes = append([]*onnx.Node{{OpType: "Untold", Domain: "own", Inputs: []string{"x"}, Outputs: []string{"z"}}}, unknown.nodes...)
	unknown.nodes[1].Inputs = []string{"z"}
	refused(t, unknown, 11, "Clip changed in opset 11", "not known to be float32")
}

func TestPad(t *testing.T) {
	pads := onnx.IntsAttr("pads", 1, 0, 0, 2)
	fed(10, drawn(3, 4), "Pad", pads).keeps(t)
	fed(7, drawn(3, 4), "Pad", pads, onnx.FloatAttr("value", -1.5)).keeps(t)
	fed(10, drawn(3, 4), "Pad", pads, onnx.FloatAttr("value", float32(math.Copysign(0, -1)))).keeps(t)
	fed(10, drawn(3, 4), "Pad", pads, onnx.StringAttr("mode", "reflect")).keeps(t)
	fed(10, drawn(3, 4), "Pad", pads, onnx.StringAttr("mode", "edge")).keeps(t)
	fed(10, drawn(3, 4), "Pad", onnx.IntsAttr("pads", -1, 0, 0, -2)).keeps(t)
}

func TestResize(t *testing.T) {
	scales := []float32{1, 1, 2.5, 3}
	for _, mode := range []string{"nearest", "linear"} {
		up := onnx.StringAttr("mode", mode)
		fed(7, drawn(1, 2, 3, 4), "Upsample", up, onnx.FloatsAttr("scales", scales...)).keeps(t)
		for version, op := range map[int64]string{9: "Upsample", 10: "Resize"} {
			s := fed(version, drawn(1, 2, 3, 4), op, up)
			s.nodes[0].Inputs, s.constants = []string{"x", "s"}, []*onnx.Tensor{floats("s", scales...)}
			s.keeps(t)
			s.constants = []*onnx.Tensor{floats("s", 1, 1, 0.5, 0.5)}
			refused(t, s, 11, "Resize changed in opset 11", "it scales by 0.5")
		}
		for _, way := range []string{"half_pixel", "align_corners", "asymmetric", "pytorch_half_pixel"} {
			s := fed(11, drawn(1, 2, 3, 4), "Resize", up, onnx.StringAttr("coordinate_transformation_mode", way))
			s.constants = []*onnx.Tensor{floats("none"), ints("sizes", 1, 2, 5, 3), floats("s", 1, 1, 2, 0.5)}
			s.nodes[0].Inputs = []string{"x", "none", "none", "sizes"}
			s.keeps(t)
			m := s.model()
			if _, err := opset.Raise(m, 13); err != nil || m.Graph.Nodes[0].Inputs[2] != "" { // only one of both may be given
				t.Errorf("scales beside sizes: %q, %v", m.Graph.Nodes[0].Inputs, err)
			}
			s.nodes[0].Inputs = []string{"x", "none", "s"}
			s.keeps(t)
		}
	}
	taken := fed(11, drawn(1, 2, 3, 4), "Resize", onnx.StringAttr("coordinate_transformation_mode", "tf_half_pixel_for_nn"))
	taken.nodes[0].Inputs, taken.constants = []string{"x", "none", "s"}, []*onnx.Tensor{floats("none"), floats("s", 1, 1, 2, 2)}
	refused(t, taken, 13, "Resize changed in opset 13", `"tf_half_pixel_for_nn"`)
}

func TestNorms(t *testing.T) {
	norm := func(version int64, attrs ...*onnx.Attribute) small {
		s := fed(version, drawn(2, 3, 4), "BatchNormalization", attrs...)
		s.nodes[0].Inputs = []string{"x", "scale", "bias", "mean", "var"}
		s.constants = []*onnx.Tensor{floats("scale", 1, 2, 3), floats("bias", 0, 1, 2), floats("mean", -1, 0, 1), floats("var", 1, 2, 0.5)}
		return s
	}
	norm(7, onnx.FloatAttr("momentum", 0.5), onnx.IntAttr("spatial", 1)).keeps(t)
	norm(8).keeps(t)
	norm(9, onnx.FloatAttr("epsilon", 0.1)).keeps(t)
	refused(t, norm(8, onnx.IntAttr("spatial", 0)), 9, "BatchNormalization changed in opset 9", "spatial is 0")
	trained := norm(9)
	trained.nodes[0].Outputs, trained.outputs = []string{"y", "m", "v", "sm", "sv"}, []string{"y", "m"}
	refused(t, trained, 14, "BatchNormalization changed in opset 14", `its output "m" is read`)

	for _, version := range []int64{12, 16} { // ONNX Runtime's own
		s := fed(version, drawn(2, 3, 4), "LayerNormalization", onnx.FloatAttr("epsilon", 1e-3))
		s.nodes[0].Inputs, s.constants = []string{"x", "w", "b"}, []*onnx.Tensor{floats("w", 1, 2, 3, 4), floats("b", 0, 1, 2, 3)}
		s.keeps(t)
		s = fed(version, drawn(2, 3, 4), "SimplifiedLayerNormalization", onnx.FloatAttr("epsilon", 1e-3), onnx.IntAttr("axis", -1))
		s.nodes[0].Inputs, s.constants = []string{"x", "w"}, []*onnx.Tensor{floats("w", 1, 2, 3, 4)}
		s.keeps(t)
	}
}

func TestScatter(t *testing.T) {
	for _, axis := range []int64{0, 1} {
		s := fed(9, drawn(3, 4), "Scatter", onnx.IntAttr("axis", axis))
		s.nodes[0].Inputs = []string{"x", "at", "new"}
		s.constants = []*onnx.Tensor{
			onnx.NewTensor("at", onnx.Int64, []int64{1, 2}, engine.Int64s([]int64{2, 0}).Data),
			onnx.NewTensor("new", onnx.Float, []int64{1, 2}, engine.Float32s([]float32{7, 8}).Data),
		}
		s.keeps(t)
	}
}

func TestRegionsAndGrids(t *testing.T) {
	region := fed(10, drawn(1, 2, 6, 6), "RoiAlign", onnx.IntAttr("output_height", 3), onnx.IntAttr("output_width", 2), onnx.IntAttr("sampling_ratio", 2))
	region.nodes[0].Inputs = []string{"x", "regions", "batch"}
	region.constants = []*onnx.Tensor{onnx.NewTensor("regions", onnx.Float, []int64{1, 4}, engine.Float32s([]float32{0.5, 1, 4, 5}).Data), ints("batch", 0)}
	region.keeps(t, 15, 16, 21) // ONNX Runtime has none of version 22
	for _, mode := range []string{"", "bilinear", "nearest", "bicubic"} {
		for _, padding := range []string{"zeros", "border", "reflection"} {
			s := fed(16, drawn(1, 2, 4, 5), "GridSample", onnx.StringAttr("padding_mode", padding))
			if mode != "" {
				s.nodes[0].SetAttribute(onnx.StringAttr("mode", mode))
			}
			s.feeds["grid"] = drawn(1, 3, 3, 2)
			s.nodes[0].Inputs = []string{"x", "grid"}
			s.keeps(t)
		}
	}
	refused(t, fed(19, drawn(1, 2, 4, 5), "GridSample", onnx.StringAttr("mode", "cubic")), 20, "GridSample changed in opset 20", `"cubic"`)
}

func TestFourier(t *testing.T) {
	fed(17, drawn(2, 5, 4, 1), "DFT").keeps(t)
	fed(17, drawn(2, 5, 4, 2), "DFT", onnx.IntAttr("axis", 2), onnx.IntAttr("inverse", 1)).keeps(t)
	long := fed(17, drawn(2, 5, 1), "DFT", onnx.IntAttr("axis", 1))
	long.nodes[0].Inputs, long.constants = []string{"x", "n"}, []*onnx.Tensor{onnx.NewTensor("n", onnx.Int64, nil, engine.Int64s([]int64{8}).Data)}
	long.keeps(t)
}

func TestPooling(t *testing.T) {
	kernel, strides, pads := onnx.IntsAttr("kernel_shape", 3, 2), onnx.IntsAttr("strides", 2, 2), onnx.IntsAttr("pads", 1, 0, 1, 1)
	// ONNX Runtime computes means with another kernel from version 19 on: each of the two may
	// be off by the rounding of a sum of six numbers, none of which is larger than 4.
	mean := within(2 * 6 * 4 * math.Exp2(-24))
	for _, version := range []int64{7, 10, 11} {
		fed(version, drawn(1, 2, 7, 6), "MaxPool", kernel, strides, pads).keeps(t)
		fed(version, drawn(1, 2, 7, 6), "LpPool", kernel, strides, pads).keeps(t)
		fed(version, drawn(1, 2, 7, 6), "AveragePool", kernel, strides, pads).compare(t, mean)
	}
	fed(10, drawn(1, 2, 7, 6), "AveragePool", kernel, pads, onnx.IntAttr("count_include_pad", 1)).compare(t, mean)
	refused(t, fed(11, drawn(1, 2, 7, 6), "AveragePool", kernel, onnx.IntAttr("ceil_mode", 1)), 19, "AveragePool changed in opset 19", "ceil_mode")
	refused(t, fed(11, drawn(1, 2, 7, 6), "MaxPool", kernel, onnx.StringAttr("auto_pad", "SAME_UPPER")), 12, "MaxPool changed in opset 12", "SAME_UPPER")
	s := fed(10, drawn(1, 2, 7, 6), "ConvTranspose", onnx.StringAttr("auto_pad", "SAME_LOWER"))
	refused(t, s, 11, "ConvTranspose changed in opset 11", "SAME_LOWER")
}
