package encoding

import "math"

// Sinusoidal is a table of sines and cosines that is added to embeddings: sin(p·ω_i) and
// cos(p·ω_i), ω_i = base^(−2i/size).
// (Vaswani et al., Attention Is All You Need, arXiv:1706.03762, section 3.5.)
type Sinusoidal struct {
	Size   int     // channels of an embedding, an even number
	Base   float64 // 0 means 10000
	Halves bool    // all sines, then all cosines, as in Marian; else they alternate, as in the paper
}

// At returns the row of a position.
func (s Sinusoidal) At(position int64) []float64 {
	if s.Base == 0 {
		s.Base = 10000
	}
	row := make([]float64, s.Size)
	for i, omega := range Powers(s.Size, s.Base) {
		sin, cos := math.Sincos(float64(position) * omega)
		if s.Halves {
			row[i], row[s.Size/2+i] = sin, cos
		} else {
			row[2*i], row[2*i+1] = sin, cos
		}
	}
	return row
}

// Powers returns base^(−2i/size) for each pair i of size channels: the frequencies of RoPE and of
// sinusoidal tables.
func Powers(size int, base float64) []float64 {
	frequencies := make([]float64, size/2)
	for i := range frequencies {
		frequencies[i] = math.Pow(base, -2*float64(i)/float64(size))
	}
	return frequencies
}
