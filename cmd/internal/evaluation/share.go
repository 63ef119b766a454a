package evaluation

import (
	"slices"

	"github.com/rope-rewrite/rope-rewrite/lm"
)

// worthwhile is how many tokens must be shared for a cache to be stored: fewer are computed again.
const worthwhile = 32

// stage is how one trial is computed: from what an earlier one left, with stops at which the
// cache is kept for later ones.
type stage struct {
	from int   // tokens that are there already
	keep []int // numbers of tokens, growing, at which the cache is kept besides; all are needed later
}

// stages plans trials so that what one has in common with the next ones is computed once.
// Without sharing each begins anew.
func stages(trials []Trial, sharing bool) []stage {
	list := make([]stage, len(trials))
	if !sharing {
		return list
	}
	common := make([]int, len(trials)) // tokens that a trial begins with as the next one does
	for i := range len(trials) - 1 {
		common[i] = min(prefix(trials[i].Row, trials[i+1].Row), len(trials[i].Tokens)-1, len(trials[i+1].Tokens)-1)
	}
	var kept []int
	for i := range trials {
		needed := later(common[i:])
		// What was kept for those before and is not needed any more is let go.
		kept = slices.DeleteFunc(kept, func(n int) bool { return i > 0 && n > common[i-1] })
		if len(kept) > 0 {
			list[i].from = kept[len(kept)-1]
		}
		kept = slices.DeleteFunc(kept, func(n int) bool { return !slices.Contains(needed, n) })
		for _, n := range needed {
			if n >= list[i].from+worthwhile {
				kept = append(kept, n)
			}
		}
		list[i].keep = slices.Clone(kept)
	}
	return list
}

// later are the numbers of tokens, growing, that trials to come begin with as this one does: each is
// the least on the way to one of them.
func later(common []int) (list []int) {
	least := 0
	for i, n := range common {
		if i == 0 || n < least {
			if least = n; n >= worthwhile {
				list = append(list, n)
			}
		}
	}
	slices.Reverse(list)
	return list
}

// prefix is how many tokens two prompts begin with alike, of the same documents.
func prefix(a, b lm.Row) int {
	n := 0
	for n < min(len(a.Tokens), len(b.Tokens)) && a.Tokens[n] == b.Tokens[n] && (a.Documents == nil || b.Documents == nil || a.Documents[n] == b.Documents[n]) {
		n++
	}
	return n
}

// cost is about what computing tokens takes, in tokens of an empty cache: one sees those before it.
func cost(from, to int) float64 {
	const seen = 8192 // tokens that cost as much to attend to as a token's other layers
	return float64(to-from) + (float64(to)*float64(to)-float64(from)*float64(from))/(2*seen)
}
