package evaluation

import (
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/rope-rewrite/rope-rewrite/lm"
)

// Whatever the trials, each begins with what an earlier one left and the two have in common, and
// nothing is kept that no later one begins with.
func TestStages(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var trials []Trial
		for range rapid.IntRange(1, 8).Draw(t, "trials") {
			var tokens []int64
			for range rapid.IntRange(1, 4).Draw(t, "parts") {
				part := int64(rapid.IntRange(0, 1).Draw(t, "part"))
				tokens = append(tokens, slices.Repeat([]int64{part}, rapid.IntRange(1, 60).Draw(t, "length"))...)
			}
			trials = append(trials, Trial{Row: lm.Row{Tokens: tokens}})
		}
		plan := stages(trials, true)
		kept := map[int][]int64{}
		computed, whole := 0, 0
		for i, s := range plan {
			tokens := trials[i].Tokens
			if s.from > 0 && (!slices.Equal(kept[s.from], tokens[:s.from]) || s.from >= len(tokens)) {
				t.Fatalf("trial %d begins with %d tokens, which are not there", i, s.from)
			}
			now := map[int][]int64{}
			for _, n := range s.keep {
				if n >= len(tokens) || n < worthwhile {
					t.Fatalf("trial %d of %d tokens keeps %d", i, len(tokens), n)
				}
				now[n] = tokens[:n]
				if n <= s.from && !slices.Equal(kept[n], tokens[:n]) {
					t.Fatalf("trial %d keeps %d tokens, which are not there", i, n)
				}
				if !slices.ContainsFunc(plan[i+1:], func(later stage) bool { return later.from == n }) {
					t.Fatalf("trial %d keeps %d tokens, which no later one begins with", i, n)
				}
			}
			kept = now
			computed, whole = computed+len(tokens)-s.from, whole+len(tokens)
		}
		if computed > whole {
			t.Fatalf("%d tokens instead of %d", computed, whole)
		}
	})
}

// Samples at one depth share what stands before it, and later depths what stands before theirs.
func TestStagesOfDepths(t *testing.T) {
	var trials []Trial
	text := make([]int64, 1000)
	for i := range text {
		text[i] = int64(i)
	}
	for _, depth := range []int{300, 700} {
		for key := range int64(3) {
			trials = append(trials, Trial{Row: lm.Row{Tokens: slices.Concat(text[:depth], []int64{-1 - key}, text[depth:])}})
		}
	}
	var from []int
	for _, s := range stages(trials, true) {
		from = append(from, s.from)
	}
	if want := []int{0, 300, 300, 300, 700, 700}; !slices.Equal(from, want) {
		t.Errorf("the trials begin with %v tokens, want %v", from, want)
	}
	for i, s := range stages(trials, false) {
		if s.from != 0 || s.keep != nil {
			t.Errorf("without sharing trial %d begins with %d tokens and keeps %v", i, s.from, s.keep)
		}
	}
}
