package score

import (
	"context"
	"fmt"
	"math/rand/v2"

	"github.com/rope-rewrite/rope-rewrite/internal/short"
	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/dim"
)

// oneText is an error where numbers above 1 in the padding mask tell texts apart that were packed into one row: tokens
// then see those of their own number alone, and padding is all that 0 and 1 show. Numbers that such a mask does not know,
// which hide a key from every query, or shift a window that counts shown tokens, are no error.
func (s *Scorer) oneText(ctx context.Context, fit *Fit) error {
	if s.Mask == "" {
		return nil
	}
	rng := rand.New(rand.NewPCG(35, 36))
	pt := s.within(dim.Point{B: 2, L: 5, P: 4})
	numbers := make([]int64, pt.B*pt.Keys())
	for i := range numbers {
		numbers[i] = 1 + rng.Int64N(3)
	}
	smp, err := s.sample(ctx, rng, fit, pt, numbers, func() float64 { return 0 })
	if err != nil {
		return ctx.Err() // the graph does not compute such numbers
	}
	hidden := false
	for r, row := range smp.out {
		_, b, i := s.place(pt, r)
		keys := fit.Shown(smp, r, b, i)
		own := numbers[b*pt.Keys():][:pt.Keys()]
		for j, number := range own {
			if !keys.Has(int64(j)) || row[j] > Masked {
				continue
			}
			if number == own[pt.P+i] {
				return nil
			}
			hidden = true
		}
	}
	if hidden {
		return fmt.Errorf("tokens of different numbers in %q do not see each other, so that it is more than a padding mask", short.Name(s.Mask))
	}
	return nil
}
