package ir

import (
	"encoding/binary"
	"fmt"
	"hash"
	"math"
	"slices"
	"strings"

	"github.com/rope-rewrite/rope-rewrite/onnx"
)

// HashTensor adds a tensor's type, dimensions and data to a hash, not its name.
func HashTensor(w hash.Hash, t *onnx.Tensor) {
	fmt.Fprintf(w, "tensor %d %v", t.Type, t.Dims)
	data, err := t.Bytes()
	if err != nil {
		fmt.Fprintf(w, "unreadable %q", t.Name)
		return
	}
	w.Write(data)
}

// HashAttributes adds a node's attributes to a hash, sorted by name. Two nodes with
// graphs inside never get the same hash.
func HashAttributes(w hash.Hash, n *onnx.Node) {
	attrs := slices.Clone(n.Attributes)
	slices.SortFunc(attrs, func(a, b *onnx.Attribute) int { return strings.Compare(a.Name, b.Name) })
	for _, a := range attrs {
		fmt.Fprintf(w, "attr %q %d %d %q %v %q", a.Name, a.Type, a.Int, a.Bytes, a.Ints, a.Strings)
		binary.Write(w, binary.LittleEndian, math.Float32bits(a.Float))
		binary.Write(w, binary.LittleEndian, a.Floats)
		if a.Tensor != nil {
			HashTensor(w, a.Tensor)
		}
		if a.Graph != nil || a.RefName != "" || len(a.Tensors)+len(a.Graphs)+len(a.SparseTensors) > 0 || a.SparseTensor != nil {
			// Not compared here, so no two are taken to be the same.
			fmt.Fprintf(w, "unique %p", a)
		}
	}
}
