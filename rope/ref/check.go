package ref

import (
	"errors"
	"fmt"
	"slices"

	"github.com/rope-rewrite/rope-rewrite/rope"
)

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
		{"held key", len(p.HeldKey), p.Batch * a.KVHeads * p.presentRows() * a.HeadSize, p.HeldKey == nil},
		{"held value", len(p.HeldValue), p.Batch * a.KVHeads * p.presentRows() * p.valueSize(), p.HeldValue == nil},
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
	if err := a.Distance.Check(a.Heads); err != nil {
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
	case a.Cross && !a.Distance.IsZero():
		return errors.New("keys of another text have no distance from the queries")
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
