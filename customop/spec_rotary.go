package customop

// RotarySpec is the specification of Rotary. Its arguments have the names that
// Transformer Engine and FlashAttention give them.
var RotarySpec = Spec{
	Name:  "Rotary",
	Names: 8,
	Doc: "The rotary encoding alone, for attention that another op computes: query and, where it is given, key are rotated in one call, " +
		"rotated = R(p)·x for every head x of a token at position p. " +
		"R(p) turns channel pairs by p·frequencies (the angle rounded to float32 unless exact_angles is 1) and multiplies them by gain; the other channels stay as they are. " +
		"With position_axes each pair has a p of its own. inverse 1 gives R(p)ᵀ·x, turned the other way and multiplied by gain, as a backward pass needs it. " +
		"All is computed in float32 and rounded once. " +
		"An output may be the buffer of its input, as FlashAttention's inplace asks for it: a host may bind both to one, and ONNX Runtime reuses the buffer by itself where nothing else reads the input and the graph says that both have one shape (value_info; it infers that of rotated_query).",
	Beyond: "The kernel refuses positions, offsets and cu_seqlens out of range. Of packed tokens the fallback compares each with the end of each sequence, which takes memory for tokens times sequences.",
	Inputs: []Value{
		{Name: "query", Type: "T", Shape: "as tensor_format says: [batch, length, heads, head_size], [length, batch, heads, head_size], [batch, heads, length, head_size] or [tokens, heads, head_size]", Since: 7, Doc: "What is rotated."},
		{Name: "key", Type: "T", Shape: "as query, with heads of its own number", Optional: true, Since: 7, Doc: "Rotated in the same way."},
		{Name: "position_ids", Type: "int64", Shape: "[batch or 1, length], for thd [tokens]; with position_axes [axes, batch or 1, length], for thd [axes, tokens]", Optional: true, Since: 7, Doc: "Positions of the tokens, of a magnitude below 2³¹. Absent means a token's place in its sequence, plus seqlen_offsets. Given together with neither of the next two."},
		{Name: "cu_seqlens", Type: "int32", Shape: "[sequences + 1]", Optional: true, Since: 7, Doc: "For thd, where position_ids or this is needed: sequence s has the tokens from cu_seqlens[s] to cu_seqlens[s + 1]. They begin with 0, do not descend and end with tokens."},
		{Name: "seqlen_offsets", Type: "int32", Shape: "[batch] or [1], for thd [sequences] or [1]", Optional: true, Since: 7, Doc: "Position of the first token of each sequence, each ≥ 0: its tokens in a cache, say."},
		{Name: "max_seqlen", Type: "int32", Shape: "one element", Optional: true, Since: 7, Doc: "With trained_length: how many positions the call reaches, ≥ 0, in place of the largest position + 1; for a call that has a part of the tokens. Without trained_length it changes nothing."},
	},
	Outputs: []Value{
		{Name: "rotated_query", Type: "T", Shape: "as query", Since: 7, Doc: "Query rotated."},
		{Name: "rotated_key", Type: "T", Shape: "as key", Optional: true, Since: 7, Doc: "Key rotated; given where key is."},
	},
	Attributes: []Attribute{
		{Name: "spec_version", Type: "int", Since: 7, Doc: "Version of this specification that the node was written for."},
		{Name: "tensor_format", Type: "string", Default: `"bshd"`, Since: 7, Doc: "Order of the dimensions: bshd, sbhd, bhsd, or thd for sequences packed one behind the other (b batch, s place in the sequence, h head, d channel, t token)."},
		{Name: "interleaved", Type: "int", Default: "0", Since: 7, Doc: "0 pairs channels (x, x + rotary_dim/2) behind rotary_offset, 1 pairs (2x, 2x + 1)."},
		{Name: "frequencies", Type: "floats", Default: "nil", Since: 7, Doc: "Radians per position of each channel pair (inv_freq), one or more. rotary_dim is twice their number; where it is less than head_size the rotation is partial."},
		{Name: "gain", Type: "float", Default: "1", Since: 7, Doc: "Multiplies the rotated channels."},
		{Name: "rotary_offset", Type: "int", Default: "0", Since: 7, Doc: "First rotated channel of a head."},
		{Name: "inverse", Type: "int", Default: "0", Since: 7, Doc: "1 turns by −p·frequencies (FlashAttention's conjugate); gain multiplies as before."},
		{Name: "exact_angles", Type: "int", Default: "0", Since: 7, Doc: "1 keeps the angle p·ω in float64; 0 rounds it to float32 first, as exporters do."},
		{Name: "position_axes", Type: "ints", Default: "nil", Since: 7, Doc: "For each channel pair the axis of position_ids, counted from 0, whose position turns it, where a token has several positions; empty means that it has one. Needs position_ids."},
		{Name: "trained_length", Type: "int", Default: "0", Since: 7, Doc: "n > 0: a call that reaches L > n positions (L is max_seqlen where that is given, else the largest position of all tokens and axes + 1) is turned by other frequencies, which the next three attributes say; one of them must be given."},
		{Name: "long_frequencies", Type: "floats", Default: "nil", Since: 7, Doc: "These, as many as frequencies."},
		{Name: "dynamic_ntk", Type: "float", Default: "0", Since: 7, Doc: "α > 0: frequency i times (α·L/n − (α − 1))^(−2i/(rotary_dim − 2))."},
		{Name: "dynamic_linear", Type: "int", Default: "0", Since: 7, Doc: "1: all divided by L/n."},
	},
}
