package opset

import (
	"slices"
	"strings"

	"github.com/rope-rewrite/rope-rewrite/onnx"
)

// change is what a version did to operators so that a node of the version before is no
// longer read as it was.
type change struct {
	since   int64
	ops     string // separated by spaces
	what    string // changed
	convert func(*step) ([]*onnx.Node, error)
}

// changes are all of them. Where the operators' texts leave open what an old node meant,
// or what a runtime made of it depends on the runtime, the conversion refuses.
func changes() []change {
	return []change{
		{9, "BatchNormalization", "the attribute spatial was removed", withoutSpatial},
		{9, "Scan", "batches and lengths of sequences were removed", refuse},
		{9, "Upsample", "scales became an input", scalesToInput},
		{10, "Dropout", "the mask became boolean", withoutMask},
		{10, "Slice", "starts, ends and axes became inputs", sliceInputs},
		{10, "TopK", "k became an input", kToInput},
		{10, "Upsample", "Resize replaced it", renamed("Resize")},
		{11, "AveragePool", "auto_pad and ceil_mode are described differently", plainPadding},
		{11, "Clip", "min and max became inputs", limitsToInputs},
		{11, "ConvTranspose", "auto_pad SAME_UPPER and SAME_LOWER were exchanged", plainPadding},
		{11, "OneHot", "an index below zero now counts from the end", refuse},
		{11, "Pad", "pads and value became inputs", padsToInputs},
		{11, "Resize", "a region became an input, and attributes say how coordinates are computed", coordinates},
		{11, "Scatter", "ScatterElements replaced it", renamed("ScatterElements")},
		{12, "Dropout", "ratio became an input, and the mask has other values", ratioToInput},
		{12, "MaxPool", "auto_pad and ceil_mode are described differently", plainPadding},
		{13, "Erf", "integers are no longer allowed", unchanged}, // no runtime computed them
		{13, "Hardmax LogSoftmax Softmax", "axis now names one axis, instead of all axes from it on, and has another default", oneAxis},
		{13, "ReduceSum", "axes became an input", axesToInput},
		{13, "Resize", "scales and sizes exclude each other, and a way to compute coordinates was removed", scalesOrSizes},
		{13, "Split", "the sizes became an input", sizesToInput},
		{13, "Squeeze Unsqueeze", "axes became an input", axesToInput},
		{14, "BatchNormalization", "outputs of training changed", onlyFirstOutput},
		{16, "RoiAlign", "coordinates are shifted by half a pixel unless an attribute says otherwise", unshifted},
		{18, "ReduceL1 ReduceL2 ReduceLogSum ReduceLogSumExp ReduceMax ReduceMean ReduceMin ReduceProd ReduceSumSquare", "axes became an input", axesToInput},
		{18, "Split", "the number of parts must be given if their sizes are not", countParts},
		{19, "AveragePool", "auto_pad and ceil_mode are described differently", plainPadding},
		{20, "DFT", "axis became an input with another default", axisToInput},
		{20, "GridSample", "the modes have other names", modeNames},
		{22, "AveragePool MaxPool", "windows that begin in the padding on the right no longer count", plainPadding},
	}
}

// ofRuntime are operators that ONNX Runtime has in the standard domain, and ONNX has not or
// not yet: their last version that ONNX does not know, 0 for all. All compute the same.
func ofRuntime() map[string]int64 {
	return map[string]int64{
		"LayerNormalization":           16,
		"SimplifiedLayerNormalization": 0,
	}
}

// changeAt returns what a version did to an operator, nil where nothing was.
func changeAt(list []change, op string, since int64) *change {
	for i, c := range list {
		if c.since == since && slices.Contains(strings.Fields(c.ops), op) {
			return &list[i]
		}
	}
	return nil
}
