package ref_test

import (
	"fmt"
	"testing"

	"pgregory.net/rapid"

	"github.com/rope-rewrite/rope-rewrite/rope"
	"github.com/rope-rewrite/rope-rewrite/rope/ref"
)

// Drawn positions are positions: giving them by hand computes the same.
func TestDrawnByHand(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := draw(t)
		seed := rapid.Int64Range(0, 1000).Draw(t, "seed")
		drawn, byHand := p, p
		drawn.Attention = mustApply(t, rope.PositionsAxis, fmt.Sprintf("randomized:range=%d,seed=%d", 3*p.Length, seed), p.Attention, rope.Context{})
		places := rope.Drawn{Range: int64(3 * p.Length), Seed: seed}.Positions(p.Length)
		for range p.Batch {
			byHand.Positions = append(byHand.Positions, places...)
		}
		same(t, "given by hand", mustRun(t, drawn), mustRun(t, byHand), 0)
		drawn.Positions = positions(drawn, 0)
		same(t, "by the text's own places", mustRun(t, drawn), mustRun(t, byHand), 0)
		drawn.Positions[0] = int64(p.Length)
		if _, err := ref.Run(drawn); err == nil {
			t.Fatal("a position beyond the text is no error")
		}
	})
}
