package rewrite

import (
	"encoding/binary"
	"slices"

	"github.com/rope-rewrite/rope-rewrite/internal/engine"
	"github.com/rope-rewrite/rope-rewrite/onnx"
	"github.com/rope-rewrite/rope-rewrite/rewrite/fused"
)

// counts says how many tokens a call of a counted cache finds and leaves.
type counts struct {
	tokens []int64 // in each row, after the call
	total  int64   // what the op is told of the longest row
}

// past returns the tokens in row b before a call with length new ones.
func (c *counts) past(b, length int64) int64 { return max(c.tokens[b]-length, 0) }

// counts lists the values that count a site's cache.
func (s *sizedSite) counts() []*onnx.ValueInfo {
	if s.counted == nil {
		return nil
	}
	var list []*onnx.ValueInfo
	for _, v := range unique([]string{s.counted.Last, s.counted.Total}) {
		list = append(list, &onnx.ValueInfo{Name: v, Type: onnx.Int32})
	}
	return list
}

// total returns the value that a cache's total is a mere cast of: what else the
// model chooses by how many tokens there are reads it as well.
func (g *graph) total(c *fused.CountedCache) string {
	v := c.Total
	for n := g.producer[v]; standard(n, "Cast", "Identity", "Reshape", "Squeeze", "Unsqueeze"); n = g.producer[v] {
		v = n.Inputs[0]
	}
	return v
}

// extractSite cuts the piece that is a whole site. How a cache is counted is
// fed, whatever it is computed from.
func (g *graph) extractSite(s *sizedSite) (*piece, error) {
	cuts := s.cuts()
	counts := s.counts()
	for _, v := range counts {
		cuts = append(cuts, v.Name)
	}
	total := ""
	if s.counted != nil {
		total = s.graph.total(s.counted)
	}
	p, err := g.extract(s.results(), append(cuts, total))
	if err != nil {
		return nil, err
	}
	p.cuts, p.typed = s.cuts(), counts
	if !slices.Contains(cuts, total) && p.reads(total) {
		p.typed = append(p.typed, &onnx.ValueInfo{Name: total, Type: g.element(total)})
	}
	return p, nil
}

// feed adds what counts the cache.
func (c *counts) feed(s *sizedSite, feeds map[string]engine.Tensor) {
	if c == nil {
		return
	}
	last := make([]int64, len(c.tokens))
	for b, n := range c.tokens {
		last[b] = n - 1
	}
	// int32 is a type that Integers takes.
	feeds[s.counted.Last], _ = engine.Integers(onnx.Int32, last, int64(len(last)))
	feeds[s.counted.Total], _ = engine.Integers(onnx.Int32, []int64{c.total}, 1)
	if v := s.graph.total(s.counted); v != s.counted.Total {
		feeds[v], _ = engine.Integers(s.graph.element(v), []int64{c.total}, 1)
	}
}

// maxProofRows bounds rows · heads · channels of the caches in a proof: all of
// them together take some 20 times as many bytes.
const maxProofRows = 1 << 22

// countedTrials reach every part of an op on a counted cache: a first call with
// right padding, decode from rows of different lengths, a chunk of a longer
// text, buffers with room to spare (what lies there is random), and the last
// position that the original has.
func countedTrials(l *lifted) []trial {
	a := l.attention
	trained := a.Encoding.Reach.Trained
	most := maxProofRows / int64(a.KVHeads*a.HeadSize)
	if trained > 0 { // a few calls at the length where frequencies change may take more
		most = max(most, min(trained+8, 4*most))
	}
	end := min(l.positionLimit+1, most, 100_000)
	if l.counted.Limit > 0 {
		end = min(end, l.counted.Limit)
	}
	var list []trial
	// add takes past's capacity and each row's tokens after the call, the largest first.
	add := func(length, capacity int64, magnitude float64, tokens ...int64) {
		for i, n := range tokens {
			tokens[i] = max(min(n, end), 1)
		}
		length, tokens = l.fixed.counted(length, tokens)
		total := slices.Max(tokens)
		if length > 1 && length > total {
			length = total
		}
		first := length == total
		if !first && capacity < total-length || first && capacity > 0 && capacity < total ||
			l.fixed.L > 0 && capacity < total && capacity != total-length { // as ONNX Runtime wants it
			capacity = total
		}
		list = append(list, trial{
			pt: point{B: int64(len(tokens)), L: length, P: capacity}, magnitude: magnitude,
			positions: total - length, counts: &counts{tokens: tokens, total: total},
		})
	}
	add(5, 0, 1, 5)
	add(7, 0, 1, 7, 2, 5) // padded on the right
	add(6, 19, 1, 6, 3)   // into buffers with room to spare
	add(33, 0, 0.3, 33, 1, 20)
	add(1, 9, 1, 10, 4)     // decode, rows of different lengths
	add(1, 40, 1, 20, 7, 2) // the same in buffers with room to spare
	add(1, 300, 1, 301)
	add(8, 11, 1, 19) // a chunk of a longer text
	add(9, 40, 1, 22)
	add(70, 131, 1, 201)
	add(19, 25, 3, 25)
	add(8, max(end-8, 0), 1, end) // the last positions
	add(1, end-1, 3, end, end/2)
	if trained > 0 {
		add(1, trained-1, 1, trained, trained/2)
		add(1, trained, 1, trained+1, trained/2) // a row that is short beside one that is long
		add(6, trained-3, 1, trained+3)          // keys in the cache were turned before the change
		add(1, trained+40, 1, trained/2+1, 3)    // room to spare
		if trained < 256 {
			add(trained, 0, 1, trained, trained/2)
			add(trained+1, 0, 1, trained+1, trained/2)
		}
	}
	if w := a.Mask.Window; w > 0 && w < 8192 {
		add(3, w+5, 1, w+8)
		add(1, w+9, 1, w+10, w, w+1)
	}
	return list
}

// countedKinds says of each element of a result what kind of row it is in: rows of
// tokens are compared, those of padding apart, and room in a present not at all.
func (t trial) countedKinds(result int, l *lifted) func(i int64) rowKind {
	if result == 0 {
		return l.rowsOfOutput(t.pt, func(b, i int64) rowKind {
			if t.counts.past(b, t.pt.L)+i < t.counts.tokens[b] {
				return compared
			}
			return paddedWithoutKeys
		})
	}
	channels := l.layouts.key.channels
	if result == 2 {
		channels = l.layouts.value.channels
	}
	rows := max(t.pt.P, t.counts.total)
	return func(i int64) rowKind {
		row, b := i/channels%rows, i/channels/rows/l.layouts.key.heads
		if row < t.counts.tokens[b] {
			return compared
		}
		return unused
	}
}

// cacheLength makes the number of tokens that each row holds before the call:
//
//	max(last + 1 − length, 0)
//
// which is 0 for the padded rows of a first call. The nodes are named after
// last, so that all sites that count by it share them.
func (b *builder) cacheLength(w wiring) string {
	shared := &builder{stem: "rope_rewrite/" + w.counted.Last}
	rows := int64(slices.Index(w.queryLayout.axes, rowAxis))
	dims := shared.add("Shape", []string{w.query}, shared.value("query_dims"))
	length := shared.add("Slice", []string{dims, shared.constant("rows_from", rows), shared.constant("rows_to", rows+1)}, shared.value("length"))
	length = shared.add("Cast", []string{length}, shared.value("length_int32"), onnx.IntAttr("to", int64(onnx.Int32)))
	last := shared.add("Reshape", []string{w.counted.Last, shared.constant("flat", -1)}, shared.value("last"))
	tokens := shared.add("Add", []string{last, shared.int32("one", 1)}, shared.value("tokens"))
	past := shared.add("Sub", []string{tokens, length}, shared.value("before"))
	out := shared.add("Max", []string{past, shared.int32("zero", 0)}, shared.value("cache_length"))
	b.nodes, b.constants = append(b.nodes, shared.nodes...), append(b.constants, shared.constants...)
	return out
}

func (b *builder) int32(part string, value int32) string {
	name := b.value(part)
	b.constants = append(b.constants, onnx.NewTensor(name, onnx.Int32, []int64{1}, binary.LittleEndian.AppendUint32(nil, uint32(value))))
	return name
}
