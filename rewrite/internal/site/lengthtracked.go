package site

import (
	"slices"

	"github.com/rope-rewrite/rope-rewrite/internal/engine"
	"github.com/rope-rewrite/rope-rewrite/onnx"
	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/eval"
	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/graph"
	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/ir"
)

// TrackedLengths lists the int32 inputs that count the tokens in the site's cache; nil
// where its cache is not length-tracked.
func (s *Sized) TrackedLengths() []*onnx.ValueInfo {
	if s.LengthTracked == nil {
		return nil
	}
	var list []*onnx.ValueInfo
	for _, v := range ir.Unique([]string{s.LengthTracked.Last, s.LengthTracked.Total}) {
		list = append(list, &onnx.ValueInfo{Name: v, Type: onnx.Int32})
	}
	return list
}

// ExtractSite returns the piece of the graph that is a whole site. The inputs that
// count a length-tracked cache are fed, whatever they are computed from.
func ExtractSite(g *graph.Graph, s *Sized) (*eval.Piece, error) {
	boundaries := s.Boundaries()
	counts := s.TrackedLengths()
	for _, v := range counts {
		boundaries = append(boundaries, v.Name)
	}
	total := ""
	if s.LengthTracked != nil {
		total = s.Graph.Total(s.LengthTracked)
	}
	p, err := eval.Extract(g, s.Results(), append(boundaries, total))
	if err != nil {
		return nil, err
	}
	if !slices.Contains(boundaries, total) && p.Reads(total) {
		counts = append(counts, &onnx.ValueInfo{Name: total, Type: g.Element(total)})
	}
	return p.Fed(s.Boundaries(), counts...), nil
}

// Feed adds to feeds the inputs that count a length-tracked cache; with nil it adds none.
func Feed(c *eval.CacheLengths, s *Sized, feeds map[string]engine.Tensor) {
	if c == nil {
		return
	}
	last := make([]int64, len(c.Tokens))
	for b, n := range c.Tokens {
		last[b] = n - 1
	}
	// Integers returns no error for int32.
	feeds[s.LengthTracked.Last], _ = engine.Integers(onnx.Int32, last, int64(len(last)))
	feeds[s.LengthTracked.Total], _ = engine.Integers(onnx.Int32, []int64{c.Total}, 1)
	if v := s.Graph.Total(s.LengthTracked); v != s.LengthTracked.Total {
		feeds[v], _ = engine.Integers(s.Graph.Element(v), []int64{c.Total}, 1)
	}
}
