package site

import (
	"slices"

	"github.com/rope-rewrite/rope-rewrite/internal/short"
	"github.com/rope-rewrite/rope-rewrite/onnx"
	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/fused"
	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/graph"
	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/ir"
)

// Inside returns the values of the graph that depend on what enters the site:
// those that the op replaces, and those that come after the site.
func (s *Sized) Inside() map[string]bool {
	boundaries := s.Boundaries()
	inside := map[string]bool{}
	for _, n := range s.Graph.Nodes {
		for v := range ir.Uses(n) {
			isBoundary := slices.Contains(boundaries, v) && !ir.Standard(n, "Shape") // the shape of a boundary stays readable
			if !inside[v] && !isBoundary {
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

// Own returns the model's nodes that compute the site's results from its boundaries.
func (s *Site) Own() map[*onnx.Node]bool {
	boundaries, own := s.Boundaries(), map[*onnx.Node]bool{}
	s.Graph.Upstream(s.Results(), func(v string, n *onnx.Node) []string {
		if n == nil || slices.Contains(boundaries, v) || !s.Graph.IsData(v) {
			return nil
		}
		own[s.Graph.AsWritten(n)] = true
		return ir.Reads(n)
	})
	return own
}

// Branch is the path of query, key or value: from the value before any rotation to
// the MatMul that uses it.
type Branch struct {
	Boundary       string       // the value before rotation
	rearrangements []string     // values with the same elements as the boundary in another shape, nearest first
	Parts          []origin     // the other values that the operand's channels are concatenated of; nil for most
	Scales         []TokenScale // factors per token on this path, the nearest to the operand first; nil for most
	Operand        string       // the input of the MatMul
	Cache          *CacheUpdate // nil for the query and for models without cache
	Behind         bool         // what the cache holds is rotated between it and the operand (a raw cache)

	Shared   *CacheUpdate // cache of the channels that all heads share (latent attention); nil for most
	SharedAt int          // index in Boundaries of the value that these channels come from
}

// Boundaries returns all values before rotation that the branch is made of.
func (b Branch) Boundaries() []string {
	boundaries := []string{b.Boundary}
	for _, o := range b.Parts {
		boundaries = append(boundaries, o.boundary)
	}
	return boundaries
}

// Cached returns the value that holds the new rows as the cache stores them, or the
// operand where there is no cache.
func (b Branch) Cached() string {
	if b.Cache != nil {
		return b.Cache.NewRows
	}
	return b.Operand
}

// Rotated returns the value right after the rotation: the new rows of the cache, or
// the operand where there is no cache or the rotation is behind it.
func (b Branch) Rotated() string {
	switch {
	case b.Shared != nil:
		return b.Shared.NewRows
	case b.Behind:
		return b.Operand
	}
	return b.Cached()
}

// Past returns the value with the keys or values of earlier calls, "" where there is
// no cache.
func (b Branch) Past() string {
	if c := b.Update(); c != nil {
		return c.Past
	}
	return ""
}

// Update returns where the branch is written to a cache, nil where it is not.
func (b Branch) Update() *CacheUpdate {
	if b.Shared != nil {
		return b.Shared
	}
	return b.Cache
}

// Site is one attention in the graph: everything from its boundaries to its results.
// Nothing in it is changed after Delimit.
type Site struct {
	Core
	Graph             *graph.Graph
	Query, Key, Value Branch
	Sink              *onnx.Tensor              // a sink for each head that is applied behind the softmax; nil for most
	last              *onnx.Node                // that applies it
	output            string                    // the attention's output, under the name that the model's own graph has for it
	Replaced          []*onnx.Node              // the model's nodes whose outputs the op gives instead
	escaping          *graph.Refusal            // set where one of these nodes has another output that is used, which the op does not give
	LengthTracked     *fused.LengthTrackedCache // the inputs that count the cached tokens; nil where every row of past is a token
	Turns             bool                      // query and key enter it already rotated (Turned)
	Rounded           bool                      // query and key are rounded between it and their product (Unrounded)
	Crosses           bool                      // keys and values are those of another text (Sized.Cross)
	Alone             int64                     // of a rotation without its attention (Sized.Rotation): the channels of a head; 0 for an attention
}

// Scores returns the product of query and key, before scale, softcap and mask.
func (s *Site) Scores() string { return s.ScoresMatMul.Outputs[0] }

// SoftmaxInput returns the scores after scale, softcap and mask.
func (s *Site) SoftmaxInput() string { return s.Softmax.Inputs[0] }

// Output returns the attention's output, under its name in the model's own graph.
func (s *Site) Output() string { return s.output }

// Boundaries returns the float values that enter the site: hidden states, caches, factors
// per token and what is added to scores. Integer inputs are not among them.
func (s *Site) Boundaries() []string {
	return ir.Unique(slices.Concat(s.States(), s.Query.entering(), s.Key.entering(), s.biasValues()))
}

// States returns the hidden states and caches that enter the site.
func (s *Site) States() []string {
	boundaries, branches := s.Query.Boundaries(), []Branch{s.Key, s.Value}
	if s.Alone > 0 {
		branches = branches[:1]
	}
	for _, b := range branches {
		boundaries = append(boundaries, b.Boundaries()...)
		if b.Past() != "" {
			boundaries = append(boundaries, b.Past())
		}
	}
	return ir.Unique(boundaries)
}

// Results returns the values that the site gives: output, present key, present value.
// The last two are missing without a cache. Those of a rotation alone are query and key.
func (s *Site) Results() []string {
	if s.Alone > 0 {
		return []string{s.Query.Operand, s.Key.Cached()}
	}
	out := []string{s.Output()}
	for _, b := range []Branch{s.Key, s.Value} {
		if c := b.Update(); c != nil {
			out = append(out, c.Present)
		}
	}
	return out
}

// Past reports whether the site reads keys of earlier calls.
func (s *Site) Past() bool { return s.Key.Past() != "" }

// Delimit follows a core's query, key and value back to the values before rotation.
// It refuses an attention whose output depends on any other hidden state.
func Delimit(g *graph.Graph, c Core) (*Site, *graph.Refusal) {
	if table := givenTable(g, c); table != "" {
		return nil, graph.Refuse(c.ScoresMatMul, "its query and key are rotated by rows of the input %q, which the caller gives, so the model does not contain its rotation; make this table a constant of the model", short.Name(table))
	}
	s := &Site{Core: c, Graph: g, output: g.Outward(c.ValueMatMul.Outputs[0]), LengthTracked: g.LengthTracked[g.AsWritten(c.Softmax)]}
	s.sinkBehind()
	s.Query = follow(g, c.ScoresMatMul.Inputs[0], maxOrigins)
	s.Key = follow(g, c.ScoresMatMul.Inputs[1], maxOrigins)
	s.Value = follow(g, c.ValueMatMul.Inputs[1], 1)
	for _, b := range []Branch{s.Query, s.Key, s.Value} {
		if slices.Contains(b.Boundaries(), "") {
			return nil, graph.Refuse(c.ScoresMatMul, "%q is computed from something other than its query, key or value", short.Name(b.Operand))
		}
	}
	if len(s.Value.Scales) > 0 {
		return nil, graph.Refuse(c.ValueMatMul, "its value is multiplied by %q", short.Name(s.Value.Scales[0].Value))
	}
	if s.Query.Cache != nil {
		return nil, graph.Refuse(c.ScoresMatMul, "its first operand comes from a cache; expected the query there")
	}
	if (s.Key.Cache == nil) != (s.Value.Cache == nil) {
		return nil, graph.Refuse(c.ScoresMatMul, "only one of key and value comes from a cache")
	}
	if s.Key.Update() == nil {
		s.Key = keysAsOutput(g, s.Key)
	}
	s.Key.Behind = s.Key.Past() != "" && s.Key.Cache != nil && turnedBetween(g, []string{s.Key.Operand}, s.Key.Cache.Present) != nil
	s.findNorms()
	if refusal := s.ownBias(); refusal != nil {
		return nil, refusal
	}
	if leak := leak(g, s.Output(), s.Boundaries()); leak != "" {
		return nil, graph.Refuse(c.Softmax, "the output also depends on %q, which is not query, key, value or their cache", short.Name(leak))
	}
	return s, noteReplaced(g, s)
}

// noteReplaced completes a new site: which nodes of the model the op replaces, and
// whether one of their other outputs is used.
func noteReplaced(g *graph.Graph, s *Site) *graph.Refusal {
	replaced := []*onnx.Node{s.ends()}
	for _, b := range []Branch{s.Key, s.Value} {
		if c := b.Update(); c != nil {
			replaced = append(replaced, c.Concat)
		}
	}
	results := s.Results()
	for _, v := range results {
		if v == "" || g.Internal[v] {
			return graph.Refuse(s.Softmax, "its output or cache is not a single value")
		}
	}
	for _, n := range replaced {
		n = g.AsWritten(n)
		if slices.Contains(s.Replaced, n) {
			continue
		}
		s.Replaced = append(s.Replaced, n)
		for _, o := range n.Outputs {
			if o != "" && !slices.Contains(results, o) && (g.Outputs[o] || len(g.Source.Consumers[o]) > 0) {
				s.escaping = graph.Refuse(n, "its output %q is also used, which the op does not have", short.Name(o))
			}
		}
	}
	return nil
}

// SharesCache refuses sites that share a cache with another site: each reads what the
// other writes, so one cannot be replaced without the other. It also refuses sites
// that replace a node with another output in use.
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
				refused[s] = graph.Refuse(s.Softmax, "this layer shares the cache at %s with the attention layer at %s; expected a cache of its own", ir.Label(c.Concat), ir.Label(other.Softmax))
				refused[other] = graph.Refuse(other.Softmax, "this layer shares the cache at %s with the attention layer at %s; expected a cache of its own", ir.Label(c.Concat), ir.Label(s.Softmax))
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

// keysAsOutput finds rotated keys that a model without past keys gives as a graph
// output: a later call of another model reads them as its past.
func keysAsOutput(g *graph.Graph, b Branch) Branch {
	links, _ := dominators(g, b.Operand, false)
	for _, l := range links {
		if !g.Outputs[l.value] || g.Producer[l.value] == nil {
			continue
		}
		before, _ := dominators(g, l.value, true)
		if boundary, scales := nearestBoundary(g, before); boundary != "" && boundary != l.value {
			b.Boundary, b.rearrangements, b.Scales = boundary, rearrangementsOf(g, boundary), scales
			b.Cache = &CacheUpdate{Concat: g.Producer[l.value], NewRows: l.value, Present: l.value}
		}
		break
	}
	return b
}

// follow follows the operand of a MatMul back to its boundaries. It looks at no more
// than budget values for what the operand is concatenated of.
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
			b.Boundary = "" // only some of the channels are multiplied: not understood
		case o.cache == nil:
		case b.Cache != nil || b.Shared != nil || len(origins) == 1:
			b.Boundary = "" // two caches on one path: not understood
		default:
			b.Shared, b.SharedAt = o.cache, i
		}
	}
	return b
}

// leak walks back from an output to the boundaries and returns the first other hidden
// state on the way, "" where there is none.
func leak(g *graph.Graph, output string, boundaries []string) (leak string) {
	g.Upstream([]string{output}, func(v string, n *onnx.Node) []string {
		switch {
		case !g.IsData(v) || slices.Contains(boundaries, v):
		case n == nil || g.WeightProduct(n):
			leak = v
		default:
			return ir.Reads(n)
		}
		return nil
	})
	return leak
}
