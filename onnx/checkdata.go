package onnx

import (
	"errors"
	"fmt"
	"io/fs"
	"iter"

	"google.golang.org/protobuf/encoding/protowire"

	"github.com/rope-rewrite/rope-rewrite/internal/short"
)

// UnreadableData yields an error for each constant that something reads and
// whose contents a runtime would not find or refuse. The contents are not
// read: of external data the files are looked for and their sizes compared.
//
// The error names the tensor. It wraps fs.ErrNotExist where nothing is there at
// all, as in a model that is passed around without its weights, and ErrRefused
// where the location leads out of the model's folder.
func (m *Model) UnreadableData() iter.Seq[error] {
	return func(yield func(error) bool) {
		sizes := fileSizes{}
		for t := range m.constantsRead() {
			if err := t.readable(sizes); err != nil && !yield(fmt.Errorf("tensor %q: %w", short.Name(t.Name), err)) {
				return
			}
		}
	}
}

// constantsRead yields the initializers that a node reads or a graph gives, and
// the tensors in attributes of nodes. ONNX Runtime leaves out other initializers
// before it looks for their data.
func (m *Model) constantsRead() iter.Seq[*Tensor] {
	return func(yield func(*Tensor) bool) {
		read := map[string]bool{}
		for g := range m.Graph.AllGraphs() {
			for _, v := range g.Outputs {
				read[v.Name] = true
			}
			for _, n := range g.Nodes {
				for _, v := range n.Inputs {
					read[v] = true
				}
			}
		}
		for g := range m.Graph.AllGraphs() {
			for _, t := range g.Initializers {
				if read[t.Name] && !yield(t) {
					return
				}
			}
		}
		attributes := func(nodes []*Node) bool {
			return walkNodes(nodes, func(n *Node) bool {
				for _, a := range n.Attributes {
					if a.Tensor != nil && !yield(a.Tensor) {
						return false
					}
				}
				return true
			})
		}
		if !attributes(m.Graph.Nodes) {
			return
		}
		for _, f := range m.Functions {
			if !attributes(f.Nodes) {
				return
			}
		}
	}
}

// readable checks that contents of the right size are there.
func (t *Tensor) readable(sizes fileSizes) error {
	size := t.ByteLen()
	switch {
	case t.Type == String && t.external == nil:
		return nil
	case size < 0:
		return fmt.Errorf("%s elements with dimensions %v cannot be stored as raw bytes", t.Type, t.Dims)
	case t.external != nil:
		have, err := sizes.of(t.folder, t.external.location)
		if err != nil {
			return err
		}
		return t.external.fits(size, have)
	case size > 0 && len(t.raw) == 0 && !t.hasTyped():
		return fmt.Errorf("its data is missing: %w", fs.ErrNotExist)
	case len(t.raw) > 0 && int64(len(t.raw)) != size:
		return wrongSize(t, len(t.raw))
	}
	return nil
}

func wrongSize(t *Tensor, have int) error {
	return fmt.Errorf("%w: %d bytes of data, but %d for %s%v", ErrFormat, have, t.ByteLen(), t.Type, t.Dims)
}

// hasTyped reports whether one of the typed lists has an element.
func (t *Tensor) hasTyped() bool {
	found := errors.New("found")
	return t.src.each(func(r record) error {
		switch r.num {
		case tensorFloats, tensorDoubles, tensorInt32s, tensorInt64s, tensorUint64s:
			if r.typ != protowire.BytesType || len(r.body) > 0 {
				return found
			}
		}
		return nil
	}) != nil
}

// fileSizes are the sizes of files of external data, each asked for once.
type fileSizes map[fileAt]fileSize

type fileAt struct {
	folder   *folder
	location string
}

type fileSize struct {
	bytes int64
	err   error
}

func (s fileSizes) of(f *folder, location string) (int64, error) {
	at := fileAt{f, location}
	size, known := s[at]
	if !known {
		size.bytes, size.err = f.size(location)
		s[at] = size
	}
	return size.bytes, size.err
}
