package onnx

import (
	"errors"
	"iter"
)

// source is the bytes in which a view was found.
type source [][]byte

// Model is an ONNX model.
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

	opsets   []Opset
	metadata []entry
	src      source
}

type entry struct{ key, value string }

// Open maps the model at path.
func Open(path string) (*Model, error) { return nil, errors.ErrUnsupported }

// Parse reads a model from memory. data must stay unchanged.
func Parse(data []byte) (*Model, error) { return nil, errors.ErrUnsupported }

// New returns a model with an empty graph.
func New() *Model { return &Model{Graph: &Graph{}} }

// Close releases the mapped files.
func (m *Model) Close() error { return nil }

// Opsets returns the operator sets that the model imports.
func (m *Model) Opsets() []Opset { return m.opsets }

// Opset returns the imported version of a domain, 0 when there is none.
func (m *Model) Opset(domain string) int64 { return 0 }

// RequireOpset adds or raises the import of a domain.
func (m *Model) RequireOpset(domain string, version int64) {}

// RequireIR raises the IR version.
func (m *Model) RequireIR(version int64) { m.IRVersion = max(m.IRVersion, version) }

// Metadata yields the model's metadata.
func (m *Model) Metadata() iter.Seq2[string, string] { return func(func(string, string) bool) {} }

// SetMetadata adds or replaces an entry of the model's metadata.
func (m *Model) SetMetadata(key, value string) {}

// Marshal returns the model in ONNX's binary form.
func (m *Model) Marshal() ([]byte, error) { return nil, errors.ErrUnsupported }

// SaveOptions says how to save.
type SaveOptions struct {
	Force bool // replace files that are in the way

	// Progress, if set, is called now and then with the bytes written so far
	// and the bytes to write; an error from it ends the save.
	Progress func(written, total int64) error
}

// Save writes the model to a file.
func (m *Model) Save(path string, opts SaveOptions) error { return errors.ErrUnsupported }
