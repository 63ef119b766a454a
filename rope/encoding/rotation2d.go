package encoding

import "github.com/rope-rewrite/rope-rewrite/rope"

// Rotation2D is RoPE for patches of a picture: the first half of the pairs turns by the row, the
// second half by the column, both with the frequencies base^(−2i/(size/2)).
// (Su, Transformer upgrade roads 4: 2-D rotary positions, kexue.fm/archives/8397; in Qwen2-VL,
// arXiv:2409.12191, section 2.1.)
type Rotation2D struct {
	Size   int         // rotated channels, a multiple of 4
	Base   float64     // 0 means 10000
	Layout rope.Layout // rope.Interleaved: rows turn the first half of the channels
}

// Encoding returns the rotation as package rope has it, for a token with two positions: its row
// and its column.
func (r Rotation2D) Encoding() rope.Encoding {
	if r.Base == 0 {
		r.Base = 10000
	}
	one := Powers(r.Size/2, r.Base)
	e := rope.Encoding{Layout: r.Layout, ExactAngles: true}
	for axis := range 2 {
		for _, omega := range one {
			e.Frequencies, e.Axes = append(e.Frequencies, omega), append(e.Axes, axis)
		}
	}
	return e
}
