package customop

import (
	"fmt"
	"slices"
)

// Domain is the ONNX domain of every op of this project.
const Domain = "rope.rewrite"

// SpecVersion is the newest version of the op's specification that this
// package writes. A library that knows only an older one refuses the node.
const SpecVersion = 8

// NumberedSince is the version of the specification that brought numbered names of an op.
const NumberedSince = 5

// Specs are the specifications of all ops of the domain.
var Specs = []Spec{RotaryAttentionSpec, RotarySpec}

// Spec is the one description of an op; the C header, the Go node builder and
// docs/ops.md are generated from it (go generate ./customop).
type Spec struct {
	Name       string
	Names      int // under which the library knows the op: Name, Name_2, … (OpTypes)
	Doc        string
	Beyond     string // what the kernels do and the op's fallback does not
	Inputs     []Value
	Outputs    []Value
	Attributes []Attribute
}

// OpTypes lists the names that a node of the op may have. They mean the same. A model whose
// nodes differ in structure, such as in the inputs they have, needs several: functions that
// are the op's fallback in runtimes without the library fit all nodes of their name.
func (s Spec) OpTypes() []string {
	list := []string{s.Name}
	for n := 2; n <= s.Names; n++ {
		list = append(list, fmt.Sprintf("%s_%d", s.Name, n))
	}
	return list
}

// SpecOf returns the specification of an op of the domain, under any of its names.
func SpecOf(opType string) (Spec, bool) {
	i := slices.IndexFunc(Specs, func(s Spec) bool { return slices.Contains(s.OpTypes(), opType) })
	if i < 0 {
		return Spec{}, false
	}
	return Specs[i], true
}

// Value describes one input or output of an op.
type Value struct {
	Name     string
	Type     string // "T" (the node's element type), "C" (that of its caches), "float", "int64", "int32"
	Shape    string
	Optional bool
	Since    int  // spec version that brought it
	Reserved bool // named, but refused by the kernels of this version
	Doc      string
}

// Attribute describes one attribute of an op.
type Attribute struct {
	Name     string
	Type     string // "int", "float", "string", "ints", "floats"
	Default  string // Go literal; empty means required
	Since    int
	Reserved string // non-empty: any value but the default is refused, with this reason
	Doc      string
}

// RotaryAttentionSpec is the specification of RotaryAttention.
var RotaryAttentionSpec = Spec{
	Name:  "RotaryAttention",
	Names: 8,
	Doc: "Attention with the rotary encoding, position map, mask and key-value cache inside. " +
		"For a query at index i = past + its place in the call, with position p_i, and a key at index j: " +
		"c(i,j) = scale · t(p_i) · ⟨R(a_b) q_i, R(c_b) k_j⟩, where b is the band that holds the distance i − j, " +
		"a_b = min(band_query_scales[b]·u_b(p_i) + band_query_offsets[b], band_query_limits[b]), c_b = band_key_scales[b]·u_b(p_j), u_b(p) = ⌊p / band_groups[b]⌋, and t(p) is 1 without a temperature; " +
		"s = softcap·tanh((c + bias_before_softcap)/softcap) + attention_bias + d(i,j), where no softcap leaves c + bias_before_softcap, and d(i,j) is 0 without distance_slopes and distance_starts; output = Σ over visible j of softmax(s)·v_j. " +
		"R(p) turns channel pairs by p·frequencies (the angle rounded to float32 unless exact_angles is 1) and multiplies them by gain; with position_axes each pair has a p of its own, and with query_factors and key_factors all channels are multiplied by these after that. " +
		"A query that sees no key gives zeros. More than one band needs causal = 1.",
	Beyond: "The kernel refuses positions and document ids out of range, a cache length beyond the buffer's capacity with a sentence of its own (the fallback ends with an error of ScatterND), shared memory of past and present that overlaps otherwise than as one buffer, and a position − index that is not one number in a row. It gives zeros for queries against another text (`cross`) of no token, where the fallback ends with an error of Reshape. A key or value that is hidden from a query and is infinite or NaN does not touch the kernel's output; in the fallback, as in most exporters' graphs, it does (zero times infinity), except behind the tokens of a buffer of fixed capacity. The fallback computes all scores at once, so its memory grows with the square of the length; the softcap is in float64.",
	Inputs: []Value{
		{Name: "query", Type: "T", Shape: "[batch, num_heads, length, head_size] or [batch, length, num_heads·head_size]", Since: 1, Doc: "Query before rotation."},
		{Name: "key", Type: "T", Shape: "[batch, kv_num_heads, length, head_size] or [batch, length, kv_num_heads·head_size]", Since: 1, Doc: "New keys before rotation."},
		{Name: "value", Type: "T", Shape: "[batch, kv_num_heads, length, v_head_size] or [batch, length, kv_num_heads·v_head_size]", Since: 1, Doc: "New values."},
		{Name: "past_key", Type: "C", Shape: "[batch, kv_num_heads, past, head_size]", Optional: true, Since: 1, Doc: "Keys of earlier calls, as present_key gave them. Absent means past = 0."},
		{Name: "past_value", Type: "C", Shape: "[batch, kv_num_heads, past, v_head_size]", Optional: true, Since: 1, Doc: "Values of earlier calls; given together with past_key."},
		{Name: "position_ids", Type: "int64", Shape: "[batch or 1, length], with position_axes [axes, batch or 1, length]", Optional: true, Since: 1, Doc: "Positions of the new tokens, each ≥ 0. Absent means the index past + place. With more than one band or a raw cache, position − index must be the same for all real (unpadded) tokens of a row, and a cached key stands at its index + that number."},
		{Name: "attention_mask", Type: "int64", Shape: "[batch or 1, past + length]", Optional: true, Since: 1, Doc: "0 hides the key; any other value shows it."},
		{Name: "attention_bias", Type: "T", Shape: "broadcastable to [batch, num_heads, length, past + length]", Optional: true, Since: 2, Doc: "Added to the scores after the softcap. −∞ hides the key."},
		{Name: "cache_length", Type: "int32", Shape: "[batch]", Optional: true, Since: 2, Doc: "Past of each row, each ≥ 0: how many rows of past_key and past_value, which are then buffers [batch, kv_num_heads, capacity, …], hold tokens. Row b's new tokens have the indices cache_length[b] + place. attention_mask, attention_bias and document_ids then have any width ≥ the largest cache_length + length. Only with cache_ring may it exceed the capacity."},
		{Name: "document_ids", Type: "int64", Shape: "[batch or 1, past + length]", Optional: true, Since: 2, Doc: "Document of each token: 0 anchor, ≥ 1 documents, −1 reader; document_mask says who sees whom."},
		{Name: "sink_logits", Type: "T", Shape: "[num_heads]", Optional: true, Since: 2, Doc: "One more logit per head, in the softmax's denominator only; a finite number or −∞ (no sink)."},
		{Name: "bias_before_softcap", Type: "T", Shape: "broadcastable to [batch, num_heads, length, past + length]", Optional: true, Since: 2, Doc: "Added to the scores before the softcap. −∞ hides the key."},
		{Name: "total_length", Type: "int32", Shape: "one element", Optional: true, Since: 2, Doc: "With cache_length: present has max(capacity, total_length) rows instead of capacity, as GroupQueryAttention's has."},
		{Name: "past_key_scale", Type: "float", Shape: "[batch, kv_num_heads, past or capacity, 1]", Optional: true, Since: 8, Doc: "With cache_type int8: the scale of each row of past_key, which holds ⟨integer · scale⟩."},
		{Name: "past_value_scale", Type: "float", Shape: "[batch, kv_num_heads, past or capacity, 1]", Optional: true, Since: 8, Doc: "That of past_value."},
	},
	Outputs: []Value{
		{Name: "output", Type: "T", Shape: "query's rank: [batch, num_heads, length, v_head_size] or [batch, length, num_heads·v_head_size]", Since: 1, Doc: "Attention output."},
		{Name: "present_key", Type: "C", Shape: "[batch, kv_num_heads, past + length, head_size]", Optional: true, Since: 1, Doc: "past_key followed by the new keys (rotated unless cache is raw). With cache_length it has past_key's capacity instead: where both are one buffer the new keys are written into it and nothing else; otherwise the tokens are copied. What stands in the rows behind them is not specified."},
		{Name: "present_value", Type: "C", Shape: "[batch, kv_num_heads, past + length, v_head_size]", Optional: true, Since: 1, Doc: "past_value followed by the new values; with cache_length as present_key."},
		{Name: "log_sum_exp", Type: "float", Shape: "[batch, num_heads, length]", Optional: true, Since: 2, Doc: "Logarithm of the softmax's denominator, sink excluded; −∞ for a query that sees no key."},
		{Name: "present_key_scale", Type: "float", Shape: "[batch, kv_num_heads, past + length, 1], with cache_length as present_key", Optional: true, Since: 8, Doc: "With cache_type int8: the scale of each row of present_key, given together with it. May be past_key_scale's buffer, as present_key may be past_key's."},
		{Name: "present_value_scale", Type: "float", Shape: "as present_key_scale", Optional: true, Since: 8, Doc: "That of present_value."},
	},
	Attributes: []Attribute{
		{Name: "spec_version", Type: "int", Since: 1, Doc: "Version of this specification that the node was written for."},
		{Name: "num_heads", Type: "int", Since: 1, Doc: "Query heads, a multiple of kv_num_heads."},
		{Name: "kv_num_heads", Type: "int", Since: 1, Doc: "Key and value heads."},
		{Name: "scale", Type: "float", Default: "0", Since: 1, Doc: "Multiplies the content score; 0 means 1/√head_size."},
		{Name: "frequencies", Type: "floats", Default: "nil", Since: 1, Doc: "Radians per position of each channel pair (inv_freq); empty means no rotation. rotary_dim is twice its length."},
		{Name: "gain", Type: "float", Default: "1", Since: 1, Doc: "Multiplies the rotated channels of query and key."},
		{Name: "rotary_layout", Type: "string", Default: `"half"`, Since: 1, Doc: "half pairs channels (x, x + rotary_dim/2), interleaved pairs (2x, 2x + 1)."},
		{Name: "rotary_offset", Type: "int", Default: "0", Since: 1, Doc: "First rotated channel of a head."},
		{Name: "exact_angles", Type: "int", Default: "0", Since: 1, Doc: "1 keeps the angle p·ω in float64; 0 rounds it to float32 first, as exporters do."},
		{Name: "position_axes", Type: "ints", Default: "nil", Since: 6, Doc: "For each channel pair the axis of position_ids, counted from 0, whose position turns it, where a token has several positions (time, height and width); empty means that it has one. Needs position_ids, one band without a map, a rotated cache, no temperature and no document_restart: these ask for one position. With trained_length the largest position of all axes counts."},
		{Name: "query_factors", Type: "floats", Default: "nil", Since: 6, Doc: "Multiply the channels of every query head after the rotation, head_size of them (the weights of a norm behind the rotation, say); empty means all 1."},
		{Name: "key_factors", Type: "floats", Default: "nil", Since: 6, Doc: "The same for keys. A rotated cache holds keys multiplied by them, a raw one does not."},
		{Name: "causal", Type: "int", Default: "1", Since: 1, Doc: "1 hides keys with j > i."},
		{Name: "cross", Type: "int", Default: "0", Since: 6, Doc: "1: key and value are those of another text (cross-attention). They may be of any number, which stands in place of the length of key and value and of past + length. Needs causal 0, and no window, frequencies, raw cache, temperature, past_key, position_ids and document_ids: the keys have no place among the tokens of the queries."},
		{Name: "window", Type: "int", Default: "0", Since: 1, Doc: "n > 0 hides keys with i − j ≥ n (and, when not causal, j − i ≥ n); 0 means no window."},
		{Name: "first_keys", Type: "int", Default: "0", Since: 2, Doc: "Keys with j < first_keys stay visible outside the window; first_keys_shown = 1 counts them otherwise."},
		{Name: "first_keys_shown", Type: "int", Default: "0", Since: 4, Doc: "1: of each row the first first_keys keys that attention_mask shows stay visible outside the window, wherever they stand."},
		{Name: "softcap", Type: "float", Default: "0", Since: 2, Doc: "c > 0 maps the score s to c·tanh(s/c)."},
		{Name: "band_starts", Type: "ints", Default: "nil", Since: 1, Doc: "Smallest distance i − j of each band, ascending, the first 0. Empty means one band of true positions."},
		{Name: "band_query_scales", Type: "floats", Default: "nil", Since: 1, Doc: "One per band; empty means all 1."},
		{Name: "band_query_offsets", Type: "floats", Default: "nil", Since: 1, Doc: "One per band; empty means all 0."},
		{Name: "band_key_scales", Type: "floats", Default: "nil", Since: 1, Doc: "One per band; empty means all 1. A rotated cache needs 1."},
		{Name: "band_query_limits", Type: "floats", Default: "nil", Since: 3, Doc: "Largest position of the query, one per band, each ≥ 0; 0 and empty mean none."},
		{Name: "band_groups", Type: "ints", Default: "nil", Since: 3, Doc: "Positions that share one, one per band, each ≥ 1; empty means all 1. A rotated cache needs 1."},
		{Name: "band_chunk", Type: "int", Default: "0", Since: 3, Doc: "n > 0: bands hold distances of chunks, ⌊p_i/n⌋ − ⌊p_j/n⌋, instead of distances of keys, and in the formulas of a_b and c_b positions are taken modulo n. Needs a raw cache."},
		{Name: "temperature", Type: "floats", Default: "nil", Since: 3, Doc: "Four numbers offset ≥ 0, slope > 0, start ≥ 0, group ≥ 1 of the temperature t(p) = max(1, offset + slope·ln(start + ⌊(p + 1)/group⌋)) of the query's position; empty means 1."},
		{Name: "trained_length", Type: "int", Default: "0", Since: 3, Doc: "n > 0: a call whose real tokens reach L > n positions (L is total_length where that is given, else the largest position of the batch + 1) turns its queries and keys by other frequencies, which the next three attributes say; one of them must be given. In a rotated cache earlier calls' keys stay as those turned them."},
		{Name: "long_frequencies", Type: "floats", Default: "nil", Since: 3, Doc: "These, as many as frequencies."},
		{Name: "dynamic_ntk", Type: "float", Default: "0", Since: 3, Doc: "α > 0: frequency i times (α·L/n − (α − 1))^(−2i/(rotary_dim − 2))."},
		{Name: "dynamic_linear", Type: "int", Default: "0", Since: 3, Doc: "1: all divided by L/n."},
		{Name: "distance_slopes", Type: "floats", Default: "nil", Since: 7, Doc: "A slope of each query head, num_heads of them: the slope times |i − j| is taken from the score after the softcap (ALiBi). Empty means none. Not together with cross, as all attributes of distances."},
		{Name: "distance_starts", Type: "ints", Default: "nil", Since: 7, Doc: "Buckets of distances, each with a bias of every head (T5): the smallest distance i − j of each bucket, ascending. A bucket has the distances up to the next one's start, the first bucket also all smaller ones, the last all larger ones. Later keys have negative distances. Empty means none."},
		{Name: "distance_biases", Type: "floats", Default: "nil", Since: 7, Doc: "Added to the score after the softcap: of each bucket the biases of all heads, [buckets, num_heads] row by row."},
		{Name: "distance_shown", Type: "int", Default: "0", Since: 7, Doc: "1: distances count only the keys that attention_mask shows: the number of these before the query minus the number of these before the key."},
		{Name: "document_mask", Type: "string", Default: `"intra"`, Since: 2, Doc: "With document_ids: intra shows a query the keys of its own document, anchor also those of document 0; a reader sees all keys, and only readers see a reader's."},
		{Name: "document_restart", Type: "int", Default: "0", Since: 2, Doc: "1 restarts positions: a token's position is document_start (0 in document 0) + the number of earlier tokens of its row with its id, padding not counted, and position_ids are not used; readers keep theirs. Needs one band."},
		{Name: "document_start", Type: "int", Default: "0", Since: 2, Doc: "Position of the first token of each document when positions restart, ≥ 0."},
		{Name: "precision", Type: "string", Default: `"exact"`, Since: 2, Doc: "exact keeps rotated queries and this call's rotated keys in float32 for the product; fast rounds them to T first, as the cache does, and softmax weights too where the CPU multiplies bfloat16. In float32 fast may round to bfloat16 what it multiplies, cached keys, values and weights as well, where a call has many query rows and the CPU multiplies bfloat16; elsewhere it is exact. Caches hold the same either way."},
		{Name: "cache_type", Type: "string", Default: `"same"`, Since: 8, Doc: "C, the element type of past_key, past_value, present_key and present_value: same is T; float16 and bfloat16 where T is float; int8, where each token's key and value of a head is a row of integers with a scale of its own, the largest magnitude of the row divided by 127, and the integers are the numbers divided by it and rounded to the nearest, ties to even. A row with a number that is not finite has the scale NaN. Another type than same needs past_key and past_value. The keys and values of this call are read as they come, before they are rounded for the cache."},
		{Name: "cache_ring", Type: "int", Default: "0", Since: 8, Doc: "1: the buffers of past_key and past_value are rings, in which new tokens take the rows of the oldest. The token at index j is in row j where j < first_keys, and else in row first_keys + (j − first_keys) mod (capacity − first_keys). So a row of the batch whose cache_length is beyond the capacity has lost cache_length − capacity tokens behind its first keys. What this page says then holds for the tokens that are left: indices count these alone, and of attention_mask and document_ids the columns of the others are not read. A raw cache takes position_ids less the number of lost tokens; a rotated one, and trained_length, take them as they are. attention_mask may then be narrower than all tokens; those behind its last column are shown. Needs cache_length, causal 1, a window, and a capacity of first_keys + window or more. Not together with attention_bias, bias_before_softcap, total_length and document_restart. With first_keys_shown, attention_mask must show each row's first first_keys tokens."},
		{Name: "cache", Type: "string", Default: `"rotated"`, Since: 1, Doc: "rotated stores rotated keys; raw stores keys as they come and rotates them when they are read; not together with document_restart."},
	},
}
