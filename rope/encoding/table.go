package encoding

import "iter"

// Description says what an encoding is.
type Description struct {
	Name    string
	Go      string // how Go programs name it
	Formula string
	Source  string
	Seen    string // where package rewrite recognises it in a model, and what it makes of it
	Changes string // what methods change of it in a model
}

// All returns every encoding of positions, with RoPE itself first.
func All() iter.Seq[Description] {
	return func(yield func(Description) bool) {
		for _, d := range []Description{
			{
				"RoPE", "rope.Encoding", "⟨R(p)q, R(s)k⟩, pair i turned by p·base^(−2i/n)", "Su et al., RoFormer, arXiv:2104.09864, eq. 15",
				"in any spelling of the rotation, also by several positions of a token; verified equal and rewritten", "frequencies, position map, mask, temperature, cache",
			},
			{
				"none", "rope.Encoding{}", "no term depends on p or d; only a causal mask tells the order", "Kazemnejad et al., arXiv:2305.19466",
				"layers that neither rotate nor have a bias by distance; verified equal and rewritten beside others that do, and for a mask", "mask; cache beside layers that rotate or have a bias",
			},
			{
				"2-D rotation", "encoding.Rotation2D", "RoPE; half of the pairs by the row, half by the column", "Su, kexue.fm/archives/8397; Qwen2-VL, arXiv:2409.12191, §2.1",
				"in the rotation; named in the reason", "nothing",
			},
			{
				"randomized positions", "rope.Drawn", "p is the i-th of sorted positions drawn from a larger range", "Ruoss et al., arXiv:2305.16843",
				"as RoPE, whose positions the caller gives", "written into a model with RoPE by `--positions randomized`",
			},
			{
				"RoPE with bias", "encoding.RoPEBias", "⟨R(p)(q + a), R(s)(k + b)⟩", "Su, kexue.fm/archives/9577",
				"as RoPE: the bias of a projection comes before the rotation", "as RoPE",
			},
			{
				"linear attention with rotation", "encoding.LinearAttention", "Σ ⟨R(m)φ(q), R(n)φ(k)⟩v / Σ ⟨φ(q), φ(k)⟩, φ = elu + 1", "Su et al., RoFormer, arXiv:2104.09864, eq. 19",
				"not recognised: it has no softmax", "nothing",
			},
			{
				"xPos", "encoding.XPos", "RoPE; pair i of the score times ζ_i^(d/base), ζ_i = (i/(n/2) + γ)/(1 + γ)", "Sun et al., arXiv:2212.10554, algorithm 1",
				"in the rotation; named in the reason, with its numbers; the scores are verified equal and rewritten, and the model's own nodes rotate", "mask, cache",
			},
			{
				"sinusoidal", "encoding.Sinusoidal", "x + (sin p·ω_i, cos p·ω_i), ω_i = base^(−2i/size)", "Vaswani et al., arXiv:1706.03762, §3.5",
				"where a table of sines, or computed ones, are added to hidden states; named in the reason", "mask",
			},
			{
				"learned absolute", "encoding.Learned", "x + E[p]", "Gehring et al., arXiv:1705.03122, §3.1",
				"where rows of a table are added to hidden states; named in the reason", "mask",
			},
			{
				"ALiBi", "encoding.ALiBi", "score − m_h·|d|, m_h = 2^(−8h/H)", "Press et al., arXiv:2108.12409, §3",
				"in what is added to scores, by index or by the tokens that the padding mask shows; verified equal and rewritten", "window, first keys, documents, cache; slopes by `--scaling linear:factor=F`, m_h/F (arXiv:2310.13017)",
			},
			{
				"T5's buckets", "encoding.T5", "score + b_h[bucket(d)]", "Raffel et al., arXiv:1910.10683, §2.1",
				"in what is added to scores, one way or both, and any other table that ends in a constant; verified equal and rewritten", "window, first keys, documents, cache",
			},
			{
				"KERPLE, logarithmic", "encoding.KERPLELog", "(⟨q, k⟩ − r1·ln(1 + r2·|d|))/√size", "Chi et al., arXiv:2205.09921",
				"in what is added to scores; named in the reason, with its numbers", "mask; the bias stays the model's own",
			},
			{
				"KERPLE, power", "encoding.KERPLEPower", "(⟨q, k⟩ − r1·|d|^r2)/√size, 0 < r2 ≤ 2", "Chi et al., arXiv:2205.09921",
				"in what is added to scores; named in the reason, with its numbers", "mask, where the bias stays above −9,000 at all distances; it stays the model's own",
			},
			{
				"Sandwich", "encoding.Sandwich", "score + H/(8h)·Σ cos(d/10000^(i/pairs))", "Chi et al., arXiv:2212.10356",
				"in what is added to scores; named in the reason, with its numbers", "mask; the bias stays the model's own",
			},
		} {
			if !yield(d) {
				return
			}
		}
	}
}
