package bound

import (
	"encoding/binary"
	"maps"
	"slices"

	"github.com/rope-rewrite/rope-rewrite/internal/engine"
	"github.com/rope-rewrite/rope-rewrite/onnx"
	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/ir"
)

// Bounds checks before each run of a piece that it is not too large. A piece is run
// many times with the same sizes and other contents, and few of the contents affect
// sizes: Check is asked once for each set of these. The zero value is ready; it
// serves one piece.
type Bounds struct {
	matter map[string]bool  // values whose contents affect sizes
	known  map[string]error // what Check said, by key
}

// Check returns what the function Check says of the piece's nodes with these feeds.
func (b *Bounds) Check(nodes []*onnx.Node, constants []*onnx.Tensor, feeds map[string]engine.Tensor) error {
	if b.known == nil {
		b.matter, b.known = sizing(nodes), map[string]error{}
	}
	key := b.key(feeds)
	err, done := b.known[key]
	if !done {
		err = Check(nodes, constants, feeds)
		b.known[key] = err
	}
	return err
}

// key holds everything in the feeds that the answer of Check can depend on.
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

// sizing returns the values whose contents become sizes: the inputs that tell a
// Range, Expand, Reshape and the like how large their output is, and everything that
// these are computed from.
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
