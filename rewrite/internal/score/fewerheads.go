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

// Masks are measured with up to 131,072 keys, and sites are proven with a few hundred.
// For a thousand heads such scores would take gigabytes.

const (
	FewHeads  = 64      // up to this number all heads are evaluated
	maxProbed = 1 << 26 // most scores of one evaluation here
	MaxProven = 1 << 24 // most scores of one trial of a proof
)

// Fewer returns a Scorer that evaluates two heads in place of more than FewHeads, where
// all heads are certainly treated alike: the scores go through element-by-element ops
// only, and two heads broadcast with what is added to them, so that this has one head.
// Elsewhere it returns s.
func (s *Scorer) Fewer(ctx context.Context) *Scorer {
	if s.Fed.Heads <= FewHeads || s.Extra > 0 || len(s.Biases) > 0 || !byElement(s.Loaded.Piece) {
		return s
	}
	two := *s
	two.Fed.Heads, two.Read.Heads = 2, 2
	tried := &two
	if !s.Loaded.Table.Past {
		tried = two.AllRows()
	}
	if _, err := tried.unpadded(ctx, rand.New(rand.NewPCG(13, 14)), s.clamped(dim.Point{B: 2, L: 3, P: 4})); err != nil {
		return s
	}
	return &two
}

// byElement reports whether all hidden states in the piece go through element-by-element
// ops only.
func byElement(p *eval.Piece) bool {
	return !slices.ContainsFunc(p.Nodes, func(n *onnx.Node) bool {
		return slices.ContainsFunc(n.Inputs, p.Graph.IsData) && !ir.Standard(n, eval.Elementwise...)
	})
}

// probed refuses an evaluation of more than maxProbed scores.
func probed(elements int64, dims []int64) error {
	if elements > maxProbed {
		return fmt.Errorf("%w: scores of the shape %v would be needed; at most %d are probed at once", bound.ErrTooLarge, dims, maxProbed)
	}
	return nil
}
