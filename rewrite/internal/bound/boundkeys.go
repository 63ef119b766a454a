package bound

import (
	"encoding/binary"
	"maps"
	"slices"

	"github.com/rope-rewrite/rope-rewrite/internal/engine"
	"github.com/rope-rewrite/rope-rewrite/onnx"
	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/ir"
)

// Bounds says whether feeds make a piece too large to be evaluated. A piece is
// run many times at the same sizes with other numbers, of which few have to do
// with sizes: it is followed once for each set of those.
type Bounds struct {
	matter map[string]bool // values whose contents sizes follow from
	known  map[string]error
}

func (b *Bounds) Check(nodes []*onnx.Node, constants []*onnx.Tensor, feeds map[string]engine.Tensor) error {
	if b.known == nil {
		b.matter, b.known = sizing(nodes), map[string]error{}
	}
	key := b.key(feeds)
	err, done := b.known[key]
	if !done {
		err = Bounded(nodes, constants, feeds)
		b.known[key] = err
	}
	return err
}

// key holds all of the feeds that bounded can depend on.
func (b *Bounds) key(feeds map[string]engine.Tensor) string {
	var key []byte
	for _, name := range slices.Sorted(maps.Keys(feeds)) {
		t := feeds[name]
		key = append(append(key, name...), 0)
		key = binary.AppendUvarint(key, uint64(len(t.Dims)))
		for _, d := range t.Dims {
			key = binary.AppendVarint(key, d)
		}
		if b.matter[name] && t.Len() <= maxFolded {
			key = append(key, t.Data...)
		}
	}
	return string(key)
}

// sizing returns the values whose contents become sizes: what the ops read that
// make tensors of a size that is computed, and all that this is made of.
func sizing(nodes []*onnx.Node) map[string]bool {
	matter := map[string]bool{}
	for _, n := range slices.Backward(nodes) {
		inputs := n.Inputs
		switch {
		case ir.Standard(n, "Range", "ConstantOfShape"):
		case ir.Standard(n, "Expand", "Tile", "Pad", "Reshape", "Squeeze", "Unsqueeze") && len(inputs) > 0:
			inputs = inputs[1:]
		default:
			inputs = nil
		}
		if slices.ContainsFunc(n.Outputs, func(v string) bool { return matter[v] }) {
			inputs = n.Inputs
		}
		for _, v := range inputs {
			matter[v] = true
		}
	}
	return matter
}
