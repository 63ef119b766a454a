package ref

import (
	"errors"
	"fmt"
	"math"
	"slices"

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

// reach is the largest position of a real new token, and one more.
func (p *Problem) reach() int64 {
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

// check refuses a problem that is not defined.
func (p *Problem) check() error {
	a := p.Attention
	if p.Batch < 1 || p.Length < 0 || p.Past < 0 || p.ValueSize < 0 {
		return fmt.Errorf("batch %d, length %d, past %d, value size %d: the batch must be positive and the others not negative", p.Batch, p.Length, p.Past, p.ValueSize)
	}
	if a.HeadSize < 1 || a.KVHeads < 1 || a.Heads < 1 || a.Heads%a.KVHeads != 0 {
		return fmt.Errorf("%d heads on %d kv heads of %d channels: all must be positive, heads a multiple of kv heads", a.Heads, a.KVHeads, a.HeadSize)
	}
	if a.Encoding.Offset < 0 || a.Encoding.Offset+a.Encoding.RotaryDim() > a.HeadSize {
		return fmt.Errorf("%d rotated channels from channel %d do not fit into %d", a.Encoding.RotaryDim(), a.Encoding.Offset, a.HeadSize)
	}
	if err := p.checkPasts(); err != nil {
		return err
	}
	if err := p.checkCross(); err != nil {
		return err
	}
	biased := p.Batch * a.Heads * p.Length * p.width()
	for _, n := range []struct {
		name     string
		got      int
		want     int
		optional bool
	}{
		{"query", len(p.Query), p.Batch * a.Heads * p.Length * a.HeadSize, false},
		{"key", len(p.Key), p.Batch * a.KVHeads * p.newKeys() * a.HeadSize, false},
		{"value", len(p.Value), p.Batch * a.KVHeads * p.newKeys() * p.valueSize(), false},
		{"past key", len(p.PastKey), p.Batch * a.KVHeads * p.Past * a.HeadSize, false},
		{"past value", len(p.PastValue), p.Batch * a.KVHeads * p.Past * p.valueSize(), false},
		{"positions", len(p.Positions), max(1, p.axes()) * p.Batch * p.Length, p.Positions == nil},
		{"query factors", len(a.QueryFactors), a.HeadSize, a.QueryFactors == nil},
		{"key factors", len(a.KeyFactors), a.HeadSize, a.KeyFactors == nil},
		{"key mask", len(p.KeyMask), p.Batch * p.width(), p.KeyMask == nil},
		{"document ids", len(p.Documents), p.Batch * p.width(), p.Documents == nil},
		{"sinks", len(a.Sinks), a.Heads, a.Sinks == nil},
		{"bias before the softcap", len(p.BiasBeforeSoftcap), biased, p.BiasBeforeSoftcap == nil},
		{"bias", len(p.Bias), biased, p.Bias == nil},
	} {
		if n.got != n.want && !n.optional {
			return fmt.Errorf("%s has %d elements, its shape has %d", n.name, n.got, n.want)
		}
	}
	if p.KeyMask != nil && !a.Mask.Padding {
		return errors.New("a key mask is given to an attention that has none (Mask.Padding is false)")
	}
	if err := p.checkDocuments(); err != nil {
		return err
	}
	if err := p.checkAxes(); err != nil {
		return err
	}
	return p.checkBands()
}

// axes is how many positions each token has, 0 where that is one without axes.
func (p *Problem) axes() int {
	if p.Attention.Encoding.Axes == nil {
		return 0
	}
	return len(p.Positions) / max(1, p.Batch*p.Length)
}

// checkAxes refuses several positions per token where one is asked for.
func (p *Problem) checkAxes() error {
	a := p.Attention
	axes := a.Encoding.Axes
	switch {
	case axes == nil:
		return nil
	case len(axes) != len(a.Encoding.Frequencies):
		return fmt.Errorf("%d pairs have an axis, and %d a frequency", len(axes), len(a.Encoding.Frequencies))
	case slices.Min(axes) < 0 || p.Batch*p.Length > 0 && slices.Max(axes) >= p.axes():
		return fmt.Errorf("pairs turn by the axes %v of positions that have %d", axes, p.axes())
	}
	if err := a.OnePosition(); err != nil {
		return fmt.Errorf("a token has several positions, and %w", err)
	}
	return nil
}

// checkCross refuses what counts tokens where the keys are those of another text.
func (p *Problem) checkCross() error {
	a := p.Attention
	counts := a.Mask.Causal || a.Mask.Window > 0 || len(a.Encoding.Frequencies) > 0 || a.Cache == rope.Raw || a.Temperature.Slope > 0
	switch {
	case a.Cross && (counts || p.Past > 0 || p.Positions != nil || p.Documents != nil):
		return errors.New("keys of another text have no place among the tokens of the queries: there is no causal mask, window, encoding, raw cache, temperature, past, position or document")
	case !a.Cross && p.Keys != 0 || p.Keys < 0:
		return fmt.Errorf("%d keys are given to an attention whose keys are those of its %d tokens", p.Keys, p.Length)
	}
	return nil
}

// checkPasts refuses rows that their buffers do not hold.
func (p *Problem) checkPasts() error {
	if p.Pasts == nil {
		if p.PresentRows != 0 {
			return errors.New("present's rows are given without the pasts of the rows (Pasts)")
		}
		return nil
	}
	if len(p.Pasts) != p.Batch {
		return fmt.Errorf("%d pasts are given for a batch of %d", len(p.Pasts), p.Batch)
	}
	for b, past := range p.Pasts {
		if past < 0 || past > p.Past {
			return fmt.Errorf("row %d: a past of %d, the cache has %d rows", b, past, p.Past)
		}
		if p.total(b) > p.presentRows() {
			return fmt.Errorf("row %d: %d tokens on a past of %d do not fit into the %d rows of present", b, p.Length, past, p.presentRows())
		}
	}
	return nil
}

func (p *Problem) checkBands() error {
	a, bands := p.Attention, p.bands()
	if len(bands) > 1 && !a.Mask.Causal {
		return errors.New("keys after the query belong to no band: a map of several bands needs a causal mask")
	}
	for i, b := range bands {
		if (i == 0 && b.Start != 0) || (i > 0 && b.Start <= bands[i-1].Start) {
			return fmt.Errorf("band %d starts at distance %d: bands start at 0 and rise", i, b.Start)
		}
		if b.QueryLimit < 0 || b.Group < 0 {
			return fmt.Errorf("band %d has the limit %g and the group %d: neither may be negative", i, b.QueryLimit, b.Group)
		}
		if a.Cache == rope.Rotated && b.KeyScale != 1 {
			return fmt.Errorf("band %d scales key positions by %g, which a cache of rotated keys cannot do", i, b.KeyScale)
		}
		if a.Cache == rope.Rotated && (b.Group > 1 || a.Chunk > 0) {
			return fmt.Errorf("band %d takes keys to other positions than their own, which a cache of rotated keys cannot do", i)
		}
	}
	if a.Drawn.Range > 0 {
		return p.checkDrawn()
	}
	if a.Chunk < 0 || a.Chunk > 0 && !a.Mask.Causal {
		return fmt.Errorf("chunks of %d positions: a map of chunks needs a causal mask and a positive number", a.Chunk)
	}
	return nil
}

// checkDrawn refuses calls for which positions cannot be drawn.
func (p *Problem) checkDrawn() error {
	a := p.Attention
	switch {
	case p.Past > 0 || len(a.Bands) > 1 || a.Chunk > 0 || a.Cache == rope.Raw || a.Mask.Restart:
		return errors.New("positions that are drawn are for whole texts in one call, without a map of positions")
	case int64(p.width()) > a.Drawn.Range:
		return fmt.Errorf("%d tokens are more than the %d positions to draw from", p.width(), a.Drawn.Range)
	}
	for _, at := range p.Positions {
		if at < 0 || at >= int64(p.width()) {
			return fmt.Errorf("position %d is none of a text of %d tokens", at, p.width())
		}
	}
	return nil
}
