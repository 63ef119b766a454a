package onnx

import "google.golang.org/protobuf/encoding/protowire"

// Numbers of the fields that hold other views or large contents and are
// therefore read by hand, from onnxpb/onnx.proto.
const (
	modelGraph     = 7
	modelTraining  = 20
	modelFunctions = 25

	trainingInitialization = 1
	trainingAlgorithm      = 2

	functionNode      = 7
	functionAttribute = 11
	functionValueInfo = 12

	graphNode        = 1
	graphInitializer = 5
	graphInput       = 11
	graphOutput      = 12
	graphValueInfo   = 13
	graphSparse      = 15

	nodeAttribute = 5

	attributeBytes         = 4
	attributeTensor        = 5
	attributeGraph         = 6
	attributeTensors       = 10
	attributeGraphs        = 11
	attributeSparseTensor  = 22
	attributeSparseTensors = 23

	tensorFloats  = 4
	tensorInt32s  = 5
	tensorStrings = 6
	tensorInt64s  = 7
	tensorRaw     = 9
	tensorDoubles = 10
	tensorUint64s = 11

	sparseValues  = 1
	sparseIndices = 2
)

// fieldSet is a set of field numbers below 64, one bit each.
type fieldSet uint64

// The small fields of each message that its view shows. They are decoded and
// encoded by the generated code; all other fields of the message only pass
// through.
var (
	modelSmall     = setOf(1, 2, 3, 4, 5, 6, 8, 14)  // ir_version … doc_string, opset_import, metadata_props
	functionSmall  = setOf(1, 4, 5, 6, 9, 10, 13)    // name, input, output, attribute, opset_import, domain, overload
	graphSmall     = setOf(2)                        // name
	nodeSmall      = setOf(1, 2, 3, 4, 7, 8)         // input, output, name, op_type, domain, overload
	attributeSmall = setOf(1, 2, 3, 7, 8, 9, 20, 21) // name, f, i, floats, ints, strings, type, ref_attr_name
	tensorSmall    = setOf(1, 2, 8, 13, 14)          // dims, data_type, name, external_data, data_location
	sparseSmall    = setOf(3)                        // dims
	valueInfoSmall = setOf(1, 2)                     // name, type
)

func setOf(numbers ...uint) (s fieldSet) {
	for _, n := range numbers {
		s |= 1 << n
	}
	return s
}

func (s fieldSet) has(n protowire.Number) bool { return n < 64 && s>>uint(n)&1 == 1 }
