package site

import (
	"slices"

	"github.com/rope-rewrite/rope-rewrite/onnx"
	"github.com/rope-rewrite/rope-rewrite/rewrite/fused"
	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/graph"
	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/ir"
)

// Inside lists the values that depend on what enters the site: those that are
// taken out with it, and those that come after it.
func (s *Sized) Inside() map[string]bool {
	cuts := s.Boundaries()
	inside := map[string]bool{}
	for _, n := range s.Graph.Nodes {
		for v := range ir.Uses(n) {
			cut := slices.Contains(cuts, v) && !ir.Standard(n, "Shape") // whose own shape can be read
			if !inside[v] && !cut {
				continue
			}
			for _, o := range n.Outputs {
				inside[o] = true
			}
			break
		}
	}
	return inside
}

// Own returns the model's nodes that compute the site from what enters it.
func (s *Site) Own() map[*onnx.Node]bool {
	cuts, own := s.Boundaries(), map[*onnx.Node]bool{}
	s.Graph.Upstream(s.Results(), func(v string, n *onnx.Node) []string {
		if n == nil || slices.Contains(cuts, v) || !s.Graph.IsData(v) {
			return nil
		}
		own[s.Graph.AsWritten(n)] = true
		return ir.Reads(n)
	})
	return own
}

// Branch is one of query, key and value on its way from where it is still
// un-rotated to the MatMul that uses it.
type Branch struct {
	Boundary       string       // the un-rotated value
	rearrangements []string     // what the cut is a mere rearrangement of, nearest first
	Parts          []origin     // what stands beside the cut's channels in the operand; nil for most
	Scales         []TokenScale // what it is multiplied by on its way, the nearest to the operand first; nil for most
	Operand        string       // what enters the MatMul
	Cache          *cacheUpdate // nil for the query and for models without cache

	Shared   *cacheUpdate // of the channels among these that all heads share; nil for most (see latent.go)
	SharedAt int          // which of the cuts they come from
}

// Boundaries returns all un-rotated values that the branch is made of.
func (b Branch) Boundaries() []string {
	cuts := []string{b.Boundary}
	for _, o := range b.Parts {
		cuts = append(cuts, o.boundary)
	}
	return cuts
}

// Cached returns the value that holds keys as the cache does: the Concat's
// new side, or the operand where there is no cache.
func (b Branch) Cached() string {
	if b.Cache != nil {
		return b.Cache.NewRows
	}
	return b.Operand
}

// Rotated returns the value that is rotated and no more: what a cache takes up, or
// the operand where there is none.
func (b Branch) Rotated() string {
	if b.Shared != nil {
		return b.Shared.NewRows
	}
	return b.Cached()
}

// Past returns the value that holds the keys or values of earlier calls, "" where
// there are none.
func (b Branch) Past() string {
	if c := b.Update(); c != nil {
		return c.Past
	}
	return ""
}

// Update returns what keeps the branch for later calls, nil where nothing does.
func (b Branch) Update() *cacheUpdate {
	if b.Shared != nil {
		return b.Shared
	}
	return b.Cache
}

// Site is one attention delimited in the graph: everything from the cuts to
// the output.
type Site struct {
	Core
	Graph             *graph.Graph
	Query, Key, Value Branch
	attended          string              // the attention's output, as the model has it
	Replaced          []*onnx.Node        // the model's nodes whose outputs the op makes in their place
	escaping          *graph.Refusal      // an output of those that the op would not make
	LengthTracked     *fused.CountedCache // nil where past holds nothing but past tokens
}

func (s *Site) Scores() string { return s.ScoresMatMul.Outputs[0] }

func (s *Site) SoftmaxInput() string { return s.Softmax.Inputs[0] }

func (s *Site) Output() string { return s.attended }

// Boundaries returns the values that enter the site beside integer inputs.
func (s *Site) Boundaries() []string {
	return ir.Unique(slices.Concat(s.States(), s.Query.entering(), s.Key.entering()))
}

// States returns the hidden states that enter the site.
func (s *Site) States() []string {
	cuts := s.Query.Boundaries()
	for _, b := range []Branch{s.Key, s.Value} {
		cuts = append(cuts, b.Boundaries()...)
		if b.Past() != "" {
			cuts = append(cuts, b.Past())
		}
	}
	return ir.Unique(cuts)
}

// Results returns the values that leave the site: output, present key, present value.
func (s *Site) Results() []string {
	out := []string{s.Output()}
	for _, b := range []Branch{s.Key, s.Value} {
		if c := b.Update(); c != nil {
			out = append(out, c.Present)
		}
	}
	return out
}

// Past reports whether the site reads the keys of earlier calls.
func (s *Site) Past() bool { return s.Key.Past() != "" }

// Delimit finds where a core's query, key and value come from.
func Delimit(g *graph.Graph, c Core) (*Site, *graph.Refusal) {
	s := &Site{Core: c, Graph: g, attended: g.Outward(c.ValueMatMul.Outputs[0]), LengthTracked: g.Counted[g.AsWritten(c.Softmax)]}
	s.Query = follow(g, c.ScoresMatMul.Inputs[0], mostOrigins)
	s.Key = follow(g, c.ScoresMatMul.Inputs[1], mostOrigins)
	s.Value = follow(g, c.ValueMatMul.Inputs[1], 1)
	for _, b := range []Branch{s.Query, s.Key, s.Value} {
		if slices.Contains(b.Boundaries(), "") {
			return nil, graph.Refuse(c.ScoresMatMul, "%q is made inside it of something else than a query, key or value that is given to it", b.Operand)
		}
	}
	if len(s.Value.Scales) > 0 {
		return nil, graph.Refuse(c.ValueMatMul, "its value is multiplied by %q inside it", s.Value.Scales[0].Value)
	}
	if s.Query.Cache != nil {
		return nil, graph.Refuse(c.ScoresMatMul, "its first operand comes from a cache; the query was expected there")
	}
	if (s.Key.Cache == nil) != (s.Value.Cache == nil) {
		return nil, graph.Refuse(c.ScoresMatMul, "only one of key and value comes from a cache")
	}
	if s.Key.Update() == nil {
		s.Key = givingKeys(g, s.Key)
	}
	states := s.States()
	for _, list := range [][]TokenScale{s.Query.Scales, s.Key.Scales} {
		for i, scale := range list {
			list[i].Norm = madeOf(g, scale.Value, states)
		}
	}
	if leak := leak(g, s.Output(), s.Boundaries()); leak != "" {
		return nil, graph.Refuse(c.Softmax, "the output also depends on %q, which is neither query, key, value nor their cache", leak)
	}
	return s, noteReplaced(g, s)
}

// noteReplaced notes which nodes of the model a site's op stands for, and which of
// their outputs it would leave out.
func noteReplaced(g *graph.Graph, s *Site) *graph.Refusal {
	made := []*onnx.Node{s.ValueMatMul}
	for _, b := range []Branch{s.Key, s.Value} {
		if c := b.Update(); c != nil {
			made = append(made, c.Concat)
		}
	}
	results := s.Results()
	for _, v := range results {
		if v == "" || g.Internal[v] {
			return graph.Refuse(s.Softmax, "its output or cache does not leave it in one piece")
		}
	}
	for _, n := range made {
		n = g.AsWritten(n)
		if slices.Contains(s.Replaced, n) {
			continue
		}
		s.Replaced = append(s.Replaced, n)
		for _, o := range n.Outputs {
			if o != "" && !slices.Contains(results, o) && (g.Outputs[o] || len(g.Source.Consumers[o]) > 0) {
				s.escaping = graph.Refuse(n, "its output %q is used beside the attention's own and cannot be given", o)
			}
		}
	}
	return nil
}

// SharesCache returns refusals for the sites whose keys or values stand in one
// cache with another site's: what one writes there the other reads, so one
// cannot be replaced without the other. Of the rest it refuses those that would
// leave out an output.
func SharesCache(sites []*Site) map[*Site]*graph.Refusal {
	users := map[*onnx.Node]*Site{}
	refused := map[*Site]*graph.Refusal{}
	for _, s := range sites {
		for _, b := range []Branch{s.Key, s.Value} {
			c := b.Update()
			if c == nil {
				continue
			}
			other := users[c.Concat]
			users[c.Concat] = s
			if other != nil && other != s {
				refused[s] = graph.Refuse(s.Softmax, "it shares the cache at %s with the attention at %s; one of its own was expected", ir.Label(c.Concat), ir.Label(other.Softmax))
				refused[other] = graph.Refuse(other.Softmax, "it shares the cache at %s with the attention at %s; one of its own was expected", ir.Label(c.Concat), ir.Label(s.Softmax))
			}
		}
	}
	for _, s := range sites {
		if refused[s] == nil && s.escaping != nil {
			refused[s] = s.escaping
		}
	}
	return refused
}

// givingKeys notes rotated keys that a call without earlier ones gives away as
// an output of the graph: later calls read them as their past.
func givingKeys(g *graph.Graph, b Branch) Branch {
	links, _ := dominators(g, b.Operand, false)
	for _, l := range links {
		if !g.Outputs[l.value] || g.Producer[l.value] == nil {
			continue
		}
		before, _ := dominators(g, l.value, true)
		if cut, scales := nearestBoundary(g, before); cut != "" && cut != l.value {
			b.Boundary, b.rearrangements, b.Scales = cut, rearrangementsOf(g, cut), scales
			b.Cache = &cacheUpdate{Concat: g.Producer[l.value], NewRows: l.value, Present: l.value}
		}
		break
	}
	return b
}

// follow follows an operand back; budget is how many values are looked at for
// what it is made of.
func follow(g *graph.Graph, operand string, budget int) Branch {
	b := Branch{Operand: operand}
	links, _ := dominators(g, operand, false)
	if n := g.Producer[links[len(links)-1].value]; n != nil {
		b.Cache = cacheUpdateAt(g, n)
	}
	origins := origins(g, b.Cached(), b.Cache != nil, &budget)
	b.Boundary, b.rearrangements, b.Parts, b.Scales = origins[0].boundary, origins[0].rearrangements, origins[1:], origins[0].scales
	for i, o := range origins {
		switch {
		case len(o.scales) > 0 && len(origins) > 1:
			b.Boundary = "" // a part alone is multiplied
		case o.cache == nil:
		case b.Cache != nil || b.Shared != nil || len(origins) == 1:
			b.Boundary = "" // nothing that is understood has two
		default:
			b.Shared, b.SharedAt = o.cache, i
		}
	}
	return b
}

// leak walks back by value from an output and returns the first hidden state
// that is reached beside the cuts, "" when there is none.
func leak(g *graph.Graph, output string, cuts []string) (leak string) {
	g.Upstream([]string{output}, func(v string, n *onnx.Node) []string {
		switch {
		case !g.IsData(v) || slices.Contains(cuts, v):
		case n == nil || g.WeightProduct(n):
			leak = v
		default:
			return ir.Reads(n)
		}
		return nil
	})
	return leak
}
