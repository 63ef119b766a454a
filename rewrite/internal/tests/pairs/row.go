package pairs

import (
	"math/rand/v2"
	"path"
	"slices"
	"strings"

	"github.com/rope-rewrite/rope-rewrite/rewrite"
)

// row is one combination: for each feature the place of its setting.
type row []int

// String names what a row asks for beyond the first settings, and its model.
func (r row) String() string {
	var list []string
	for f, s := range r {
		if s > 0 || f == 0 {
			list = append(list, features[f].name+" "+features[f].settings[s].name)
		}
	}
	return strings.Join(list, ", ")
}

// has reports whether a row has a setting: "feature: pattern", as path.Match has patterns, or several with "|" between
// them. "!" in front asks for another one.
func (r row) has(condition string) bool {
	text, other := strings.CutPrefix(condition, "!")
	name, pattern, _ := strings.Cut(text, ": ")
	f := slices.IndexFunc(features, func(f feature) bool { return f.name == name })
	found := slices.ContainsFunc(strings.Split(pattern, "|"), func(pattern string) bool {
		ok, err := path.Match(pattern, features[f].settings[r[f]].name)
		return ok && err == nil
	})
	return found != other
}

// options are what a row asks for.
func (r row) options() (o rewrite.Options) {
	o.Context.Original = trained
	for f, s := range r {
		if apply := features[f].settings[s].apply; apply != nil {
			apply(&o)
		}
	}
	return o
}

// like is a row with the first settings of the features that do not change what the attention computes, nor what its
// caches hold.
func (r row) like() row {
	plain := slices.Clone(r)
	for f := range features {
		if slices.Contains([]string{"kv", "logits", "target"}, features[f].name) {
			plain[f] = 0
		}
	}
	return plain
}

// broken are the rules that a row breaks.
func (r row) broken() (list []rule) {
	for _, rule := range rules {
		if !slices.ContainsFunc(rule.together, func(c string) bool { return !r.has(c) }) {
			list = append(list, rule)
		}
	}
	return list
}

// pair is two settings of two features.
type pair struct{ f, s, g, t int }

// pairs are all pairs of settings.
func pairs() (list []pair) {
	for f := range features {
		for g := f + 1; g < len(features); g++ {
			for s := range features[f].settings {
				for t := range features[g].settings {
					list = append(list, pair{f, s, g, t})
				}
			}
		}
	}
	return list
}

func (p pair) in(r row) bool { return r[p.f] == p.s && r[p.g] == p.t }

// mostTries is how many completions of a pair are drawn before it is said to be impossible.
const mostTries = 400

// covering returns rows that break no rule and have every pair that some such row has, and the pairs that none has. A row
// is the best of some that are drawn: the one with most pairs that no row before it has.
func covering(rng *rand.Rand) (rows []row, impossible []pair) {
	open := pairs()
	for len(open) > 0 {
		p := open[0]
		var best row
		most := 0
		for try, good := 0, 0; try < mostTries && good < 40; try++ {
			r := draw(rng, p)
			if len(r.broken()) > 0 {
				continue
			}
			good++
			count := 0
			for _, q := range open {
				if q.in(r) {
					count++
				}
			}
			if count > most {
				best, most = r, count
			}
		}
		if best == nil {
			impossible, open = append(impossible, p), open[1:]
			continue
		}
		rows = append(rows, best)
		open = slices.DeleteFunc(open, func(q pair) bool { return q.in(best) })
	}
	return rows, impossible
}

// draw completes a pair. Half of the other features keep their first setting: else most rows would break a rule.
func draw(rng *rand.Rand, p pair) row {
	r := make(row, len(features))
	for f := range r {
		switch {
		case f == p.f:
			r[f] = p.s
		case f == p.g:
			r[f] = p.t
		case rng.IntN(2) == 0 || f == 0:
			r[f] = rng.IntN(len(features[f].settings))
		}
	}
	return r
}

// drawn returns so many more rows that break no rule: what three and more settings make together.
func drawn(rng *rand.Rand, count int) (rows []row) {
	all := pairs()
	for len(rows) < count {
		if r := draw(rng, all[rng.IntN(len(all))]); len(r.broken()) == 0 {
			rows = append(rows, r)
		}
	}
	return rows
}
