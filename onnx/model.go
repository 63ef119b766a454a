package onnx

import (
	"errors"
	"iter"
	"slices"
)

// Model is an ONNX model: one opened from a file, whose contents are mapped
// and only read where they are looked at, or one built in memory.
//
// Its fields may be read and changed freely. On saving, what differs from the
// file that the model came from is written anew and everything else, unknown
// fields included, is copied from there; a model in which nothing was changed
// is written byte for byte unchanged. A Model must not be used by several
// goroutines while one of them changes it.
type Model struct {
	Path string // as given to Open, else ""

	IRVersion       int64
	ProducerName    string
	ProducerVersion string
	Domain          string
	ModelVersion    int64
	DocString       string
	Graph           *Graph
	Functions       []*Function
	Training        []*Training

	opsets   []Opset
	metadata []entry
	src      source
	folder   *folder
	file     *mapping // nil unless the model came from a file
}

type entry struct{ key, value string }

// New returns a model with an empty graph. RequireOpset and RequireIR set the
// versions that every model must tell.
func New() *Model { return &Model{Graph: &Graph{}} }

// Clone returns a copy that can be changed without changing m. Contents of tensors, training
// information and the file are shared: the copy is valid until m is closed, and needs no Close.
func (m *Model) Clone() *Model {
	c := *m
	c.file = nil
	c.Graph = m.Graph.Clone()
	c.Functions = cloneAll(m.Functions)
	c.opsets, c.metadata = slices.Clone(m.opsets), slices.Clone(m.metadata)
	return &c
}

// Assign replaces m by c, a changed copy of it. c must not be used afterwards.
func (m *Model) Assign(c *Model) {
	file, graph := m.file, m.Graph
	*m = *c
	m.file = file
	*graph = *c.Graph // whoever holds the graph sees what became of it
	m.Graph = graph
}

// Opsets returns the operator sets that the model imports.
func (m *Model) Opsets() []Opset { return slices.Clone(m.opsets) }

// Opset returns the imported version of a domain, or 0 if there is none. The
// standard domain may be given as "" or "ai.onnx".
func (m *Model) Opset(domain string) int64 {
	if o := m.opset(domain); o != nil {
		return o.Version
	}
	return 0
}

func (m *Model) opset(domain string) *Opset {
	for i := range m.opsets {
		if standard(m.opsets[i].Domain) == standard(domain) {
			return &m.opsets[i]
		}
	}
	return nil
}

// standard maps the two names of the standard domain to one.
func standard(domain string) string {
	if domain == "ai.onnx" {
		return ""
	}
	return domain
}

// RequireOpset makes the model import at least the given version of a domain.
func (m *Model) RequireOpset(domain string, version int64) {
	if o := m.opset(domain); o != nil {
		o.Version = max(o.Version, version)
		return
	}
	m.opsets = append(m.opsets, Opset{domain, version})
}

// RemoveOpset removes a domain from the model's imports.
func (m *Model) RemoveOpset(domain string) {
	m.opsets = slices.DeleteFunc(slices.Clone(m.opsets), func(o Opset) bool { return standard(o.Domain) == standard(domain) })
}

// RequireIR raises the model's IR version to at least the given one.
func (m *Model) RequireIR(version int64) { m.IRVersion = max(m.IRVersion, version) }

// Metadata yields the keys and values of the model's metadata.
func (m *Model) Metadata() iter.Seq2[string, string] {
	return func(yield func(string, string) bool) {
		for _, e := range m.metadata {
			if !yield(e.key, e.value) {
				return
			}
		}
	}
}

// SetMetadata adds an entry to the model's metadata, in place of the one that
// has its key if there is one.
func (m *Model) SetMetadata(key, value string) {
	for i := range m.metadata {
		if m.metadata[i].key == key {
			m.metadata[i].value = value
			return
		}
	}
	m.metadata = append(m.metadata, entry{key, value})
}

// RemoveMetadata removes the entry of that key.
func (m *Model) RemoveMetadata(key string) {
	m.metadata = slices.DeleteFunc(m.metadata, func(e entry) bool { return e.key == key })
}

// maxMessage is the size that protobuf allows for a message.
const maxMessage = 1<<31 - 1

// ErrTooLarge is wrapped by errors about models whose binary form would exceed
// what protobuf, and with it ONNX Runtime, can read.
var ErrTooLarge = errors.New("the model exceeds 2 GiB, the limit of its file format; keep its weights in external data")

// Marshal returns the model in ONNX's binary form, all in memory: it is meant
// for small models. External data is not included; its locations are relative
// to a folder that the receiver must know.
func (m *Model) Marshal() ([]byte, error) {
	c, _ := encode(m)
	if c.size > maxMessage {
		return nil, ErrTooLarge
	}
	return slices.Concat(c.parts...), nil
}
