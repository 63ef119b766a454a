package encoding

import "iter"

// Description says what an encoding is.
type Description struct {
	Name    string
	Go      string // how Go programs name it
	Formula string
	Source  string
	Seen    string // what package rewrite makes of it in a model
}

// All returns every encoding of positions, with RoPE itself first.
func All() iter.Seq[Description] {
	return func(yield func(Description) bool) {
		for _, d := range []Description{
			{"RoPE", "rope.Encoding", "⟨R(p)q, R(s)k⟩, pair i turned by p·base^(−2i/n)", "Su et al., RoFormer, arXiv:2104.09864, eq. 15", "verified equal and rewritten"},
			{"none", "rope.Encoding{}", "no term depends on p or d; only a causal mask tells the order", "Kazemnejad et al., arXiv:2305.19466", "rewritten in a model whose other layers rotate"},
			{"2-D rotation", "encoding.Rotation2D", "RoPE; half of the pairs by the row, half by the column", "Su, kexue.fm/archives/8397; Qwen2-VL, arXiv:2409.12191, §2.1", "named in the reason"},
			{"randomized positions", "rope.Drawn", "p is the i-th of sorted positions drawn from a larger range", "Ruoss et al., arXiv:2305.16843", "not recognised; `--positions randomized` writes it"},
			{"RoPE with bias", "encoding.RoPEBias", "⟨R(p)(q + a), R(s)(k + b)⟩", "Su, kexue.fm/archives/9577", "as RoPE: the bias of a projection comes before the rotation"},
			{"linear attention with rotation", "encoding.LinearAttention", "Σ ⟨R(m)φ(q), R(n)φ(k)⟩v / Σ ⟨φ(q), φ(k)⟩, φ = elu + 1", "Su et al., RoFormer, arXiv:2104.09864, eq. 19", "not recognised"},
			{"xPos", "encoding.XPos", "RoPE; pair i of the score times ζ_i^(d/base), ζ_i = (i/(n/2) + γ)/(1 + γ)", "Sun et al., arXiv:2212.10554, algorithm 1", "named in the reason"},
			{"sinusoidal", "encoding.Sinusoidal", "x + (sin p·ω_i, cos p·ω_i), ω_i = base^(−2i/size)", "Vaswani et al., arXiv:1706.03762, §3.5", "any table of sines is named in the reason"},
			{"learned absolute", "encoding.Learned", "x + E[p]", "Gehring et al., arXiv:1705.03122, §3.1", "named in the reason"},
			{"ALiBi", "encoding.ALiBi", "score − m_h·|d|, m_h = 2^(−8h/H)", "Press et al., arXiv:2108.12409, §3", "verified equal and rewritten; `--scaling linear` divides the slopes"},
			{"T5's buckets", "encoding.T5", "score + b_h[bucket(d)]", "Raffel et al., arXiv:1910.10683, §2.1", "verified equal and rewritten"},
			{"KERPLE, logarithmic", "encoding.KERPLELog", "(⟨q, k⟩ − r1·ln(1 + r2·|d|))/√size", "Chi et al., arXiv:2205.09921", "named in the reason"},
			{"KERPLE, power", "encoding.KERPLEPower", "(⟨q, k⟩ − r1·|d|^r2)/√size, 0 < r2 ≤ 2", "Chi et al., arXiv:2205.09921", "named in the reason"},
			{"Sandwich", "encoding.Sandwich", "score + H/(8h)·Σ cos(d/10000^(i/pairs))", "Chi et al., arXiv:2212.10356", "named in the reason"},
		} {
			if !yield(d) {
				return
			}
		}
	}
}
