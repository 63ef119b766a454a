package modeldiff

import (
	"cmp"
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"hash"
	"math"
	"slices"
	"strings"

	"github.com/rope-rewrite/rope-rewrite/internal/short"
	"github.com/rope-rewrite/rope-rewrite/onnx"
)

func (c *canonical) attribute(a *onnx.Attribute, s *scope, place sum) (sum, error) {
	w := newWriter("attribute")
	w.text(a.Name, a.RefName)
	w.number(int(a.Type))
	var err error
	each := func(v sum, e error) {
		w.sum(v)
		err = cmp.Or(err, e)
	}
	graph := func(i int, g *onnx.Graph) {
		inner := newWriter("inside")
		inner.sum(place)
		inner.text(a.Name)
		inner.number(i)
		each(c.ofGraph(g, s, inner.done()))
	}
	if a.RefName != "" {
		return w.done(), nil
	}
	switch a.Type {
	case onnx.AttrFloat:
		w.number(int(math.Float32bits(a.Float)))
	case onnx.AttrInt:
		w.number(int(a.Int))
	case onnx.AttrString:
		w.text(string(a.Bytes))
	case onnx.AttrFloats:
		w.number(len(a.Floats))
		for _, f := range a.Floats {
			w.number(int(math.Float32bits(f)))
		}
	case onnx.AttrInts:
		w.number(len(a.Ints))
		for _, i := range a.Ints {
			w.number(int(i))
		}
	case onnx.AttrStrings:
		w.number(len(a.Strings))
		for _, b := range a.Strings {
			w.text(string(b))
		}
	case onnx.AttrTensor:
		each(c.tensor(a.Tensor))
	case onnx.AttrTensors:
		w.number(len(a.Tensors))
		for _, t := range a.Tensors {
			each(c.tensor(t))
		}
	case onnx.AttrGraph:
		graph(0, a.Graph)
	case onnx.AttrGraphs:
		w.number(len(a.Graphs))
		for i, g := range a.Graphs {
			graph(i, g)
		}
	case onnx.AttrSparseTensor:
		each(c.sparse(a.SparseTensor))
	case onnx.AttrSparseTensors:
		w.number(len(a.SparseTensors))
		for _, t := range a.SparseTensors {
			each(c.sparse(t))
		}
	default:
		err = unclear("the attribute %q is of a kind that is not compared", short.Name(a.Name))
	}
	return w.done(), err
}

// tensor stands for the type, the shape and the contents of a tensor.
func (c *canonical) tensor(t *onnx.Tensor) (sum, error) {
	w := newWriter("tensor")
	if t == nil {
		return w.done(), nil
	}
	w.text(constant{tensor: t}.text())
	contents, err := c.digest.of(constant{c.model, t, t.Name})
	w.sum(contents)
	return w.done(), err
}

func (c *canonical) sparse(t *onnx.SparseTensor) (sum, error) {
	w := newWriter("sparse")
	if t == nil || t.Values == nil || t.Indices == nil {
		return w.done(), unclear("a sparse tensor has no values or no indices")
	}
	w.text(fmt.Sprint(t.Dims))
	for _, part := range []*onnx.Tensor{t.Values, t.Indices} {
		v, err := c.tensor(part)
		if err != nil {
			return sum{}, err
		}
		w.sum(v)
	}
	return w.done(), nil
}

// writer writes what counts into a hash. Each part tells its own length.
type writer struct{ hash.Hash }

func newWriter(kind string) *writer {
	w := &writer{sha256.New()}
	w.text(kind)
	return w
}

func (w *writer) number(n int) { _, _ = w.Write(binary.LittleEndian.AppendUint64(nil, uint64(n))) }
func (w *writer) sum(s sum)    { _, _ = w.Write(s[:]) }
func (w *writer) done() sum    { return sum(w.Sum(nil)) }

func (w *writer) text(list ...string) {
	for _, text := range list {
		w.number(len(text))
		_, _ = w.Write([]byte(text))
	}
}

// sums writes a list whose order does not count.
func (w *writer) sums(list []sum) {
	slices.SortFunc(list, func(a, b sum) int { return strings.Compare(string(a[:]), string(b[:])) })
	w.number(len(list))
	for _, s := range list {
		w.sum(s)
	}
}
