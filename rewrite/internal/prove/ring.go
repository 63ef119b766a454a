package prove

import (
	"slices"

	"github.com/rope-rewrite/rope-rewrite/internal/engine"
	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/lower"
	"github.com/rope-rewrite/rope-rewrite/rope/ref"
)

// ringRows are the rows of the ring that calls of an op are tested with: two more than it needs.
func (c call) ringRows() int {
	if c.op.CacheRing == 0 {
		return 0
	}
	return int(c.op.Window) + 2
}

// capacity is that of the ring.
func (c call) capacity() int { return int(c.op.FirstKeys) + c.ringRows() }

// lost is how many tokens of a row the ring has no more when it has had so many.
func (c call) lost(past int) int { return max(0, past-c.capacity()) }

// longestLeft is how many tokens are left of the longest row.
func (c call) longestLeft() (longest int) {
	for _, past := range c.pasts() {
		longest = max(longest, past-c.lost(past))
	}
	return longest
}

// keptToken is the token at an index among those of a row that are left.
func (c call) keptToken(b, index int) int {
	if index < int(c.op.FirstKeys) {
		return index
	}
	return index + c.lost(c.pasts()[b])
}

// inRing makes of a call with all tokens in its caches the feeds with a ring, and the problem of the tokens that
// are left, which the specification says to be the same.
func (c call) inRing(p ref.Problem, feeds map[string]engine.Tensor) ref.Problem {
	a, from := p.Attention, p.Past
	p.Attention.Encoding = a.Encoding.At(p.Reach()) // by the positions that are given, before the lost tokens are taken off
	longest := c.longestLeft()
	p.Past = longest + p.Length
	kept := func(b, row int) int { return min(c.keptToken(b, row), from-1) }
	p.PastKey = takeRows(p.PastKey, p.Batch, from, p.Past, a.KVHeads, kept)
	p.PastValue = takeRows(p.PastValue, p.Batch, from, p.Past, a.KVHeads, kept)
	stands := func(b, row int) int { return max(0, c.newest(p.Pasts[b], row)) }
	for _, name := range []string{"past_key", "past_value"} {
		for _, name := range []string{name, name + lower.ScaleSuffix} {
			t, ok := feeds[name]
			if !ok {
				continue
			}
			rows := takeRows(t.Float32s(), p.Batch, from, c.capacity(), a.KVHeads, stands)
			feeds[name] = engine.Float32s(rows, int64(p.Batch), int64(a.KVHeads), int64(c.capacity()), t.Dims[3])
		}
	}
	raw := c.op.Cache == "raw"
	if p.Positions == nil && !raw {
		for _, past := range p.Pasts {
			for l := range p.Length {
				p.Positions = append(p.Positions, int64(past+l))
			}
		}
	}
	width := c.Past + p.Length
	column := func(b, i int) int { return min(c.keptToken(b, i), width-1) }
	p.KeyMask = takeRows(p.KeyMask, p.Batch, width, longest+p.Length, 1, column)
	p.Documents = takeRows(p.Documents, p.Batch, width, longest+p.Length, 1, column)
	p.Positions = slices.Clone(p.Positions) // which are fed too
	for b, past := range p.Pasts {
		for l := range p.Length {
			if raw && c.op.PositionIDs != "" {
				p.Positions[b*p.Length+l] -= int64(c.lost(past))
			}
		}
	}
	p.Pasts = slices.Clone(p.Pasts)
	for b, past := range p.Pasts {
		p.Pasts[b] = past - c.lost(past)
	}
	return p
}

// newest is the last of so many tokens that stands in a row of the ring; below 0 for none.
func (c call) newest(tokens, row int) int {
	switch {
	case row >= tokens:
		return -1
	case row < int(c.op.FirstKeys):
		return row
	}
	return tokens - 1 - (tokens-1-row)%c.ringRows()
}

// presentRows are the rows of a problem's present as the ring has them.
func (c call) presentRows(rows []float64) []float64 {
	if c.op.CacheRing == 0 {
		return rows
	}
	pasts := c.pasts()
	return takeRows(rows, c.Batch, c.longestLeft()+c.Length, c.capacity(), c.Attention.KVHeads, func(b, row int) int {
		token := c.newest(pasts[b]+c.Length, row)
		if token >= int(c.op.FirstKeys) {
			token -= c.lost(pasts[b])
		}
		return max(0, token)
	})
}

// takeRows takes rows of [batch, heads, from, size] as [batch, heads, to, size]. nil stays nil.
func takeRows[T any](rows []T, batch, from, to, heads int, at func(b, row int) int) (out []T) {
	if rows == nil {
		return nil
	}
	size := len(rows) / (batch * heads * from)
	for i := range batch * heads {
		for r := range to {
			row := i*from + at(i/heads, r)
			out = append(out, rows[row*size:][:size]...)
		}
	}
	return out
}
