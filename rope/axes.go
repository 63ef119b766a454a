package rope

import "errors"

// OnePosition returns an error that names what in an attention needs one position for each token:
// a position map, a cache of raw keys, positions that restart or are drawn, or a temperature.
// Where a token has several positions (Encoding.Axes) none of these is defined: a key's distance
// is not one number, and the position of a cached key of a picture is not known.
func (a Attention) OnePosition() error {
	switch {
	case len(a.Bands) > 0 || a.Chunk > 0:
		return errors.New("a position map needs one position for each token")
	case a.Cache == Raw:
		return errors.New("a cache of un-rotated keys, which are rotated by their index, needs one position for each token")
	case a.Drawn.Range > 0:
		return errors.New("random positions replace only one position for each token")
	case a.Mask.Restart:
		return errors.New("positions that restart in each document replace only one position for each token")
	case a.Temperature != (Temperature{}):
		return errors.New("a temperature by position needs one position for each token")
	}
	return nil
}
