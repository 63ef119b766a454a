package feature

import (
	"errors"
	"fmt"

	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/plan"
	"github.com/rope-rewrite/rope-rewrite/rope"
)

// ringRows are the rows of a layer's cache as a ring: those of its first keys and its window. 0 is none, because the
// layer has no window or a buffer of the capacity is no longer. An error says why the layer needs the tokens that a
// ring forgets.
func (f *caches) ringRows(e *plan.Site) (int64, error) {
	a := e.Want
	rows := a.Mask.FirstKeys + a.Mask.Window
	if !f.ring || a.Mask.Window == 0 || rows >= f.capacity {
		return 0, nil
	}
	reason := ""
	switch raw := a.Cache == rope.Raw; {
	case !a.Mask.Causal:
		reason = "its queries see later keys"
	case a.Mask.Restart:
		reason = "its positions count all tokens of a document"
	case e.Binding.Bias != nil || len(e.Site.Biases) > 0:
		reason = "the model adds a bias of its own to its scores"
	case a.Mask.FirstKeys > 0 && !a.Distance.IsZero():
		reason = "its scores have a bias by distance, and its first keys move away"
	case raw && a.Temperature != (rope.Temperature{}):
		reason = "its temperature follows the position"
	case raw && a.Chunk > 0:
		reason = "its bands are chunks"
	default:
		reason = mapReason(a, raw)
	}
	if reason != "" {
		return 0, fmt.Errorf("its cache cannot be a ring, because %s; drop ring=true", reason)
	}
	return rows, nil
}

// mapReason says why a ring would change what the map of positions does. In a ring of raw keys all positions move
// with the text, and first keys come nearer, though no nearer than the window: so where a query meets them, its
// position must be one that does not move.
func mapReason(a rope.Attention, raw bool) string {
	far := rope.Band{QueryScale: 1, KeyScale: 1} // the one that first keys are met in
	for _, b := range a.Bands {
		switch far = b; {
		case a.Mask.FirstKeys > 0 && b.Start > a.Mask.Window:
			return fmt.Sprintf("a band begins at distance %d, behind its window", b.Start)
		case raw && b.Group > 1:
			return "its bands share positions"
		case raw && b.QueryScale != b.KeyScale:
			return "a band scales queries and keys apart"
		case raw && b.QueryLimit > 0 && (b.Start < a.Mask.Window || b.QueryLimit > float64(a.Mask.FirstKeys+a.Mask.Window)):
			return "a band limits positions within its window"
		}
	}
	if stays := far.QueryScale == 0 || far.QueryLimit > 0; raw && a.Mask.FirstKeys > 0 && !stays {
		return "its keys are raw, and first keys would come nearer to its queries; take positions=cache, or rotated keys"
	}
	return ""
}

// errNoRing says that no layer could have one.
var errNoRing = errors.New("ring=true: no layer has a window that is shorter than the capacity; drop it, or give --mask sliding-window or first-keys")
