package rope

import (
	"errors"
	"fmt"
	"math"
)

// dualChunk is dual chunk attention. Bands follow the chunks of positions, not
// distances, so positions are taken modulo the chunk's length.
var dualChunk = Method{
	Axis: PositionsAxis,
	Name: "dual-chunk",
	Doc:  "Dual chunk attention: the row is split into chunks; a query sees its own chunk at true distances, the chunk before it at distances that grow up to chunk_size, and all earlier chunks at the largest distance. Qwen's models for a million tokens use it together with yarn.",
	Formula: "ℓ = chunk_size − local_size; key at p mod ℓ; query in its own chunk at p mod ℓ, for the chunk before at min(p mod ℓ + ℓ, chunk_size), for earlier ones at min(2ℓ − 1, chunk_size); " +
		"with original_max_position_embeddings the score is multiplied by max(1, 0.1·ln(context/original) + 1)",
	Source:   "An et al., Dual Chunk Attention, arXiv:2402.17463, §3; temperature: Qwen2.5-1M, arXiv:2501.15383",
	Measured: "SmolLM2-135M-Instruct, trained on 8K, found 5 of 5 pass keys at 16K with chunk_size=6k,local_size=1k",
	RawCache: true,
	Params: []Param{
		{Name: "chunk_size", Kind: Tokens, Rule: atLeastOne, Doc: "largest distance that occurs, at most the trained context; must be given"},
		{Name: "local_size", Kind: Tokens, Rule: atLeastZero, Doc: "number of keys before a chunk that stay at true distances; chunk_size − local_size is the chunk's length; must be given"},
		{Name: "original_max_position_embeddings", Kind: Whole, Counts: true, Rule: atLeastOne, Doc: "trained context L0 for the temperature; if not given, there is none"},
	},
	apply: applyDualChunk,
}

func applyDualChunk(e edit) (Attention, []string, error) {
	if err := e.checkMap(); err != nil {
		return Attention{}, nil, err
	}
	for _, key := range []string{"chunk_size", "local_size"} {
		if !e.given(key) {
			return Attention{}, nil, fmt.Errorf("give chunk_size= and local_size=; %s= is missing", key)
		}
	}
	size, local := e.integer("chunk_size"), e.integer("local_size")
	length := size - local
	if length < 1 {
		return Attention{}, nil, fmt.Errorf("local_size=%d must be below chunk_size=%d", local, size)
	}
	var warnings []string
	if e.Original > 0 && size > e.Original {
		warnings = append(warnings, fmt.Sprintf("chunk_size=%d exceeds the trained context of %d tokens, so untrained distances occur", size, e.Original))
	}
	if e.given("original_max_position_embeddings") {
		if e.Length == 0 {
			return Attention{}, nil, errors.New("the temperature needs the context; give --context, or leave original_max_position_embeddings= out")
		}
		stretch := float64(e.Length) / e.number("original_max_position_embeddings")
		e.Scale = e.EffectiveScale() * max(1, 0.1*math.Log(stretch)+1)
	}
	e.Cache = Raw
	e.Chunk = length
	e.Bands = []Band{
		near,
		{Start: 1, QueryScale: 1, QueryOffset: float64(length), KeyScale: 1, QueryLimit: float64(size)},
		{Start: 2, QueryOffset: float64(min(2*length-1, size)), KeyScale: 1},
	}
	return e.Attention, warnings, nil
}
