package rewrite

import (
	"slices"

	"github.com/rope-rewrite/rope-rewrite/onnx"
)

// branch is one of query, key and value on its way from where it is still
// un-rotated to the MatMul that uses it.
type branch struct {
	cut     string // the un-rotated value
	operand string // what enters the MatMul
	cache   *cache // nil for the query and for models without cache
}

// stored returns the value that holds keys as the cache does: the Concat's
// new side, or the operand where there is no cache.
func (b branch) stored() string {
	if b.cache != nil {
		return b.cache.fresh
	}
	return b.operand
}

// site is one attention delimited in the graph: everything from the cuts to
// the output.
type site struct {
	core
	query, key, value branch
}

func (s *site) scores() string       { return s.product.Outputs[0] }
func (s *site) softmaxInput() string { return s.softmax.Inputs[0] }
func (s *site) output() string       { return s.mix.Outputs[0] }

// cuts returns the data values that enter the site.
func (s *site) cuts() []string {
	cuts := []string{s.query.cut}
	for _, b := range []branch{s.key, s.value} {
		cuts = append(cuts, b.cut)
		if b.cache != nil {
			cuts = append(cuts, b.cache.past)
		}
	}
	return unique(cuts)
}

// results returns the values that leave the site: output, present key, present value.
func (s *site) results() []string {
	out := []string{s.output()}
	if s.key.cache != nil {
		out = append(out, s.key.cache.concat.Outputs[0], s.value.cache.concat.Outputs[0])
	}
	return out
}

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
	s := &site{core: c}
	s.query = g.branch(c.product.Inputs[0])
	s.key = g.branch(c.product.Inputs[1])
	s.value = g.branch(c.mix.Inputs[1])
	if s.query.cache != nil {
		return nil, refuse(c.product, "its first operand comes from a cache; the query was expected there")
	}
	if (s.key.cache == nil) != (s.value.cache == nil) {
		return nil, refuse(c.product, "only one of key and value comes from a cache")
	}
	if leak := g.leak(s.output(), s.cuts()); leak != "" {
		return nil, refuse(c.softmax, "the output also depends on %q, which is neither query, key, value nor their cache", leak)
	}
	return s, nil
}

// sharesCache returns refusals for the sites whose keys or values stand in one
// cache with another site's: what one writes there the other reads, so one
// cannot be replaced without the other.
func sharesCache(sites []*site) map[*site]*Refusal {
	users := map[*onnx.Node]*site{}
	refused := map[*site]*Refusal{}
	for _, s := range sites {
		for _, b := range []branch{s.key, s.value} {
			if b.cache == nil {
				continue
			}
			other := users[b.cache.concat]
			users[b.cache.concat] = s
			if other != nil && other != s {
				refused[s] = refuse(s.softmax, "it shares the cache at %s with the attention at %s; one of its own was expected", label(b.cache.concat), label(other.softmax))
				refused[other] = refuse(other.softmax, "it shares the cache at %s with the attention at %s; one of its own was expected", label(b.cache.concat), label(s.softmax))
			}
		}
	}
	return refused
}

func (g *graph) branch(operand string) branch {
	b := branch{operand: operand}
	links := g.dominators(operand)
	last := links[len(links)-1].value
	if n := g.producer[last]; n != nil {
		b.cache = g.cacheConcat(n)
	}
	if b.cache != nil {
		links = g.dominators(b.cache.fresh)
	}
	b.cut = nearestCut(links)
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
