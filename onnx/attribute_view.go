package onnx

import "github.com/rope-rewrite/rope-rewrite/onnx/onnxpb"

func (a *Attribute) origin() source { return a.src }

func (a *Attribute) original() view {
	o := &Attribute{src: a.src}
	_ = o.read(&reader{shallow: true}) // read before, so it cannot fail
	return o
}

func (a *Attribute) read(r *reader) error {
	var p onnxpb.AttributeProto
	hasBytes := false
	err := a.src.decode(&p, attributeSmall, func(rec record) error {
		switch rec.num {
		case attributeBytes:
			a.Bytes, hasBytes = rec.body, true
		case attributeTensor:
			if a.Tensor == nil {
				a.Tensor = &Tensor{}
			}
			a.Tensor.src = append(a.Tensor.src, rec.body)
		case attributeGraph:
			if a.Graph == nil {
				a.Graph = &Graph{}
			}
			a.Graph.src = append(a.Graph.src, rec.body)
		case attributeSparseTensor:
			if a.SparseTensor == nil {
				a.SparseTensor = &SparseTensor{}
			}
			a.SparseTensor.src = append(a.SparseTensor.src, rec.body)
		case attributeTensors:
			a.Tensors = append(a.Tensors, &Tensor{src: source{rec.body}})
		case attributeGraphs:
			a.Graphs = append(a.Graphs, &Graph{src: source{rec.body}})
		case attributeSparseTensors:
			a.SparseTensors = append(a.SparseTensors, &SparseTensor{src: source{rec.body}})
		}
		return nil
	})
	a.Name, a.RefName, a.Type = p.GetName(), p.GetRefAttrName(), AttributeType(p.GetType())
	a.Float, a.Int = p.GetF(), p.GetI()
	a.Floats, a.Ints, a.Strings = p.GetFloats(), p.GetInts(), p.GetStrings()
	if err != nil {
		return err
	}
	if a.Type == AttrUndefined {
		a.Type = a.guessType(&p, hasBytes)
	}
	for _, child := range a.children() {
		if err := r.open(child.child); err != nil {
			return err
		}
	}
	return nil
}

// guessType finds the type by the field that is set: models older than IR
// version 3 do not tell it.
func (a *Attribute) guessType(p *onnxpb.AttributeProto, hasBytes bool) AttributeType {
	for _, c := range []struct {
		set bool
		t   AttributeType
	}{
		{p.F != nil, AttrFloat},
		{p.I != nil, AttrInt},
		{hasBytes, AttrString},
		{a.Tensor != nil, AttrTensor},
		{a.Graph != nil, AttrGraph},
		{a.SparseTensor != nil, AttrSparseTensor},
		{len(a.Floats) > 0, AttrFloats},
		{len(a.Ints) > 0, AttrInts},
		{len(a.Strings) > 0, AttrStrings},
		{len(a.Tensors) > 0, AttrTensors},
		{len(a.Graphs) > 0, AttrGraphs},
		{len(a.SparseTensors) > 0, AttrSparseTensors},
	} {
		if c.set {
			return c.t
		}
	}
	return AttrUndefined
}

// children returns all views inside the attribute, whatever its type.
func (a *Attribute) children() []field {
	var out []field
	if a.Tensor != nil {
		out = append(out, field{num: attributeTensor, child: a.Tensor})
	}
	if a.Graph != nil {
		out = append(out, field{num: attributeGraph, child: a.Graph})
	}
	if a.SparseTensor != nil {
		out = append(out, field{num: attributeSparseTensor, child: a.SparseTensor})
	}
	out = append(out, childFields(attributeTensors, a.Tensors...)...)
	out = append(out, childFields(attributeGraphs, a.Graphs...)...)
	return append(out, childFields(attributeSparseTensors, a.SparseTensors...)...)
}

func (a *Attribute) fields() []field {
	t := onnxpb.AttributeProto_AttributeType(a.Type)
	p := &onnxpb.AttributeProto{
		Name: text(a.Name), RefAttrName: text(a.RefName), Type: &t,
		Floats: a.Floats, Ints: a.Ints, Strings: a.Strings,
	}
	// A single number is written even if it is zero: the field must be there.
	if a.RefName == "" {
		switch a.Type {
		case AttrFloat:
			p.F = &a.Float
		case AttrInt:
			p.I = &a.Int
		}
	}
	out := append(smallFields(p), a.children()...)
	if a.Type == AttrString && a.RefName == "" {
		out = append(out, field{num: attributeBytes, blob: a.Bytes})
	}
	return out
}
