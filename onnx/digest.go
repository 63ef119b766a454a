package onnx

import (
	"crypto/sha256"
	"encoding/binary"
	"io"
)

// digestContents is the size in bytes up to which the contents of an initializer
// are a part of the digest. Larger ones are weights.
const digestContents = 4096

// Digest returns the SHA-256 of what the model's graph and functions say: nodes,
// inputs, outputs, names, types and shapes, operator sets, and the contents of small
// initializers. Weights (initializers of more than 4 KiB) count by name, type, shape
// and place in external data, so that a large model need not be read. Metadata and
// documentation of the model as a whole do not count.
func (m *Model) Digest() [sha256.Size]byte {
	sum := sha256.New()
	for _, o := range m.opsets {
		digestText(sum, standard(o.Domain))
		digestNumber(sum, o.Version)
	}
	for _, f := range m.Graph.fields() {
		digestField(sum, f)
	}
	for _, f := range childFields(modelFunctions, m.Functions...) {
		digestField(sum, f)
	}
	return [sha256.Size]byte(sum.Sum(nil))
}

// Digest returns the SHA-256 of the function's bytes in a file.
func (f *Function) Digest() [sha256.Size]byte {
	sum := sha256.New()
	c, _ := encode(f)
	c.digest(sum)
	return [sha256.Size]byte(sum.Sum(nil))
}

func digestField(sum io.Writer, f field) {
	digestNumber(sum, int64(f.num))
	switch child := f.child.(type) {
	case nil:
		digestText(sum, string(f.record)+string(f.blob))
	case *Tensor:
		child.digest(sum)
	default:
		c, _ := encode(child)
		c.digest(sum)
	}
}

func (c chunks) digest(sum io.Writer) {
	digestNumber(sum, c.size)
	for _, part := range c.parts {
		_, _ = sum.Write(part) // a hash does not fail
	}
}

func (t *Tensor) digest(sum io.Writer) {
	if c, _ := encode(t); t.external != nil || c.size <= digestContents {
		c.digest(sum)
		return
	}
	digestText(sum, t.Name)
	digestNumber(sum, int64(t.Type), int64(len(t.Dims)))
	digestNumber(sum, t.Dims...)
}

func digestText(sum io.Writer, text string) {
	digestNumber(sum, int64(len(text)))
	_, _ = io.WriteString(sum, text)
}

func digestNumber(sum io.Writer, list ...int64) {
	for _, n := range list {
		_, _ = sum.Write(binary.LittleEndian.AppendUint64(nil, uint64(n)))
	}
}
