package onnx_test

import (
	"bytes"
	"encoding/binary"
	"errors"
	"math"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"google.golang.org/protobuf/proto"
	"pgregory.net/rapid"

	"github.com/rope-rewrite/rope-rewrite/onnx"
	"github.com/rope-rewrite/rope-rewrite/onnx/onnxpb"
)

// parsed returns a tensor as it reads in a model.
func parsed(t testing.TB, p *onnxpb.TensorProto) *onnx.Tensor {
	t.Helper()
	m := smallModel()
	m.Graph.Initializer = []*onnxpb.TensorProto{p}
	model, err := onnx.Parse(message(m))
	if err != nil {
		t.Fatal(err)
	}
	return model.Graph.Initializers[0]
}

func TestContentsOfEveryForm(t *testing.T) {
	f32 := func(v ...float32) (b []byte) {
		for _, x := range v {
			b = binary.LittleEndian.AppendUint32(b, math.Float32bits(x))
		}
		return b
	}
	f64 := func(v ...float64) (b []byte) {
		for _, x := range v {
			b = binary.LittleEndian.AppendUint64(b, math.Float64bits(x))
		}
		return b
	}
	for name, c := range map[string]struct {
		tensor *onnxpb.TensorProto
		typ    onnx.DataType
		dims   []int64
		want   []byte
	}{
		"float_data":         {&onnxpb.TensorProto{FloatData: []float32{1.5, -2}}, onnx.Float, []int64{2}, f32(1.5, -2)},
		"complex64":          {&onnxpb.TensorProto{FloatData: []float32{1, 2, 3, 4}}, onnx.Complex64, []int64{2}, f32(1, 2, 3, 4)},
		"double_data":        {&onnxpb.TensorProto{DoubleData: []float64{1e300}}, onnx.Double, nil, f64(1e300)},
		"complex128":         {&onnxpb.TensorProto{DoubleData: []float64{1, 2}}, onnx.Complex128, nil, f64(1, 2)},
		"int64_data":         {&onnxpb.TensorProto{Int64Data: []int64{-1, 1 << 40}}, onnx.Int64, []int64{2}, []byte{255, 255, 255, 255, 255, 255, 255, 255, 0, 0, 0, 0, 0, 1, 0, 0}},
		"uint64_data":        {&onnxpb.TensorProto{Uint64Data: []uint64{math.MaxUint64}}, onnx.Uint64, []int64{1}, bytes.Repeat([]byte{255}, 8)},
		"uint32 in uint64s":  {&onnxpb.TensorProto{Uint64Data: []uint64{7}}, onnx.Uint32, []int64{1}, []byte{7, 0, 0, 0}},
		"int32":              {&onnxpb.TensorProto{Int32Data: []int32{-2}}, onnx.Int32, []int64{1}, []byte{254, 255, 255, 255}},
		"int16 in int32s":    {&onnxpb.TensorProto{Int32Data: []int32{-2}}, onnx.Int16, []int64{1}, []byte{254, 255}},
		"int8 in int32s":     {&onnxpb.TensorProto{Int32Data: []int32{-2, 3}}, onnx.Int8, []int64{2}, []byte{254, 3}},
		"uint8 in int32s":    {&onnxpb.TensorProto{Int32Data: []int32{200}}, onnx.Uint8, []int64{1}, []byte{200}},
		"bool in int32s":     {&onnxpb.TensorProto{Int32Data: []int32{1, 0}}, onnx.Bool, []int64{2}, []byte{1, 0}},
		"float16 in int32s":  {&onnxpb.TensorProto{Int32Data: []int32{0x3c00}}, onnx.Float16, []int64{1}, []byte{0, 0x3c}},
		"bfloat16 in int32s": {&onnxpb.TensorProto{Int32Data: []int32{0x3f80}}, onnx.BFloat16, []int64{1}, []byte{0x80, 0x3f}},
		"int4 in int32s":     {&onnxpb.TensorProto{Int32Data: []int32{0x21, 0x03}}, onnx.Int4, []int64{3}, []byte{0x21, 0x03}},
		"uint2, five":        {&onnxpb.TensorProto{Int32Data: []int32{0x1b, 0x02}}, onnx.Uint2, []int64{5}, []byte{0x1b, 0x02}},
		"float8 in int32s":   {&onnxpb.TensorProto{Int32Data: []int32{0x38}}, onnx.Float8E4M3FN, []int64{1}, []byte{0x38}},
		"float6, raw":        {&onnxpb.TensorProto{RawData: make([]byte, 6)}, onnx.Float6E2M3, []int64{7}, make([]byte, 6)},
		"raw":                {&onnxpb.TensorProto{RawData: []byte{1, 2, 3, 4}}, onnx.Int16, []int64{1, 2}, []byte{1, 2, 3, 4}},
		"raw before typed":   {&onnxpb.TensorProto{RawData: []byte{9}, Int32Data: []int32{1}}, onnx.Uint8, []int64{1}, []byte{9}},
		"no elements":        {&onnxpb.TensorProto{}, onnx.Float, []int64{3, 0}, nil},
	} {
		c.tensor.DataType, c.tensor.Dims = proto.Int32(int32(c.typ)), c.dims
		tensor := parsed(t, c.tensor)
		got, err := tensor.Bytes()
		if err != nil || !bytes.Equal(got, c.want) {
			t.Errorf("%s: %x (%v), want %x", name, got, err, c.want)
		}
		if tensor.ByteLen() != int64(len(c.want)) {
			t.Errorf("%s: ByteLen %d, want %d", name, tensor.ByteLen(), len(c.want))
		}
	}
}

func TestContentsThatDoNotFit(t *testing.T) {
	for name, p := range map[string]*onnxpb.TensorProto{
		"raw too short":   {DataType: proto.Int32(1), Dims: []int64{2}, RawData: make([]byte, 7)},
		"raw too long":    {DataType: proto.Int32(1), Dims: []int64{2}, RawData: make([]byte, 9)},
		"none":            {DataType: proto.Int32(1), Dims: []int64{2}},
		"typed too short": {DataType: proto.Int32(7), Dims: []int64{2}, Int64Data: []int64{1}},
		"typed too long":  {DataType: proto.Int32(7), Dims: []int64{2}, Int64Data: []int64{1, 2, 3}},
		"wrong list":      {DataType: proto.Int32(1), Dims: []int64{1}, Int64Data: []int64{1}},
		"float6 list":     {DataType: proto.Int32(27), Dims: []int64{1}, Int32Data: []int32{1}},
		"huge":            {DataType: proto.Int32(1), Dims: []int64{1 << 60}, FloatData: []float32{1}},
	} {
		p.Name = proto.String("w")
		if b, err := parsed(t, p).Bytes(); err == nil || !strings.Contains(err.Error(), `tensor "w"`) {
			t.Errorf("%s: %d bytes, error %v", name, len(b), err)
		}
	}
	if _, err := parsed(t, &onnxpb.TensorProto{DataType: proto.Int32(8), StringData: [][]byte{{1}}}).Bytes(); err == nil {
		t.Error("strings have raw bytes")
	}
}

func TestStrings(t *testing.T) {
	w := parsed(t, &onnxpb.TensorProto{DataType: proto.Int32(8), Dims: []int64{2}, StringData: [][]byte{[]byte("a"), {0xff}}})
	got, err := w.Strings()
	if err != nil || len(got) != 2 || string(got[0]) != "a" || string(got[1]) != "\xff" {
		t.Errorf("%q, %v", got, err)
	}
	w.Dims = []int64{3}
	if _, err := w.Strings(); !errors.Is(err, onnx.ErrFormat) {
		t.Errorf("two strings for three elements: %v", err)
	}
}

func TestNumbers(t *testing.T) {
	for typ, c := range map[onnx.DataType]struct {
		raw  []byte
		want float64
	}{
		onnx.Float:    {[]byte{0, 0, 0x20, 0xc0}, -2.5},
		onnx.Double:   {[]byte{0, 0, 0, 0, 0, 0, 4, 0xc0}, -2.5},
		onnx.Float16:  {[]byte{0x00, 0xc1}, -2.5},
		onnx.BFloat16: {[]byte{0x20, 0xc0}, -2.5},
		onnx.Int8:     {[]byte{0xfe}, -2},
		onnx.Uint8:    {[]byte{0xfe}, 254},
		onnx.Bool:     {[]byte{1}, 1},
		onnx.Int16:    {[]byte{0xfe, 0xff}, -2},
		onnx.Uint16:   {[]byte{0xfe, 0xff}, 65534},
		onnx.Int32:    {[]byte{0xfe, 0xff, 0xff, 0xff}, -2},
		onnx.Uint32:   {[]byte{0xfe, 0xff, 0xff, 0xff}, 4294967294},
		onnx.Int64:    {[]byte{0xfe, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff}, -2},
	} {
		w := onnx.NewTensor("w", typ, []int64{1}, c.raw)
		doubles, err := w.Float64s()
		if err != nil || doubles[0] != c.want {
			t.Errorf("%s as float64: %v, %v; want %v", typ, doubles, err, c.want)
		}
		floats, err := w.Floats()
		if err != nil || floats[0] != float32(c.want) {
			t.Errorf("%s as float32: %v, %v; want %v", typ, floats, err, c.want)
		}
		ints, err := w.Int64s()
		if c.want != math.Trunc(c.want) {
			if err == nil {
				t.Errorf("%s was converted to integers", typ)
			}
		} else if err != nil || ints[0] != int64(c.want) {
			t.Errorf("%s as int64: %v, %v; want %v", typ, ints, err, c.want)
		}
	}
	if _, err := onnx.NewTensor("w", onnx.Complex64, nil, make([]byte, 8)).Floats(); err == nil {
		t.Error("a complex number was converted")
	}
}

func TestNewTensorsComeBack(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		dims := rapid.SliceOfN(rapid.Int64Range(0, 4), 0, 4).Draw(t, "dims")
		w := onnx.NewTensor("w", onnx.Float16, dims, nil)
		raw := rapid.SliceOfN(rapid.Byte(), int(w.ByteLen()), int(w.ByteLen())).Draw(t, "raw")
		m := onnx.New()
		m.Graph.AddInitializer(onnx.NewTensor("w", onnx.Float16, dims, raw))
		data, err := m.Marshal()
		if err != nil {
			t.Fatal(err)
		}
		again, err := onnx.Parse(data)
		if err != nil {
			t.Fatal(err)
		}
		got := again.Graph.Initializers[0]
		b, err := got.Bytes()
		if err != nil || !bytes.Equal(b, raw) || !slices.Equal(got.Dims, dims) || got.Type != onnx.Float16 {
			t.Fatalf("%+v %x, %v", got, b, err)
		}
	})
}

// Weights stay where they are, also those inside a Constant node.
func TestContentsAreNotCopied(t *testing.T) {
	big := bytes.Repeat([]byte{7}, 1<<20)
	kind := onnxpb.AttributeProto_TENSOR
	m := smallModel()
	m.Graph.Initializer = []*onnxpb.TensorProto{{Name: proto.String("w"), DataType: proto.Int32(2), Dims: []int64{1 << 20}, RawData: big}}
	m.Graph.Node = append(m.Graph.Node, &onnxpb.NodeProto{OpType: proto.String("Constant"), Attribute: []*onnxpb.AttributeProto{
		{Name: proto.String("value"), Type: &kind, T: m.Graph.Initializer[0]}}})
	data := message(m)
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	model, err := onnx.Parse(data)
	if err != nil {
		t.Fatal(err)
	}
	for _, w := range []*onnx.Tensor{model.Graph.Initializers[0], model.Graph.Nodes[1].Tensor("value")} {
		if got, err := w.Bytes(); err != nil || len(got) != 1<<20 {
			t.Fatalf("%d bytes, %v", len(got), err)
		}
	}
	model.Graph.Nodes[1].Name = "changed"
	model.Graph.InsertNode(nil, onnx.NewNode("Identity", nil, nil))
	out := filepath.Join(t.TempDir(), "out.onnx")
	if err := model.Save(out, onnx.SaveOptions{}); err != nil {
		t.Fatal(err)
	}
	runtime.ReadMemStats(&after)
	if n := after.TotalAlloc - before.TotalAlloc; n > 1<<19 {
		t.Errorf("reading, changing and saving a model of 2 MiB of weights allocated %d bytes", n)
	}
}
