package onnx_test

import (
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"pgregory.net/rapid"

	"github.com/rope-rewrite/rope-rewrite/onnx/onnxpb"
)

// drawModel makes a random model that uses every part of the schema that views
// show, with fields that no schema knows at every level.
func drawModel(t *rapid.T) *onnxpb.ModelProto {
	m := &onnxpb.ModelProto{
		IrVersion: proto.Int64(rapid.Int64Range(0, 13).Draw(t, "ir")),
		DocString: proto.String(word(t)),
		Graph:     drawGraph(t, 0),
	}
	for range few(t, 3) {
		m.OpsetImport = append(m.OpsetImport, &onnxpb.OperatorSetIdProto{
			Domain: proto.String(word(t)), Version: proto.Int64(rapid.Int64Range(0, 30).Draw(t, "version"))})
	}
	for range few(t, 3) {
		m.MetadataProps = append(m.MetadataProps, &onnxpb.StringStringEntryProto{
			Key: proto.String(word(t)), Value: proto.String(word(t))})
	}
	for range few(t, 2) {
		m.Functions = append(m.Functions, &onnxpb.FunctionProto{
			Name: proto.String(word(t)), Input: words(t), Output: words(t), Attribute: words(t),
			Node: drawNodes(t, 1), AttributeProto: drawAttributes(t, 1), ValueInfo: drawValues(t)})
	}
	if few(t, 1) > 0 {
		m.TrainingInfo = []*onnxpb.TrainingInfoProto{{Algorithm: drawGraph(t, 2)}}
	}
	addUnknown(t, m.ProtoReflect())
	return m
}

func few(t *rapid.T, most int) int { return rapid.IntRange(0, most).Draw(t, "count") }

func word(t *rapid.T) string {
	return rapid.SampledFrom([]string{"", "a", "b", "longer"}).Draw(t, "word")
}

func words(t *rapid.T) []string { return rapid.SliceOfN(rapid.Custom(word), 0, 3).Draw(t, "words") }

func drawGraph(t *rapid.T, depth int) *onnxpb.GraphProto {
	g := &onnxpb.GraphProto{
		Name: proto.String(word(t)), DocString: proto.String(word(t)),
		Node: drawNodes(t, depth), Input: drawValues(t), Output: drawValues(t), ValueInfo: drawValues(t),
	}
	for range few(t, 3) {
		g.Initializer = append(g.Initializer, drawTensor(t))
	}
	for range few(t, 1) {
		g.SparseInitializer = append(g.SparseInitializer, &onnxpb.SparseTensorProto{
			Values: drawTensor(t), Indices: drawTensor(t), Dims: []int64{5}})
	}
	return g
}

func drawNodes(t *rapid.T, depth int) (nodes []*onnxpb.NodeProto) {
	for range few(t, 4) {
		nodes = append(nodes, &onnxpb.NodeProto{
			Name: proto.String(word(t)), OpType: proto.String(word(t)), Domain: proto.String(word(t)),
			Input: words(t), Output: words(t), Attribute: drawAttributes(t, depth),
			MetadataProps: []*onnxpb.StringStringEntryProto{{Key: proto.String(word(t))}},
		})
	}
	return nodes
}

func drawAttributes(t *rapid.T, depth int) (list []*onnxpb.AttributeProto) {
	for range few(t, 2) {
		a := &onnxpb.AttributeProto{Name: proto.String(word(t))}
		set := func(kind onnxpb.AttributeProto_AttributeType) { a.Type = &kind }
		switch rapid.IntRange(0, 6).Draw(t, "kind") {
		case 0:
			set(onnxpb.AttributeProto_INT)
			a.I = proto.Int64(rapid.Int64().Draw(t, "i"))
		case 1:
			set(onnxpb.AttributeProto_FLOATS)
			a.Floats = rapid.SliceOfN(rapid.Float32(), 0, 3).Draw(t, "floats")
		case 2:
			set(onnxpb.AttributeProto_STRING)
			a.S = []byte(word(t))
		case 3:
			set(onnxpb.AttributeProto_TENSOR)
			a.T = drawTensor(t)
		case 4:
			set(onnxpb.AttributeProto_INTS)
			a.Ints = rapid.SliceOfN(rapid.Int64(), 0, 3).Draw(t, "ints")
		case 5: // no type at all, as before IR version 3
			a.F = proto.Float32(1.5)
		default:
			if depth < 2 {
				set(onnxpb.AttributeProto_GRAPH)
				a.G = drawGraph(t, depth+1)
			}
		}
		list = append(list, a)
	}
	return list
}

func drawTensor(t *rapid.T) *onnxpb.TensorProto {
	p := &onnxpb.TensorProto{Name: proto.String(word(t)), Dims: rapid.SliceOfN(rapid.Int64Range(0, 3), 0, 3).Draw(t, "dims")}
	switch rapid.IntRange(0, 2).Draw(t, "form") {
	case 0:
		p.DataType, p.RawData = proto.Int32(1), rapid.SliceOfN(rapid.Byte(), 0, 16).Draw(t, "raw")
	case 1:
		p.DataType, p.Int32Data = proto.Int32(6), rapid.SliceOfN(rapid.Int32(), 0, 4).Draw(t, "int32s")
	default:
		place := onnxpb.TensorProto_EXTERNAL
		p.DataLocation = &place
		p.ExternalData = []*onnxpb.StringStringEntryProto{{Key: proto.String("location"), Value: proto.String("w.bin")}}
	}
	return p
}

func drawValues(t *rapid.T) (list []*onnxpb.ValueInfoProto) {
	for range few(t, 2) {
		shape := new(onnxpb.TensorShapeProto)
		for range few(t, 3) {
			d := &onnxpb.TensorShapeProto_Dimension{Denotation: proto.String(word(t))}
			switch rapid.IntRange(0, 2).Draw(t, "dim") {
			case 0:
				d.Value = &onnxpb.TensorShapeProto_Dimension_DimValue{DimValue: 4}
			case 1:
				d.Value = &onnxpb.TensorShapeProto_Dimension_DimParam{DimParam: "batch"}
			}
			shape.Dim = append(shape.Dim, d)
		}
		tensor := &onnxpb.TypeProto{Value: &onnxpb.TypeProto_TensorType{
			TensorType: &onnxpb.TypeProto_Tensor{ElemType: proto.Int32(1), Shape: shape}}}
		v := &onnxpb.ValueInfoProto{Name: proto.String(word(t)), Type: tensor, DocString: proto.String(word(t))}
		if rapid.Bool().Draw(t, "sequence") {
			v.Type = &onnxpb.TypeProto{Value: &onnxpb.TypeProto_SequenceType{
				SequenceType: &onnxpb.TypeProto_Sequence{ElemType: tensor}}}
		}
		list = append(list, v)
	}
	return list
}

// addUnknown gives a message, and sometimes each one inside it, a field that
// no schema knows.
func addUnknown(t *rapid.T, m protoreflect.Message) {
	if rapid.IntRange(0, 3).Draw(t, "unknown") == 0 {
		b := protowire.AppendTag(nil, 777, protowire.BytesType)
		b = protowire.AppendString(b, string(m.Descriptor().Name()))
		b = protowire.AppendTag(b, 778, protowire.VarintType)
		m.SetUnknown(protowire.AppendVarint(b, 5))
	}
	m.Range(func(f protoreflect.FieldDescriptor, v protoreflect.Value) bool {
		switch {
		case f.Message() == nil:
		case f.IsList():
			for i := range v.List().Len() {
				addUnknown(t, v.List().Get(i).Message())
			}
		default:
			addUnknown(t, v.Message())
		}
		return true
	})
}

// drawEncoding encodes a message as unusual writers may: fields in any order
// between the numbers, and lengths in more bytes than they need.
func drawEncoding(t *rapid.T, m *onnxpb.ModelProto) []byte {
	b, err := proto.MarshalOptions{Deterministic: true}.Marshal(m)
	if err != nil {
		t.Fatal(err)
	}
	return reencode(t, b, m.ProtoReflect().Descriptor())
}

func reencode(t *rapid.T, b []byte, d protoreflect.MessageDescriptor) []byte {
	groups := make(map[protowire.Number][][]byte)
	var order []protowire.Number
	for len(b) > 0 {
		num, typ, n := protowire.ConsumeField(b)
		record := b[:n]
		b = b[n:]
		if f := d.Fields().ByNumber(num); typ == protowire.BytesType && f != nil && f.Message() != nil {
			_, _, tag := protowire.ConsumeTag(record)
			body, _ := protowire.ConsumeBytes(record[tag:])
			body = reencode(t, body, f.Message())
			record = protowire.AppendTag(nil, num, protowire.BytesType)
			record = protowire.AppendVarint(record, uint64(len(body)))
			if rapid.Bool().Draw(t, "long") { // the same length in one more byte
				record[len(record)-1] |= 0x80
				record = append(record, 0)
			}
			record = append(record, body...)
		}
		if groups[num] == nil {
			order = append(order, num)
		}
		groups[num] = append(groups[num], record)
	}
	// Mix the records of different fields; the order within one field counts.
	var out []byte
	for len(order) > 0 {
		i := rapid.IntRange(0, len(order)-1).Draw(t, "next")
		num := order[i]
		out = append(out, groups[num][0]...)
		if groups[num] = groups[num][1:]; len(groups[num]) == 0 {
			order = append(order[:i], order[i+1:]...)
		}
	}
	return out
}
