package pairs

// rule is what cannot be together, and why: a part of the sentence that the user reads. All of its settings are needed.
type rule struct {
	together []string
	sentence string
}

// rules are all of them. What breaks none is rewritten, and right (TestPairs); what breaks one is refused (TestRefused).
var rules = []rule{
	// Models without a cache have none to change, and others are called many times.
	{[]string{"model: *nocache", "kv: fixed|ring"}, "it has no key-value cache that could be changed"},
	{[]string{"model: *nocache", "!type: same"}, "it has no key-value cache that could be changed"},
	{[]string{"!model: *nocache", "positions: randomized*"}, "needs whole texts in one call, but the model caches keys"},
	{[]string{"!model: *nocache", "documents: * by separator"}, "a model with a cache cannot count documents by a separator"},

	// Caches.
	{[]string{"model: gpt_neox*", "scaling: longrope*"}, "short_factor has 8 numbers for the graph's 4 pairs"},
	{[]string{"model: gpt_neox*", "target: contrib"}, "it rotates only multiples of 16 channels"},
	{[]string{"model: *fp16", "type: float16|bfloat16"}, "only caches of float32 can become"},
	{[]string{"kv: ring", "!target: ops"}, "ring=true (--kv) needs the op"},
	{[]string{"kv: ring", "window: the model's", "!model: gemma3*"}, "ring=true: no layer has a window that is shorter than the capacity"},
	{[]string{"kv: ring", "documents: *restart*|*reset*"}, "its positions count all tokens of a document"},
	{[]string{"kv: ring", "positions: self-extend*"}, "its bands share positions"},
	{[]string{"kv: ring", "positions: dual-chunk*"}, "its bands are chunks"},
	{[]string{"kv: ring", "!window: the model's", "scaling: temperature*|log-n", "cache: raw"}, temperature},
	{[]string{"kv: ring", "!window: the model's", "scaling: temperature*|log-n", "positions: rerope*|leaky-rerope*"}, temperature},
	{[]string{"kv: ring", "window: first-keys*", "positions: string*"}, "a band begins at distance"},
	{[]string{"kv: ring", "window: first-keys:window=12,count=3", "positions: identity", "cache: raw"}, nearer},
	{[]string{"kv: ring", "window: first-keys:window=12,count=3", "positions: identity", "scaling: *length=run*"}, nearer},
	{[]string{"kv: ring", "window: first-keys:window=12,count=3", "positions: leaky-rerope*"}, nearer},

	// Positions.
	{[]string{"window: *positions=cache", "positions: " + byDistance}, "the attention already has a position map; two cannot be combined"},
	{[]string{"window: *positions=cache", "positions: randomized*"}, "the tokens' positions are drawn at random"},
	{[]string{"positions: randomized*", "cache: raw"}, "keys that are cached un-rotated are rotated by their index in the row, not by a drawn position"},
	{[]string{"positions: randomized*", "scaling: *length=run*"}, "keys that are cached un-rotated are rotated by their index in the row, not by a drawn position"},
	{[]string{"documents: *restart*|*reset*", "positions: " + byDistance}, "positions that restart in each document cannot be combined with a position map"},
	{[]string{"documents: *restart*|*reset*", "positions: randomized*"}, "positions that restart in each document cannot be combined with positions drawn at random"},
	{[]string{"documents: *restart*|*reset*", "window: *positions=cache"}, "positions that restart in each document cannot be combined with a position map"},
	{[]string{"documents: *restart*|*reset*", "cache: raw"}, restarts},
	{[]string{"documents: *restart*|*reset*", "scaling: *length=run*"}, restarts},

	// ONNX Runtime's GroupQueryAttention.
	{[]string{"target: contrib", "positions: " + byDistance}, "GroupQueryAttention cannot compute this"},
	{[]string{"target: contrib", "window: first-keys*"}, "GroupQueryAttention cannot compute this"},
	{[]string{"target: contrib", "!documents: none"}, "GroupQueryAttention cannot compute this"},
	{[]string{"target: contrib", "cache: raw"}, "GroupQueryAttention cannot compute this: its cache has rotated keys, not raw ones"},
	{[]string{"target: contrib", "scaling: *length=run*"}, "GroupQueryAttention cannot compute this: its cache has rotated keys, not raw ones"},
	{[]string{"target: contrib", "scaling: temperature*|log-n"}, "GroupQueryAttention cannot compute this"},
	{[]string{"target: contrib", "positions: randomized*"}, "it counts tokens, and here their positions are drawn at random"},
	{[]string{"target: contrib", "type: float16|bfloat16"}, "its caches of few bits are int8 with fixed scales"},
	{[]string{"target: contrib", "type: int8"}, "needs fixed scales, because GroupQueryAttention makes none"},

	// Earlier methods.
	{[]string{"base: carried", "scaling: none", "positions: identity", "window: the model's", "documents: none", "cache: rotated", "kv: growing", "type: same", "logits: all", "target: ops"}, "the model is already rewritten; give a method"},
}

const (
	byDistance  = "string*|rerope*|leaky-rerope*|self-extend*|dual-chunk*"
	temperature = "its temperature follows the position"
	nearer      = "its keys are raw, and first keys would come nearer"
	restarts    = "positions that restart in each document cannot be combined with keys that are cached un-rotated"
)
