package modelconfig

import "encoding/json"

// Older configurations ask for a scaling by a key of its own, and not by a dictionary: those of
// models whose code stands beside them.

// olderScaling returns the dictionary that an older key stands for, or in words what no dictionary
// says, and the key; "" where none asks for anything.
func (k keys) olderScaling() (dictionary json.RawMessage, other, key string) {
	if n := k.number("rotary_scaling_factor"); n.Given() && n.Value != 1 {
		d := map[string]any{"rope_type": "dynamic", "factor": n.Value}
		if trained := k.number("max_trained_positions"); trained.Given() {
			d["original_max_position_embeddings"] = trained.Value
		}
		if data, err := json.Marshal(d); err == nil {
			return data, "", n.Key
		}
	}
	if on, _ := k.flag("use_dynamic_ntk"); on {
		return nil, "dynamic NTK that grows by powers of two", "use_dynamic_ntk"
	}
	if n := k.number("rope_ratio"); n.Given() && n.Value != 1 {
		return nil, "another base, or positions that are divided", n.Key
	}
	return nil, "", ""
}

// LogN is the key that asks for a factor on queries beyond the trained length, by the logarithm of
// their position; "" where none does.
func (c Config) LogN() string {
	if on, _ := c.keys.flag("use_logn_attn"); on {
		return "use_logn_attn"
	}
	return ""
}

// Decay is the key that asks for xPos, a decay by distance; "" where none does.
func (c Config) Decay() string { return c.keys.number("rotary_emb_scale_base").Key }

// Slopes is the key that asks for ALiBi, a slope of each head by distance; "" where none does.
func (c Config) Slopes() string {
	const key, inner = "alibi", "attn_config"
	if on, _ := c.keys.flag(key); on {
		return key
	}
	if on, _ := c.keys.object(inner).flag(key); on {
		return inner + "." + key
	}
	return ""
}

// Buckets is the key that asks for T5's biases by buckets of distances; "" where none does.
func (c Config) Buckets() string { return c.keys.number("relative_attention_num_buckets").Key }
