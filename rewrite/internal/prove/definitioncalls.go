package prove

import (
	"math/rand/v2"
	"slices"

	"github.com/rope-rewrite/rope-rewrite/customop"
	"github.com/rope-rewrite/rope-rewrite/internal/engine"
	"github.com/rope-rewrite/rope-rewrite/onnx"
	"github.com/rope-rewrite/rope-rewrite/rewrite/definition"
	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/dim"
	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/lower"
	"github.com/rope-rewrite/rope-rewrite/rope"
	"github.com/rope-rewrite/rope-rewrite/rope/ref"
)

// call is the shape of a call of the op, without its numbers.
type call struct {
	ref.Problem
	op      customop.RotaryAttention
	first   int64 // position of the first token of a row where positions are given
	padding int   // tokens of padding in front of a row
}

// definitionCalls are calls that reach every part of an op: prefill, chunks, single
// tokens, batches with padding, both sides of a window, of bands and of a trained length.
func definitionCalls(op customop.RotaryAttention, a rope.Attention) (list []call) {
	add := func(batch, length, past int, first int64, padding int) {
		if op.PastKey == "" {
			length, past = length+past, 0
		}
		p := ref.Problem{Attention: a, Batch: batch, Length: length, Past: past, ValueSize: a.HeadSize}
		list = append(list, call{p, op, first, padding})
	}
	if a.Cross {
		for _, sizes := range [][3]int{{1, 5, 3}, {2, 7, 40}, {3, 1, 9}, {2, 1, 1}} {
			add(sizes[0], sizes[1], 0, 0, 1)
			list[len(list)-1].Keys = sizes[2]
		}
		return list
	}
	add(1, 5, 0, 0, 0)
	add(2, 7, 4, 0, 2)
	add(3, 1, 9, 0, 3)
	if op.PositionIDs != "" && op.TotalLength == "" { // which says how far a call reaches
		add(1, 3, 2, farthestPosition, 0)
	}
	if op.CacheRing == 1 {
		c := call{op: op}
		padding := 2
		if op.FirstKeysShown == 1 { // a ring keeps the first tokens, which must not be padding
			padding = 0
			for i := range list {
				list[i].padding = 0
			}
		}
		add(1, 3, c.capacity()-1, 0, 0)
		add(2, 3, c.capacity()+5, 0, padding)
		add(3, 1, 3*c.capacity(), 0, padding)
		if c.ringRows() <= maxTriedLength {
			add(2, c.ringRows()+4, c.capacity()+1, 0, padding)
			add(1, c.capacity()+4, 0, 0, 0)
		}
	}
	edges := []int64{op.Window, op.TrainedLength}
	for _, start := range op.BandStarts {
		edges = append(edges, start*max(1, op.BandChunk))
	}
	for _, edge := range edges {
		switch {
		case edge > 0 && op.PastKey != "" && edge <= maxTriedPast:
			add(1, 3, int(edge), 0, 0)
		case edge > 0 && edge <= maxTriedLength:
			add(1, int(edge)+3, 0, 0, 0)
		}
	}
	return list
}

// contribCalls are calls within the input contract of ONNX Runtime's own attention: no
// padding, positions from the past on, and chunks after a past in one row alone, as its
// older versions ask for.
func contribCalls(op customop.RotaryAttention, a rope.Attention) (list []call) {
	add := func(batch, length, past int) {
		if op.PastKey == "" {
			length, past = length+past, 0
		}
		list = append(list, call{Problem: ref.Problem{Attention: a, Batch: batch, Length: length, Past: past, ValueSize: a.HeadSize}, op: op})
	}
	add(1, 5, 0)
	add(2, 7, 0)
	add(1, 7, 4)
	add(3, 1, 9)
	add(1, 33, 0)
	add(1, 1, 300)
	switch w := int(op.Window); {
	case w > 0 && op.PastKey != "" && w <= maxTriedPast:
		add(1, 3, w)
		add(2, 1, w)
	case w > 0 && w <= maxTriedLength:
		add(1, w+3, 0)
	}
	return list
}

// pasts are the tokens in the cache of each row, where rows have pasts of their own.
func (c call) pasts() []int {
	list := make([]int, c.Batch)
	for b := range list {
		list[b] = max(0, c.Past-2*b)
	}
	return list
}

// filled gives the call random numbers, and the tensors to feed.
func (c call) filled(rng *rand.Rand) (ref.Problem, map[string]engine.Tensor) {
	p, a := c.Problem, &c.Problem.Attention
	normal := func(n int) ([]float64, []float32) {
		wide, narrow := make([]float64, n), make([]float32, n)
		for i := range wide {
			narrow[i] = float32(rng.NormFloat64())
			wide[i] = float64(narrow[i])
		}
		return wide, narrow
	}
	feeds := map[string]engine.Tensor{}
	tensor := func(name string, dims ...int64) []float64 {
		wide, narrow := normal(int(engine.Elements(dims)))
		feeds[name] = engine.Float32s(narrow, dims...)
		return wide
	}
	batch, length, heads, kv, size := int64(p.Batch), int64(p.Length), int64(a.Heads), int64(a.KVHeads), int64(a.HeadSize)
	fresh := length
	if a.Cross {
		fresh = int64(p.Keys)
	}
	p.Query, p.Key, p.Value = tensor("query", batch, heads, length, size), tensor("key", batch, kv, fresh, size), tensor("value", batch, kv, fresh, size)
	buffer := int64(p.Past)
	if c.op.CacheLength != "" {
		p.Pasts = c.pasts()
		buffer += length // room for the new tokens
		p.Past = int(buffer)
		feeds["cache_length"], _ = engine.Integers(onnx.Int32, wideInts(p.Pasts), batch)
	}
	if c.op.TotalLength != "" {
		p.PresentRows = int(buffer)
		feeds["total_length"], _ = engine.Integers(onnx.Int32, []int64{buffer}, 1)
	}
	if c.op.PastKey != "" {
		p.PastKey, p.PastValue = tensor("past_key", batch, kv, buffer, size), tensor("past_value", batch, kv, buffer, size)
		if typ := definition.CacheTypes[c.op.CacheType]; typ != 0 {
			for name, past := range map[string]*[]float64{"past_key": &p.PastKey, "past_value": &p.PastValue} {
				steps, scales := engine.StoredRows(narrow(*past), int(size), typ)
				feeds[name] = engine.Float32s(steps, batch, kv, buffer, size)
				if scales != nil {
					feeds[name+lower.ScaleSuffix] = engine.Float32s(scales, batch, kv, buffer, 1)
				}
				*past = c.stored(*past)
			}
		}
	}
	width := int64(c.Past) + fresh
	past := func(b int) int {
		if p.Pasts != nil {
			return p.Pasts[b]
		}
		return c.Past
	}
	if c.op.PositionIDs != "" {
		for b := range p.Batch {
			for l := range p.Length {
				at := int64(past(b)+l-c.paddingOf(b)) + c.first
				if at < 0 {
					at = 1
				}
				p.Positions = append(p.Positions, at)
			}
		}
		dims := []int64{batch, length}
		if axes := a.Encoding.Axes; axes != nil { // every axis but the first anywhere
			dims = []int64{int64(slices.Max(axes)) + 1, batch, length}
			for range (dims[0] - 1) * batch * length {
				p.Positions = append(p.Positions, c.first+rng.Int64N(100))
			}
		}
		feeds["position_ids"] = engine.Int64s(p.Positions, dims...)
	}
	if c.op.AttentionMask != "" {
		mask := make([]int64, batch*width)
		for i := range mask {
			mask[i] = dim.OneIf(i%int(width) >= c.paddingOf(i/int(width)))
			p.KeyMask = append(p.KeyMask, mask[i] == 1)
		}
		feeds["attention_mask"] = engine.Int64s(mask, batch, width)
	}
	if c.op.DocumentIDs != "" {
		for range batch * width {
			p.Documents = append(p.Documents, rng.Int64N(4)-1)
		}
		feeds["document_ids"] = engine.Int64s(p.Documents, batch, width)
	}
	if c.op.AttentionBias != "" {
		p.Bias = tensor("attention_bias", batch, heads, length, width)
	}
	if c.op.BiasBeforeSoftcap != "" {
		p.BiasBeforeSoftcap = tensor("bias_before_softcap", batch, heads, length, width)
	}
	if c.op.SinkLogits != "" {
		p.Attention.Sinks = tensor("sink_logits", heads)
	}
	if c.op.CacheRing == 1 {
		p = c.inRing(p, feeds)
	}
	return p, feeds
}

// stored is rows of a cache as its element type holds them.
func (c call) stored(rows []float64) []float64 {
	typ := definition.CacheTypes[c.op.CacheType]
	if typ == 0 {
		return rows
	}
	size := c.Attention.HeadSize
	steps, scales := engine.StoredRows(narrow(rows), size, typ)
	out := make([]float64, len(rows))
	for i, x := range engine.ReadRows(steps, scales, size) {
		out[i] = float64(x)
	}
	return out
}

func narrow(list []float64) []float32 {
	out := make([]float32, len(list))
	for i, x := range list {
		out[i] = float32(x)
	}
	return out
}

// paddingOf is the padding in front of a row: the first has none.
func (c call) paddingOf(b int) int {
	if c.op.AttentionMask == "" {
		return 0
	}
	keys := c.Past + c.Length
	if c.Attention.Cross {
		keys = c.Keys
	}
	return min(c.padding*b, keys-1)
}

func wideInts(list []int) (out []int64) {
	for _, v := range list {
		out = append(out, int64(v))
	}
	return out
}
