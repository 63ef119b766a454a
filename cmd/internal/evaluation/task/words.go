package task

import (
	_ "embed"
	"math/rand/v2"
	"slices"
	"strings"
)

// Words that any tokenizer knows, in few tokens.
var (
	//go:embed wordlists/nouns.txt
	nounList string
	//go:embed wordlists/adjectives.txt
	adjectiveList string
	//go:embed wordlists/verbs.txt
	verbList string
)

var nouns, adjectives, verbs = strings.Fields(nounList), strings.Fields(adjectiveList), strings.Fields(verbList)

// pick draws one of a list.
func pick[T any](rng *rand.Rand, list []T) T { return list[rng.IntN(len(list))] }

// manyWords draws n different words in any order. Where the lists have too few, two nouns make a word.
func manyWords(rng *rand.Rand, n int) []string {
	list := slices.Concat(nouns, adjectives, verbs)
	slices.Sort(list)
	list = slices.Compact(list)
	seen := map[string]bool{}
	for _, w := range list {
		seen[w] = true
	}
	for len(list) < n {
		list = append(list, distinct(seen, func() string { return pick(rng, nouns) + pick(rng, nouns) }))
	}
	rng.Shuffle(len(list), func(i, j int) { list[i], list[j] = list[j], list[i] })
	return list[:n]
}
