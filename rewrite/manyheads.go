package rewrite

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"

	"github.com/rope-rewrite/rope-rewrite/onnx"
)

// What is done to scores is looked at with up to 131,072 keys, and sites are
// proven with a few hundred: of a thousand heads these would be gigabytes.

const (
	fewHeads  = 64      // up to these all are probed
	maxProbed = 1 << 26 // scores in one probe of a mask
	maxProven = 1 << 24 // scores in one trial of a proof
)

// fewer probes two heads where there are very many and each is for certain
// treated as every other: all that happens to scores happens element by element,
// and what they meet has as many heads as two broadcast to, which is one.
func (s *scorer) fewer(ctx context.Context) {
	if s.heads <= fewHeads || s.extra > 0 || !s.loaded.piece.byElement() {
		return
	}
	two := *s
	two.heads, two.whole = 2, !s.loaded.table.past
	if _, err := two.unpadded(ctx, rand.New(rand.NewPCG(13, 14)), s.loaded.table.within(point{B: 2, L: 3, P: 4})); err == nil {
		s.heads = two.heads
	}
}

// byElement reports whether hidden states go through ops only whose output
// element depends on the input elements at its place.
func (p *piece) byElement() bool {
	return !slices.ContainsFunc(p.nodes, func(n *onnx.Node) bool {
		return slices.ContainsFunc(n.Inputs, p.graph.isData) && !standard(n, elementwise...)
	})
}

// probed refuses a probe of so many scores that it would take gigabytes.
func probed(elements int64, dims []int64) error {
	if elements > maxProbed {
		return fmt.Errorf("%w: scores of the shape %v would be needed; at most %d are probed at once", errTooLarge, dims, maxProbed)
	}
	return nil
}

// smaller returns a trial of no more scores than are held at once; it keeps its
// batch and, as far as it can, its past.
func (t trial) smaller(heads int) trial {
	scores := func(l int64) int64 { return t.pt.B * int64(heads) * l * (l + t.pt.P) }
	for t.pt.L > 1 && scores(t.pt.L) > maxProven {
		t.pt.L--
	}
	return t
}
