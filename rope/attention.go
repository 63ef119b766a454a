package rope

// Attention is what one attention layer computes, as a value: what a rewriter
// measures from an exporter's graph, what a method edits, and what the op
// computes. The formula is, for a query at index i = past + place in the call,
// a key at index j, and the band b that holds the distance i − j:
//
//	c(i,j) = Scale · Temperature(p_i) · ⟨QueryFactors ⊙ R(a_b) q_i, KeyFactors ⊙ R(c_b) k_j⟩
//	s(i,j) = Softcap · tanh((c + bias before) / Softcap) + bias after + Distance(i − j), or c + biases without a softcap
//	out_i  = Σ_{j visible} softmax_j(s(i,·)) v_j
//
// A query that sees no key gives zeros.
type Attention struct {
	Heads       int         `json:"heads"`                // query heads
	KVHeads     int         `json:"kv_heads"`             // key and value heads; query head h reads kv head h / (Heads / KVHeads)
	HeadSize    int         `json:"head_size"`            // channels per head of query and key
	Scale       float64     `json:"scale,omitzero"`       // on the content score; 0 means 1/√HeadSize
	Softcap     float64     `json:"softcap,omitzero"`     // 0 means none
	Temperature Temperature `json:"temperature,omitzero"` // on the content score, by the query's position
	Sinks       []float64   `json:"-"`                    // one more logit per head, in the softmax's denominator only; nil means none

	// Factors on the channels of query and key after the rotation, HeadSize of them: the
	// weights of a norm, for example. A cache of rotated keys holds keys that are
	// multiplied already.
	QueryFactors []float64 `json:"-"` // nil means all 1
	KeyFactors   []float64 `json:"-"`

	Encoding Encoding `json:"encoding,omitzero"`
	Bands    []Band   `json:"bands,omitzero"`    // position map; nil is plain RoPE (one band, true positions)
	Chunk    int64    `json:"chunk,omitzero"`    // n > 0: bands hold distances of chunks, ⌊p_i/n⌋ − ⌊p_j/n⌋, and take positions modulo n
	Drawn    Drawn    `json:"drawn,omitzero"`    // tokens stand at positions drawn from a range
	Distance Distance `json:"distance,omitzero"` // a bias on the scores by the distance between query and key
	Mask     Mask     `json:"mask"`
	Cache    Cache    `json:"cache"`

	// Cross says that keys and values come from another text (cross-attention). They have
	// no place among the query's tokens, so there is no encoding, map, window, temperature
	// or cache.
	Cross bool `json:"cross,omitzero"`
}

// Cache says how keys stand in the key-value cache.
type Cache uint8

const (
	// Rotated keys are stored rotated by their own position, as most exporters write them.
	Rotated Cache = iota
	// Raw keys are stored as they come and rotated when they are read.
	Raw
)

// Mask says which keys a query sees. The zero value sees every key.
type Mask struct {
	Causal    bool  `json:"causal"`              // key index ≤ query index
	Window    int64 `json:"window,omitzero"`     // 0 = no window, else keys with |i − j| < Window (the key itself counts)
	FirstKeys int64 `json:"first_keys,omitzero"` // a row's first FirstKeys keys, padding not counted, stay visible outside the window
	Padding   bool  `json:"padding,omitzero"`    // a 2-D mask [batch, past + length] says which keys are real
	Bias      bool  `json:"bias,omitzero"`       // a bias on the scores, which the model computes, hides or weighs keys beside all else

	Documents Documents `json:"documents,omitzero"` // who sees whom when tokens have document ids
	Restart   bool      `json:"restart,omitzero"`   // positions restart in each document, at Start (in document 0 at 0); padding is not counted
	Start     int64     `json:"start,omitzero"`
}

// Documents says what ids [batch, past + length] do to visibility: 0 is the
// anchor, documents count from 1, −1 is a reader. A reader sees every key, and
// only readers see a reader's. (AnchorAttention, arXiv:2411.13476, section 3.)
type Documents uint8

const (
	// NoDocuments gives tokens no ids.
	NoDocuments Documents = iota
	// IntraDocument shows a query the keys of its own document.
	IntraDocument
	// AnchorDocument shows it those of document 0 as well.
	AnchorDocument
)

// EffectiveScale returns Scale with its default filled in.
func (a Attention) EffectiveScale() float64 {
	if a.Scale != 0 {
		return a.Scale
	}
	return defaultScale(a.HeadSize)
}
