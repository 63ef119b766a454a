package rope

import (
	"math"
	"slices"
)

// Layout says which two channels of a head turn together.
type Layout uint8

const (
	// Half pairs channel x with x + RotaryDim/2 (GPT-NeoX, llama in transformers).
	Half Layout = iota
	// Interleaved pairs channels 2x and 2x+1 (RoFormer, GPT-J).
	Interleaved
)

// Encoding is a rotary position encoding: R(p) turns pair x by the angle
// p·Frequencies[x] and multiplies both channels by Gain; R(0) = Gain.
// Where a token has several positions (multimodal RoPE: time, height and width),
// p is that of the pair's axis. (Qwen2-VL, arXiv:2409.12191, section 2.1.)
// (Su et al., RoFormer, arXiv:2104.09864, eq. 15.)
type Encoding struct {
	Frequencies []float64 `json:"inv_freq"`               // radians per position, one per channel pair (inv_freq)
	Gain        float64   `json:"gain,omitzero"`          // on the rotated channels of query and of key; 0 means 1
	Axes        []int     `json:"position_axes,omitzero"` // of each pair, counted from 0; nil where a token has one position
	Layout      Layout    `json:"layout"`
	Offset      int       `json:"offset,omitzero"`       // first rotated channel of a head
	ExactAngles bool      `json:"exact_angles,omitzero"` // false rounds p·ω to float32 first, as exporters do

	// Precision is the type that the model keeps its frequencies in: a model in
	// float16 turns by the rounded powers of its base.
	Precision Precision `json:"precision,omitzero"`

	LengthDependent LengthDependent `json:"length_dependent,omitzero"` // frequencies that depend on how far a call reaches
}

// LengthDependent gives long calls other frequencies: if the real tokens of a call reach
// L positions (the largest position of the batch + 1) and L is beyond Trained, its
// queries and keys are rotated by them. One of the three fields is given; the zero value
// changes nothing. A cache of rotated keys still holds the keys of earlier calls as those
// calls rotated them.
type LengthDependent struct {
	Trained int64     `json:"trained_length"`
	Long    []float64 `json:"long_inv_freq,omitzero"`  // these
	NTK     float64   `json:"dynamic_ntk,omitzero"`    // or Frequencies[i]·(NTK·L/Trained − (NTK − 1))^(−2i/(RotaryDim − 2))
	Linear  bool      `json:"dynamic_linear,omitzero"` // or Frequencies[i]·Trained/L
}

// At returns the encoding of a call that reaches L positions.
func (e Encoding) At(length int64) Encoding {
	r := e.LengthDependent
	e.LengthDependent = LengthDependent{}
	if r.Trained == 0 || length <= r.Trained {
		return e
	}
	if r.Long != nil {
		e.Frequencies = r.Long
		return e
	}
	stretch := float64(length) / float64(r.Trained)
	e.Frequencies = slices.Clone(e.Frequencies)
	for i := range e.Frequencies {
		if r.NTK > 0 {
			e.Frequencies[i] *= math.Pow(r.NTK*stretch-(r.NTK-1), -2*float64(i)/float64(e.RotaryDim()-2))
		}
		if r.Linear {
			e.Frequencies[i] /= stretch
		}
	}
	e.Frequencies = toFloat32(e.Frequencies)
	return e
}

// RotaryDim returns the number of rotated channels.
func (e Encoding) RotaryDim() int { return 2 * len(e.Frequencies) }

// Turning returns how many pairs turn: some may have the frequency 0 (Gemma 4's proportional rotation).
func (e Encoding) Turning() (count int) {
	for _, omega := range e.Frequencies {
		if omega != 0 {
			count++
		}
	}
	return count
}

// Senses says which way each pair turns: −1 for a negative frequency, else 1.
func (e Encoding) Senses() []float64 {
	senses := make([]float64, len(e.Frequencies))
	for i, omega := range e.Frequencies {
		senses[i] = 1
		if omega < 0 {
			senses[i] = -1
		}
	}
	return senses
}

// WithSenses returns the encoding with each pair's frequencies, those of LengthDependent
// too, multiplied by its sense. Doing it twice gives the encoding back.
func (e Encoding) WithSenses(senses []float64) Encoding {
	signed := func(list []float64) []float64 {
		list = slices.Clone(list)
		for i := range min(len(list), len(senses)) {
			list[i] = list[i]*senses[i] + 0 // −0 becomes 0
		}
		return list
	}
	e.Frequencies, e.LengthDependent.Long = signed(e.Frequencies), signed(e.LengthDependent.Long)
	return e
}

// EffectiveGain returns Gain with its default filled in.
func (e Encoding) EffectiveGain() float64 {
	if e.Gain != 0 {
		return e.Gain
	}
	return 1
}

// Band is one piece of a position map: the keys whose distance d = i − j (of
// indices, or of chunks where Attention.Chunk is set) is at least Start and less
// than the next band's Start. With u(p) = ⌊p / Group⌋ the query stands at
// QueryScale·u(p) + QueryOffset, at most at QueryLimit, and the key at
// KeyScale·u(p), where p is its own position (modulo Chunk). A rotated cache
// needs KeyScale 1 and no group in every band.
type Band struct {
	Start       int64   `json:"start"`
	QueryScale  float64 `json:"query_scale"`
	QueryOffset float64 `json:"query_offset"`
	KeyScale    float64 `json:"key_scale"`
	QueryLimit  float64 `json:"query_limit,omitzero"` // 0 means none
	Group       int64   `json:"group,omitzero"`       // 0 means 1
}

// Temperature is a factor max(1, Offset + Slope·ln(Start + ⌊(p + 1)/Group⌋)) on
// the content score of a query at position p. The zero value is no factor.
type Temperature struct {
	Offset float64 `json:"offset"`
	Slope  float64 `json:"slope"`
	Start  float64 `json:"start"`
	Group  int64   `json:"group,omitzero"` // 0 means 1
}

// At returns the factor at a position.
func (t Temperature) At(p int64) float64 {
	if t == (Temperature{}) {
		return 1
	}
	return max(1, t.Offset+t.Slope*math.Log(t.Start+float64((p+1)/max(1, t.Group))))
}

func defaultScale(headSize int) float64 { return 1 / math.Sqrt(float64(headSize)) }
