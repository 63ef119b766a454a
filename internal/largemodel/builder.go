package largemodel

import (
	"fmt"
	"math"
	"strconv"

	"google.golang.org/protobuf/proto"

	"github.com/rope-rewrite/rope-rewrite/onnx/onnxpb"
)

// builder adds to a graph; its methods return the name of the value made.
type builder struct {
	graph *onnxpb.GraphProto
	size  int64 // bytes of the weights so far
	count int
}

func (b *builder) fresh(kind string) string {
	b.count++
	return fmt.Sprintf("%s_%d", kind, b.count)
}

func (b *builder) node(op string, inputs []string, attributes ...*onnxpb.AttributeProto) string {
	return b.named(op, inputs, b.fresh(op), attributes...)
}

func (b *builder) named(op string, inputs []string, output string, attributes ...*onnxpb.AttributeProto) string {
	b.graph.Node = append(b.graph.Node, &onnxpb.NodeProto{
		Name: proto.String("node_" + output), OpType: proto.String(op), Input: inputs, Output: []string{output}, Attribute: attributes,
	})
	return output
}

// weight is a float32 tensor in the data file.
func (b *builder) weight(name string, dims ...int64) string {
	bytes := int64(4)
	for _, d := range dims {
		bytes *= d
	}
	entry := func(key, value string) *onnxpb.StringStringEntryProto {
		return &onnxpb.StringStringEntryProto{Key: proto.String(key), Value: proto.String(value)}
	}
	b.graph.Initializer = append(b.graph.Initializer, &onnxpb.TensorProto{
		Name: proto.String(name), Dims: dims, DataType: proto.Int32(int32(onnxpb.TensorProto_FLOAT)),
		DataLocation: onnxpb.TensorProto_EXTERNAL.Enum(),
		ExternalData: []*onnxpb.StringStringEntryProto{
			entry("location", DataFile), entry("offset", strconv.FormatInt(b.size, 10)), entry("length", strconv.FormatInt(bytes, 10)),
		},
	})
	b.size += bytes
	return name
}

func (b *builder) constant(t *onnxpb.TensorProto) string {
	t.Name = proto.String(b.fresh("constant"))
	b.graph.Initializer = append(b.graph.Initializer, t)
	return t.GetName()
}

func (b *builder) ints(values ...int64) string {
	return b.constant(&onnxpb.TensorProto{Dims: []int64{int64(len(values))}, DataType: proto.Int32(int32(onnxpb.TensorProto_INT64)), Int64Data: values})
}

func (b *builder) scalar(value int64) string {
	return b.constant(&onnxpb.TensorProto{DataType: proto.Int32(int32(onnxpb.TensorProto_INT64)), Int64Data: []int64{value}})
}

func (b *builder) float(value float64) string {
	return b.constant(&onnxpb.TensorProto{DataType: proto.Int32(int32(onnxpb.TensorProto_FLOAT)), FloatData: []float32{float32(value)}})
}

// frequencies are θ^(−2i/n) for the n/2 pairs of a head; RoFormer, section 3.2.2.
func (b *builder) frequencies(theta float64, n int64) string {
	values := make([]float32, n/2)
	for i := range values {
		values[i] = float32(math.Pow(theta, -2*float64(i)/float64(n)))
	}
	return b.constant(&onnxpb.TensorProto{Dims: []int64{1, 1, n / 2}, DataType: proto.Int32(int32(onnxpb.TensorProto_FLOAT)), FloatData: values})
}

func rootInverse(n int64) float64 { return 1 / math.Sqrt(float64(n)) }

// input and output take dimensions that are numbers or names.
func (b *builder) input(name string, t onnxpb.TensorProto_DataType, dims ...any) {
	b.graph.Input = append(b.graph.Input, value(name, t, dims))
}

func (b *builder) output(name string, dims ...any) {
	b.graph.Output = append(b.graph.Output, value(name, onnxpb.TensorProto_FLOAT, dims))
}

func value(name string, t onnxpb.TensorProto_DataType, dims []any) *onnxpb.ValueInfoProto {
	shape := &onnxpb.TensorShapeProto{}
	for _, d := range dims {
		dimension := &onnxpb.TensorShapeProto_Dimension{}
		switch d := d.(type) {
		case string:
			dimension.Value = &onnxpb.TensorShapeProto_Dimension_DimParam{DimParam: d}
		case int64:
			dimension.Value = &onnxpb.TensorShapeProto_Dimension_DimValue{DimValue: d}
		}
		shape.Dim = append(shape.Dim, dimension)
	}
	return &onnxpb.ValueInfoProto{Name: proto.String(name), Type: &onnxpb.TypeProto{Value: &onnxpb.TypeProto_TensorType{
		TensorType: &onnxpb.TypeProto_Tensor{ElemType: proto.Int32(int32(t)), Shape: shape},
	}}}
}

func integer(name string, value int64) *onnxpb.AttributeProto {
	return &onnxpb.AttributeProto{Name: proto.String(name), Type: onnxpb.AttributeProto_INT.Enum(), I: proto.Int64(value)}
}

func integers(name string, values ...int64) *onnxpb.AttributeProto {
	return &onnxpb.AttributeProto{Name: proto.String(name), Type: onnxpb.AttributeProto_INTS.Enum(), Ints: values}
}
