package rope

import (
	"cmp"
	"errors"
	"fmt"
)

// near is the band of the keys that are met at their own distances.
var near = Band{QueryScale: 1, KeyScale: 1}

// checkMap refuses an attention that a map of distances cannot be applied to.
func (e edit) checkMap() error {
	switch {
	case len(e.Encoding.Frequencies) == 0:
		return cmp.Or(e.byDistance(), errors.New("the attention has no rotation, so positions have no effect on it"))
	case !e.Distance.IsZero():
		return errors.New("the attention also has a bias by distance, which a map of the rotation's distances would leave as it is")
	case len(e.Bands) > 0:
		return errors.New("the attention already has a position map; two cannot be combined")
	case e.Drawn.Range > 0:
		return errors.New("the tokens' positions are drawn at random (--positions randomized), but the map uses distances between indices in the row")
	case e.Mask.Restart:
		return errors.New("positions restart in each document (--mask), but the map uses distances between indices in the row")
	case !e.Mask.Causal:
		return errors.New("the attention is bidirectional, and position maps need causal attention (--mask causal does not help, because it is applied after the map)")
	}
	return nil
}

// hides says that the attention's own window ends before keys of a distance.
func (e edit) hides(distance int64, key string) (warnings []string) {
	if w := e.Mask.Window; w > 0 && w <= distance && e.Mask.FirstKeys == 0 {
		return []string{fmt.Sprintf("no effect: the attention's sliding window of %d keys ends before %s=%d", w, key, distance)}
	}
	return nil
}

// reaches warns that distances beyond the trained context occur within the
// context that was asked for.
func (e edit) reaches(length int64) (warnings []string) {
	return []string{fmt.Sprintf("with a trained context of %d tokens these settings reach %d tokens, fewer than the context of %d", e.Original, length, e.Length)}
}

// rounded makes a position float32, as the op takes it.
func rounded(x float64) float64 { return float64(float32(x)) }
