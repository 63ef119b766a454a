package onnx

import (
	"errors"
	"fmt"

	"google.golang.org/protobuf/proto"

	"github.com/rope-rewrite/rope-rewrite/internal/short"
	"github.com/rope-rewrite/rope-rewrite/onnx/onnxpb"
)

func (m *Model) origin() source { return m.src }

func (m *Model) original() view {
	o := &Model{src: m.src}
	_ = o.read(&reader{shallow: true}) // read before, so it cannot fail
	return o
}

func (m *Model) read(r *reader) error {
	var p onnxpb.ModelProto
	err := m.src.decode(&p, modelSmall, func(rec record) error {
		switch rec.num {
		case modelGraph:
			if m.Graph == nil {
				m.Graph = new(Graph)
			}
			m.Graph.src = append(m.Graph.src, rec.body)
		case modelFunctions:
			f := &Function{src: source{rec.body}}
			m.Functions = append(m.Functions, f)
			return r.openAt(f, func() string { return fmt.Sprintf("function %q", short.Name(f.Name)) })
		case modelTraining:
			t := &Training{src: source{rec.body}}
			m.Training = append(m.Training, t)
			return r.openAt(t, func() string { return "training information" })
		}
		return nil
	})
	if err != nil {
		return err
	}
	m.IRVersion, m.ModelVersion = p.GetIrVersion(), p.GetModelVersion()
	m.ProducerName, m.ProducerVersion = p.GetProducerName(), p.GetProducerVersion()
	m.Domain, m.DocString = p.GetDomain(), p.GetDocString()
	m.opsets = opsetsOf(p.GetOpsetImport())
	for _, e := range p.GetMetadataProps() {
		m.metadata = append(m.metadata, entry{e.GetKey(), e.GetValue()})
	}
	if m.Graph == nil {
		return errors.New("it holds no graph")
	}
	return r.open(m.Graph)
}

func (m *Model) fields() []field {
	p := &onnxpb.ModelProto{
		ProducerName: text(m.ProducerName), ProducerVersion: text(m.ProducerVersion),
		Domain: text(m.Domain), DocString: text(m.DocString),
		OpsetImport: opsetMessages(m.opsets),
	}
	if m.IRVersion != 0 {
		p.IrVersion = &m.IRVersion
	}
	if m.ModelVersion != 0 {
		p.ModelVersion = &m.ModelVersion
	}
	for _, e := range m.metadata {
		p.MetadataProps = append(p.MetadataProps, &onnxpb.StringStringEntryProto{
			Key: proto.String(e.key), Value: proto.String(e.value),
		})
	}
	out := smallFields(p)
	if m.Graph != nil {
		out = append(out, field{num: modelGraph, child: m.Graph})
	}
	out = append(out, childFields(modelFunctions, m.Functions...)...)
	return append(out, childFields(modelTraining, m.Training...)...)
}
