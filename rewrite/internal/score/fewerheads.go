package score

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"

	"github.com/rope-rewrite/rope-rewrite/onnx"
	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/bound"
	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/dim"
	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/eval"
	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/ir"
)

// What is done to scores is looked at with up to 131,072 keys, and sites are
// proven with a few hundred: of a thousand heads these would be gigabytes.

const (
	FewHeads  = 64      // up to these all are probed
	maxProbed = 1 << 26 // scores in one probe of a mask
	MaxProven = 1 << 24 // scores in one trial of a proof
)

// Fewer probes two heads where there are very many and each is for certain
// treated as every other: all that happens to scores happens element by element,
// and what they meet has as many heads as two broadcast to, which is one.
func (s *Scorer) Fewer(ctx context.Context) {
	if s.Heads <= FewHeads || s.Extra > 0 || !byElement(s.Loaded.Piece) {
		return
	}
	two := *s
	two.Heads, two.Whole = 2, !s.Loaded.Table.Past
	if _, err := two.unpadded(ctx, rand.New(rand.NewPCG(13, 14)), s.Loaded.Table.Within(dim.Point{B: 2, L: 3, P: 4})); err == nil {
		s.Heads = two.Heads
	}
}

// byElement reports whether hidden states go through ops only whose output
// element depends on the input elements at its place.
func byElement(p *eval.Piece) bool {
	return !slices.ContainsFunc(p.Nodes, func(n *onnx.Node) bool {
		return slices.ContainsFunc(n.Inputs, p.Graph.IsData) && !ir.Standard(n, eval.Elementwise...)
	})
}

// probed refuses a probe of so many scores that it would take gigabytes.
func probed(elements int64, dims []int64) error {
	if elements > maxProbed {
		return fmt.Errorf("%w: scores of the shape %v would be needed; at most %d are probed at once", bound.ErrTooLarge, dims, maxProbed)
	}
	return nil
}
