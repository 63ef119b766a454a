package onnx

import (
	"slices"

	"google.golang.org/protobuf/proto"

	"github.com/rope-rewrite/rope-rewrite/onnx/onnxpb"
)

// Function is a model-local function: a node whose Domain, OpType and Overload
// name it stands for the function's body. It may be changed like a Graph.
type Function struct {
	Name     string
	Domain   string
	Overload string
	Inputs   []string
	Outputs  []string

	AttributeNames []string     // attributes that a caller must give
	Attributes     []*Attribute // attributes with their default values
	Nodes          []*Node
	ValueInfo      []*ValueInfo
	Opsets         []Opset // operator sets that the body's nodes use

	src source
}

// Opset is one version of one domain of operators. The standard domain is "".
type Opset struct {
	Domain  string
	Version int64
}

// Size is how many bytes the function takes in a file.
func (f *Function) Size() int {
	c, _ := encode(f)
	return int(c.size)
}

// Clone returns a copy that can be changed without changing f. Tensor contents are shared.
func (f *Function) Clone() *Function {
	c := *f
	c.Inputs, c.Outputs, c.AttributeNames = slices.Clone(f.Inputs), slices.Clone(f.Outputs), slices.Clone(f.AttributeNames)
	c.Attributes, c.Nodes, c.ValueInfo = cloneAll(f.Attributes), cloneAll(f.Nodes), cloneAll(f.ValueInfo)
	c.Opsets = slices.Clone(f.Opsets)
	return &c
}

func (f *Function) origin() source { return f.src }

func (f *Function) original() view {
	o := &Function{src: f.src}
	_ = o.read(&reader{shallow: true}) // read before, so it cannot fail
	return o
}

func (f *Function) read(r *reader) error {
	var p onnxpb.FunctionProto
	err := f.src.decode(&p, functionSmall, func(rec record) error {
		switch rec.num {
		case functionNode:
			return openNode(r, &f.Nodes, rec)
		case functionAttribute:
			f.Attributes = append(f.Attributes, &Attribute{src: source{rec.body}})
		case functionValueInfo:
			return openValue(r, &f.ValueInfo, rec)
		}
		return nil
	})
	f.Name, f.Domain, f.Overload = p.GetName(), p.GetDomain(), p.GetOverload()
	f.Inputs, f.Outputs, f.AttributeNames = p.GetInput(), p.GetOutput(), p.GetAttribute()
	f.Opsets = opsetsOf(p.GetOpsetImport())
	if err != nil {
		return err
	}
	return openAttributes(r, f.Attributes)
}

func (f *Function) fields() []field {
	out := smallFields(&onnxpb.FunctionProto{
		Name: text(f.Name), Domain: text(f.Domain), Overload: text(f.Overload),
		Input: f.Inputs, Output: f.Outputs, Attribute: f.AttributeNames,
		OpsetImport: opsetMessages(f.Opsets),
	})
	out = append(out, childFields(functionNode, f.Nodes...)...)
	out = append(out, childFields(functionAttribute, f.Attributes...)...)
	return append(out, childFields(functionValueInfo, f.ValueInfo...)...)
}

func opsetsOf(list []*onnxpb.OperatorSetIdProto) (out []Opset) {
	for _, p := range list {
		out = append(out, Opset{Domain: p.GetDomain(), Version: p.GetVersion()})
	}
	return out
}

func opsetMessages(list []Opset) (out []*onnxpb.OperatorSetIdProto) {
	for _, o := range list {
		out = append(out, &onnxpb.OperatorSetIdProto{Domain: text(o.Domain), Version: proto.Int64(o.Version)})
	}
	return out
}
