package onnx

import (
	"testing"

	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/rope-rewrite/rope-rewrite/onnx/onnxpb"
)

func TestFieldNumbersAreThoseOfTheSchema(t *testing.T) {
	type table map[protoreflect.Name]protowire.Number
	for _, c := range []struct {
		message proto.Message
		small   fieldSet
		shown   []protoreflect.Name // by the generated code
		byHand  table
	}{
		{&onnxpb.ModelProto{}, modelSmall,
			[]protoreflect.Name{"ir_version", "producer_name", "producer_version", "domain", "model_version", "doc_string", "opset_import", "metadata_props"},
			table{"graph": modelGraph, "training_info": modelTraining, "functions": modelFunctions}},
		{&onnxpb.TrainingInfoProto{}, 0, nil,
			table{"initialization": trainingInitialization, "algorithm": trainingAlgorithm}},
		{&onnxpb.FunctionProto{}, functionSmall,
			[]protoreflect.Name{"name", "input", "output", "attribute", "opset_import", "domain", "overload"},
			table{"node": functionNode, "attribute_proto": functionAttribute, "value_info": functionValueInfo}},
		{&onnxpb.GraphProto{}, graphSmall, []protoreflect.Name{"name"},
			table{"node": graphNode, "initializer": graphInitializer, "input": graphInput, "output": graphOutput,
				"value_info": graphValueInfo, "sparse_initializer": graphSparse}},
		{&onnxpb.NodeProto{}, nodeSmall,
			[]protoreflect.Name{"input", "output", "name", "op_type", "domain", "overload"},
			table{"attribute": nodeAttribute}},
		{&onnxpb.AttributeProto{}, attributeSmall,
			[]protoreflect.Name{"name", "f", "i", "floats", "ints", "strings", "type", "ref_attr_name"},
			table{"s": attributeBytes, "t": attributeTensor, "g": attributeGraph, "tensors": attributeTensors,
				"graphs": attributeGraphs, "sparse_tensor": attributeSparseTensor, "sparse_tensors": attributeSparseTensors}},
		{&onnxpb.TensorProto{}, tensorSmall,
			[]protoreflect.Name{"dims", "data_type", "name", "external_data", "data_location"},
			table{"float_data": tensorFloats, "int32_data": tensorInt32s, "string_data": tensorStrings,
				"int64_data": tensorInt64s, "raw_data": tensorRaw, "double_data": tensorDoubles, "uint64_data": tensorUint64s}},
		{&onnxpb.SparseTensorProto{}, sparseSmall, []protoreflect.Name{"dims"},
			table{"values": sparseValues, "indices": sparseIndices}},
		{&onnxpb.ValueInfoProto{}, valueInfoSmall, []protoreflect.Name{"name", "type"}, nil},
	} {
		d := c.message.ProtoReflect().Descriptor()
		var want fieldSet
		for _, name := range c.shown {
			want |= setOf(uint(d.Fields().ByName(name).Number()))
		}
		if want != c.small {
			t.Errorf("%s: the set of small fields is %b, want %b", d.Name(), c.small, want)
		}
		for name, number := range c.byHand {
			if f := d.Fields().ByName(name); f == nil || f.Number() != number {
				t.Errorf("%s.%s is not %d", d.Name(), name, number)
			}
		}
	}
	for number := range dataTypes {
		if _, ok := onnxpb.TensorProto_DataType_name[int32(number)]; !ok {
			t.Errorf("the schema has no data type %d", number)
		}
	}
	if len(dataTypes) != len(onnxpb.TensorProto_DataType_name) {
		t.Errorf("%d data types, the schema has %d", len(dataTypes), len(onnxpb.TensorProto_DataType_name))
	}
}
