package modelconfig

import "math"

// Layers returns how many layers there are, 0 where the file does not say.
func (c Config) Layers() int { return c.keys.layers() }

func (k keys) layers() int {
	const most = 1000 // more is no model
	return int(min(k.number(layerCounts...).Value, most))
}

var layerCounts = []string{"num_hidden_layers", "n_layer", "num_layers"}

// Heads is the number of query heads.
func (c Config) Heads() Number { return c.keys.number("num_attention_heads", "n_head", "n_heads") }

// latent says whether keys and values are projected from a common latent vector,
// which graphs may keep in place of heads.
func (c Config) latent() bool { return c.keys.number("kv_lora_rank").Given() }

// KVHeads is the number of key and value heads. Attention over latent vectors
// claims none, as graphs may give it one or all.
func (c Config) KVHeads() Number {
	if c.latent() {
		return Number{}
	}
	return c.keys.number("num_key_value_heads", "num_kv_heads", "multi_query_group_num")
}

// HeadSize is the number of channels of a query's or key's head.
func (c Config) HeadSize() Number {
	if nope, rotary := c.keys.number("qk_nope_head_dim"), c.keys.number("qk_rope_head_dim"); nope.Given() && rotary.Given() {
		return Number{"qk_nope_head_dim + qk_rope_head_dim", nope.Value + rotary.Value}
	}
	if n := c.keys.number("head_dim"); n.Given() {
		return n
	}
	hidden, heads := c.keys.number("hidden_size", "n_embd", "d_model"), c.Heads()
	if !hidden.Given() || !(heads.Value > 0) || math.Mod(hidden.Value, heads.Value) != 0 {
		return Number{}
	}
	return Number{hidden.Key + " / " + heads.Key, hidden.Value / heads.Value}
}

// RotaryDim is the number of rotated channels of a head.
func (c Config) RotaryDim() Number {
	if n := c.keys.number("qk_rope_head_dim", "rotary_dim"); n.Given() {
		return n
	}
	size := c.HeadSize()
	parameters := c.keys.object("rope_parameters")
	share := parameters.number(partial)
	if ownShare(parameters.text("rope_type")) {
		return size
	}
	if !share.Given() {
		share = c.keys.number(partial, "rotary_pct", "rope_pct", "rotary_emb_fraction")
	}
	if !share.Given() || !size.Given() {
		return Number{}
	}
	return Number{share.Key, math.Floor(size.Value * share.Value)}
}

// Positions is the number of positions that the model is meant for.
func (c Config) Positions() Number {
	return c.keys.number("max_position_embeddings", "n_positions", "max_sequence_length", "seq_length")
}

// Softcap is c of c·tanh(score/c). The key may hold null, which claims that there
// is none: 0.
func (c Config) Softcap() Number {
	if c.keys.null("attn_logit_softcapping") {
		return Number{Key: "attn_logit_softcapping"}
	}
	return c.keys.number("attn_logit_softcapping")
}

// Scale is what the content score is multiplied by, without what a scaling adds.
func (c Config) Scale() Number {
	if n := c.keys.number("attention_multiplier"); n.Given() {
		return n
	}
	n := c.keys.number("query_pre_attn_scalar")
	if n.Given() {
		n.Value = 1 / math.Sqrt(n.Value)
	}
	return n
}

// Interleaved says whether neighbouring channels turn together. The key is "" where
// the file does not say.
func (c Config) Interleaved() (key string, interleaved bool) {
	if on, given := c.keys.flag("rope_interleave"); given {
		return "rope_interleave", on
	}
	on, given := interleaves[c.keys.text("model_type")]
	if !given {
		return "", false
	}
	return "model_type", on
}

// interleaves says of architectures, by their model_type, which channels turn
// together in transformers. Those that are not here claim nothing.
var interleaves = map[string]bool{
	"gptj": true, "codegen": true, "cohere": true, "cohere2": true, "glm": true, "glm4": true, "llama4_text": true,
	"llama": false, "mistral": false, "mixtral": false, "qwen2": false, "qwen3": false, "gemma": false, "gemma2": false,
	"gemma3_text": false, "phi": false, "phi3": false, "gpt_neox": false, "stablelm": false, "starcoder2": false, "olmo2": false,
}

// Sinks says whether each head has one more logit in the softmax's denominator.
// given is false where the file does not say. No key names them: the architecture does.
func (c Config) Sinks() (sinks, given bool) {
	kind := c.keys.text("model_type")
	_, known := interleaves[kind]
	return kind == "gpt_oss", known || kind == "gpt_oss"
}
