package rewrite

import (
	"slices"

	"github.com/rope-rewrite/rope-rewrite/onnx"
	"github.com/rope-rewrite/rope-rewrite/rewrite/fused"
)

// branch is one of query, key and value on its way from where it is still
// un-rotated to the MatMul that uses it.
type branch struct {
	cut     string       // the un-rotated value
	before  []string     // what the cut is a mere rearrangement of, nearest first
	beside  []origin     // what stands beside the cut's channels in the operand; nil for most
	scales  []tokenScale // what it is multiplied by on its way, the nearest to the operand first; nil for most
	operand string       // what enters the MatMul
	cache   *cache       // nil for the query and for models without cache

	shared   *cache // of the channels among these that all heads share; nil for most (see latent.go)
	sharedAt int    // which of the cuts they come from
}

// cuts returns all un-rotated values that the branch is made of.
func (b branch) cuts() []string {
	cuts := []string{b.cut}
	for _, o := range b.beside {
		cuts = append(cuts, o.cut)
	}
	return cuts
}

// stored returns the value that holds keys as the cache does: the Concat's
// new side, or the operand where there is no cache.
func (b branch) stored() string {
	if b.cache != nil {
		return b.cache.fresh
	}
	return b.operand
}

// turned returns the value that is rotated and no more: what a cache takes up, or
// the operand where there is none.
func (b branch) turned() string {
	if b.shared != nil {
		return b.shared.fresh
	}
	return b.stored()
}

// past returns the value that holds the keys or values of earlier calls, "" where
// there are none.
func (b branch) past() string {
	if c := b.store(); c != nil {
		return c.past
	}
	return ""
}

// store returns what keeps the branch for later calls, nil where nothing does.
func (b branch) store() *cache {
	if b.shared != nil {
		return b.shared
	}
	return b.cache
}

// site is one attention delimited in the graph: everything from the cuts to
// the output.
type site struct {
	core
	graph             *graph
	query, key, value branch
	attended          string              // the attention's output, as the model has it
	replaced          []*onnx.Node        // the model's nodes whose outputs the op makes in their place
	beside            *Refusal            // an output of those that the op would not make
	counted           *fused.CountedCache // nil where past holds nothing but past tokens
}

func (s *site) scores() string       { return s.product.Outputs[0] }
func (s *site) softmaxInput() string { return s.softmax.Inputs[0] }
func (s *site) output() string       { return s.attended }

// cuts returns the values that enter the site beside integer inputs.
func (s *site) cuts() []string {
	return unique(slices.Concat(s.states(), s.query.entering(), s.key.entering()))
}

// states returns the hidden states that enter the site.
func (s *site) states() []string {
	cuts := s.query.cuts()
	for _, b := range []branch{s.key, s.value} {
		cuts = append(cuts, b.cuts()...)
		if b.past() != "" {
			cuts = append(cuts, b.past())
		}
	}
	return unique(cuts)
}

// results returns the values that leave the site: output, present key, present value.
func (s *site) results() []string {
	out := []string{s.output()}
	for _, b := range []branch{s.key, s.value} {
		if c := b.store(); c != nil {
			out = append(out, c.present)
		}
	}
	return out
}

// past reports whether the site reads the keys of earlier calls.
func (s *site) past() bool { return s.key.past() != "" }

func unique(list []string) []string {
	seen := map[string]bool{}
	var out []string
	for _, v := range list {
		if !seen[v] {
			seen[v] = true
			out = append(out, v)
		}
	}
	return out
}

// delimit finds where a core's query, key and value come from.
func (g *graph) delimit(c core) (*site, *Refusal) {
	s := &site{core: c, graph: g, attended: g.outward(c.mix.Outputs[0]), counted: g.counted[g.asWritten(c.softmax)]}
	s.query = g.branch(c.product.Inputs[0], mostOrigins)
	s.key = g.branch(c.product.Inputs[1], mostOrigins)
	s.value = g.branch(c.mix.Inputs[1], 1)
	for _, b := range []branch{s.query, s.key, s.value} {
		if slices.Contains(b.cuts(), "") {
			return nil, refuse(c.product, "%q is made inside it of something else than a query, key or value that is given to it", b.operand)
		}
	}
	if len(s.value.scales) > 0 {
		return nil, refuse(c.mix, "its value is multiplied by %q inside it", s.value.scales[0].value)
	}
	if s.query.cache != nil {
		return nil, refuse(c.product, "its first operand comes from a cache; the query was expected there")
	}
	if (s.key.cache == nil) != (s.value.cache == nil) {
		return nil, refuse(c.product, "only one of key and value comes from a cache")
	}
	if s.key.store() == nil {
		s.key = g.givingKeys(s.key)
	}
	states := s.states()
	for _, list := range [][]tokenScale{s.query.scales, s.key.scales} {
		for i, scale := range list {
			list[i].norm = g.madeOf(scale.value, states)
		}
	}
	if leak := g.leak(s.output(), s.cuts()); leak != "" {
		return nil, refuse(c.softmax, "the output also depends on %q, which is neither query, key, value nor their cache", leak)
	}
	return s, g.replaces(s)
}

// replaces notes which nodes of the model a site's op stands for, and which of
// their outputs it would leave out.
func (g *graph) replaces(s *site) *Refusal {
	made := []*onnx.Node{s.mix}
	for _, b := range []branch{s.key, s.value} {
		if c := b.store(); c != nil {
			made = append(made, c.concat)
		}
	}
	results := s.results()
	for _, v := range results {
		if v == "" || g.internal[v] {
			return refuse(s.softmax, "its output or cache does not leave it in one piece")
		}
	}
	for _, n := range made {
		n = g.asWritten(n)
		if slices.Contains(s.replaced, n) {
			continue
		}
		s.replaced = append(s.replaced, n)
		for _, o := range n.Outputs {
			if o != "" && !slices.Contains(results, o) && (g.outputs[o] || len(g.source.consumers[o]) > 0) {
				s.beside = refuse(n, "its output %q is used beside the attention's own and cannot be given", o)
			}
		}
	}
	return nil
}

// sharesCache returns refusals for the sites whose keys or values stand in one
// cache with another site's: what one writes there the other reads, so one
// cannot be replaced without the other. Of the rest it refuses those that would
// leave out an output.
func sharesCache(sites []*site) map[*site]*Refusal {
	users := map[*onnx.Node]*site{}
	refused := map[*site]*Refusal{}
	for _, s := range sites {
		for _, b := range []branch{s.key, s.value} {
			c := b.store()
			if c == nil {
				continue
			}
			other := users[c.concat]
			users[c.concat] = s
			if other != nil && other != s {
				refused[s] = refuse(s.softmax, "it shares the cache at %s with the attention at %s; one of its own was expected", label(c.concat), label(other.softmax))
				refused[other] = refuse(other.softmax, "it shares the cache at %s with the attention at %s; one of its own was expected", label(c.concat), label(s.softmax))
			}
		}
	}
	for _, s := range sites {
		if refused[s] == nil && s.beside != nil {
			refused[s] = s.beside
		}
	}
	return refused
}

// givingKeys notes rotated keys that a call without earlier ones gives away as
// an output of the graph: later calls read them as their past.
func (g *graph) givingKeys(b branch) branch {
	links, _ := g.dominators(b.operand, false)
	for _, l := range links {
		if !g.outputs[l.value] || g.producer[l.value] == nil {
			continue
		}
		before, _ := g.dominators(l.value, true)
		if cut, scales := g.nearestCut(before); cut != "" && cut != l.value {
			b.cut, b.before, b.scales = cut, g.before(cut), scales
			b.cache = &cache{concat: g.producer[l.value], fresh: l.value, present: l.value}
		}
		break
	}
	return b
}

// branch follows an operand back; budget is how many values are looked at for
// what it is made of.
func (g *graph) branch(operand string, budget int) branch {
	b := branch{operand: operand}
	links, _ := g.dominators(operand, false)
	if n := g.producer[links[len(links)-1].value]; n != nil {
		b.cache = g.cacheConcat(n)
	}
	origins := g.origins(b.stored(), b.cache != nil, &budget)
	b.cut, b.before, b.beside, b.scales = origins[0].cut, origins[0].before, origins[1:], origins[0].scales
	for i, o := range origins {
		switch {
		case len(o.scales) > 0 && len(origins) > 1:
			b.cut = "" // a part alone is multiplied
		case o.cache == nil:
		case b.cache != nil || b.shared != nil || len(origins) == 1:
			b.cut = "" // nothing that is understood has two
		default:
			b.shared, b.sharedAt = o.cache, i
		}
	}
	return b
}

// leak walks back by value from an output and returns the first hidden state
// that is reached beside the cuts, "" when there is none.
func (g *graph) leak(output string, cuts []string) (leak string) {
	g.upstream([]string{output}, func(v string, n *onnx.Node) []string {
		switch {
		case !g.isData(v) || slices.Contains(cuts, v):
		case n == nil || g.weightProduct(n):
			leak = v
		default:
			return reads(n)
		}
		return nil
	})
	return leak
}
