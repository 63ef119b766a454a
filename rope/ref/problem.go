package ref

import (
	"fmt"
	"math"

	"github.com/rope-rewrite/rope-rewrite/rope"
)

// Problem is one call of an attention. B = Batch, L = Length, P = Past,
// H = Attention.Heads, K = Attention.KVHeads, D = Attention.HeadSize,
// V = ValueSize; all arrays are row-major. N = L, the number of new keys, but Keys for
// keys of another text (Attention.Cross), where W = R = N.
type Problem struct {
	Attention rope.Attention

	Batch, Length, Past int
	ValueSize           int // 0 means HeadSize
	Keys                int // of another text

	// Pasts gives every row a past of its own, as a cache of fixed capacity has
	// it: row b holds Pasts[b] ≤ Past tokens, the rest of its P = Past rows is
	// never read, its new tokens have the indices Pasts[b] + place, and W is the
	// largest of Pasts + L. Present then has R = max(P, PresentRows) rows, and
	// what no token stands in keeps what the past had there, or zeros. nil means
	// that all rows hold P tokens and that W = R = P + L.
	Pasts       []int
	PresentRows int

	Query []float64 // [B, H, L, D], before the rotation
	Key   []float64 // [B, K, N, D], before the rotation
	Value []float64 // [B, K, N, V]

	PastKey   []float64 // [B, K, P, D] as the cache holds it: rotated or raw, see Attention.Cache
	PastValue []float64 // [B, K, P, V]

	// HeldKey and HeldValue are what the cache holds after the call, where it rounds what it is given and
	// queries read what it holds; nil where queries read new keys and values as they come.
	HeldKey   []float64 // [B, K, R, D]
	HeldValue []float64 // [B, K, R, V]

	Positions []int64 // [B, L], or [axes, B, L] with Encoding.Axes; nil means the index, P + place
	KeyMask   []bool  // [B, W], true for real keys; nil means all are; needs Mask.Padding
	Documents []int64 // [B, W], the tokens' ids where Mask.Documents asks for them

	BiasBeforeSoftcap []float64 // [B, H, L, W], added to the scaled score, −∞ hides the key; nil means none
	Bias              []float64 // [B, H, L, W], added after the softcap, −∞ hides the key; nil means none

	firstKeysEnds []int // [B], what run makes of firstKeysEnd
	widest        int   // W, once run has counted it
}

// Result is what an attention gives.
type Result struct {
	Output       []float64 // [B, H, L, V]; zeros for a query that sees no key
	PresentKey   []float64 // [B, K, R, D], as the cache will hold it
	PresentValue []float64 // [B, K, R, V]
	LogSumExp    []float64 // [B, H, L], of the scores without the sink; −∞ for a query that sees no key
	Visible      []int     // [B, L], how many keys each query sees
}

// distance is that from the query at an index back to the key at an index, as Attention.Distance
// counts it.
func (p *Problem) distance(batch, query, key int) int64 {
	if !p.Attention.Distance.Shown {
		return int64(query - key)
	}
	count := int64(0)
	for i := min(query, key); i < max(query, key); i++ {
		if p.isReal(batch, i) {
			count++
		}
	}
	if query < key {
		return -count
	}
	return count
}

func (p *Problem) valueSize() int {
	if p.ValueSize == 0 {
		return p.Attention.HeadSize
	}
	return p.ValueSize
}

// past is how many tokens a row's cache holds.
func (p *Problem) past(batch int) int {
	if p.Pasts == nil {
		return p.Past
	}
	return p.Pasts[batch]
}

// newKeys is N.
func (p *Problem) newKeys() int {
	if p.Attention.Cross {
		return p.Keys
	}
	return p.Length
}

// total is the number of keys of a row.
func (p *Problem) total(batch int) int { return p.past(batch) + p.newKeys() }

// width is W, the keys of the longest row.
func (p *Problem) width() int {
	if p.widest > 0 {
		return p.widest
	}
	width := 0
	for b := range p.Batch {
		width = max(width, p.total(b))
	}
	return width
}

// presentRows is R.
func (p *Problem) presentRows() int {
	if p.Pasts == nil {
		return p.Past + p.newKeys()
	}
	return max(p.Past, p.PresentRows)
}

// position is the position of a new token.
func (p *Problem) position(batch, place int) int64 {
	index := p.past(batch) + place
	switch {
	case p.restarts(batch, index):
		return p.restarted(batch, index)
	case p.Positions == nil:
		return p.drawn(int64(index))
	}
	return p.drawn(p.Positions[batch*p.Length+place])
}

// positionOf is the position of a new token by which a channel pair is turned.
func (p *Problem) positionOf(batch, place, pair int) int64 {
	if axes := p.Attention.Encoding.Axes; axes != nil {
		return p.Positions[(axes[pair]*p.Batch+batch)*p.Length+place]
	}
	return p.position(batch, place)
}

// drawn is where a token stands whose positions are drawn from a range.
func (p *Problem) drawn(position int64) int64 {
	if p.Attention.Drawn.Range == 0 {
		return position
	}
	return p.Attention.Drawn.Positions(p.width())[position]
}

// isReal says whether the key at an index is no padding.
func (p *Problem) isReal(batch, index int) bool {
	return p.KeyMask == nil || p.KeyMask[batch*p.width()+index]
}

// firstKeysEnd is the index behind a row's first FirstKeys real keys.
func (p *Problem) firstKeysEnd(batch int) int {
	count := int64(0)
	for j := range p.total(batch) {
		if count == p.Attention.Mask.FirstKeys {
			return j
		}
		if p.isReal(batch, j) {
			count++
		}
	}
	return p.total(batch)
}

// sees says whether a query sees a key, both given by index.
func (p *Problem) sees(batch, query, key int) bool {
	m, distance := p.Attention.Mask, int64(query-key)
	if m.Causal && distance < 0 {
		return false
	}
	outside := m.Window > 0 && (distance >= m.Window || -distance >= m.Window)
	if outside && key >= p.firstKeysEnds[batch] {
		return false
	}
	return p.isReal(batch, key) && p.mayRead(batch, query, key)
}

// plainBands is the position map of an attention that names none.
var plainBands = []rope.Band{{Start: 0, QueryScale: 1, KeyScale: 1}}

func (p *Problem) bands() []rope.Band {
	if len(p.Attention.Bands) == 0 {
		return plainBands
	}
	return p.Attention.Bands
}

// band returns the number of the band that holds a key, both given by index.
func (p *Problem) band(query, key int, shift int64) int {
	bands := p.bands()
	distance := int64(query - key)
	if n := p.Attention.Chunk; n > 0 {
		distance = floorDiv(int64(query)+shift, n) - floorDiv(int64(key)+shift, n)
	}
	for b := len(bands) - 1; b > 0; b-- {
		if distance >= bands[b].Start {
			return b
		}
	}
	return 0
}

// queryAt and keyAt are where a band sees a query and a key of a position.
func (p *Problem) queryAt(b rope.Band, position int64) float64 {
	at := b.QueryScale*float64(p.shared(b, position)) + b.QueryOffset
	if b.QueryLimit > 0 {
		at = min(at, b.QueryLimit)
	}
	return at
}

func (p *Problem) keyAt(b rope.Band, position int64) float64 {
	return b.KeyScale * float64(p.shared(b, position))
}

// shared is the position that a token shares with its group.
func (p *Problem) shared(b rope.Band, position int64) int64 {
	if n := p.Attention.Chunk; n > 0 {
		position -= floorDiv(position, n) * n
	}
	return floorDiv(position, max(1, b.Group))
}

func floorDiv(a, b int64) int64 { return int64(math.Floor(float64(a) / float64(b))) }

// Reach is the largest position of a real new token, and one more: what frequencies that depend on the length go by.
func (p *Problem) Reach() int64 {
	var reach int64
	if p.Attention.Cross {
		return reach // queries have no mask, and nothing turns
	}
	for b := range p.Batch {
		for l := range p.Length {
			if !p.isReal(b, p.past(b)+l) {
				continue
			}
			reach = max(reach, p.position(b, l)+1)
			for axis := range p.axes() {
				reach = max(reach, p.Positions[(axis*p.Batch+b)*p.Length+l]+1)
			}
		}
	}
	return reach
}

// shift returns position − index of a row, which must be one number for all its
// real new tokens whose positions do not restart. A row without one has shift 0.
func (p *Problem) shift(batch int) (int64, error) {
	var shift int64
	first := -1
	for l := range p.Length {
		index := p.past(batch) + l
		if !p.isReal(batch, index) || p.restarts(batch, index) {
			continue
		}
		s := p.position(batch, l) - int64(index)
		if first < 0 {
			first, shift = l, s
		}
		if s != shift {
			return 0, fmt.Errorf("row %d: position − index is %d at place %d and %d at place %d; bands and raw caches need one number", batch, shift, first, s, l)
		}
	}
	return shift, nil
}
