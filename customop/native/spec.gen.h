// Hand-made stand-in until the generator has run.
#ifndef ROPE_SPEC_GEN_H_
#define ROPE_SPEC_GEN_H_

namespace rope::spec {

inline constexpr int kSpecVersion = 1;
inline constexpr char kDomain[] = "rope.rewrite";

inline constexpr char kRotaryAttention[] = "RotaryAttention";

enum RotaryAttentionInput {
  kQuery = 0,
  kKey,
  kValue,
  kPastKey,
  kPastValue,
  kPositionIds,
  kAttentionMask,
  kAttentionBias,
  kCacheLength,
  kDocumentIds,
  kSinkLogits,
  kInputCount,
};

enum RotaryAttentionOutput {
  kOutput = 0,
  kPresentKey,
  kPresentValue,
  kLogSumExp,
  kOutputCount,
};

inline constexpr const char* kInputNames[] = {
    "query",        "key",          "value",          "past_key",
    "past_value",   "position_ids", "attention_mask", "attention_bias",
    "cache_length", "document_ids", "sink_logits",
};
inline constexpr const char* kInputTypes[] = {
    "T", "T", "T", "T", "T", "int64", "int64", "T", "int32", "int64", "T",
};
inline constexpr const char* kOutputNames[] = {"output", "present_key", "present_value",
                                               "log_sum_exp"};

inline constexpr char kAttrSpecVersion[] = "spec_version";
inline constexpr char kAttrNumHeads[] = "num_heads";
inline constexpr char kAttrKvNumHeads[] = "kv_num_heads";
inline constexpr char kAttrScale[] = "scale";
inline constexpr char kAttrFrequencies[] = "frequencies";
inline constexpr char kAttrGain[] = "gain";
inline constexpr char kAttrRotaryLayout[] = "rotary_layout";
inline constexpr char kAttrRotaryOffset[] = "rotary_offset";
inline constexpr char kAttrExactAngles[] = "exact_angles";
inline constexpr char kAttrCausal[] = "causal";
inline constexpr char kAttrWindow[] = "window";
inline constexpr char kAttrFirstKeys[] = "first_keys";
inline constexpr char kAttrSoftcap[] = "softcap";
inline constexpr char kAttrBandStarts[] = "band_starts";
inline constexpr char kAttrBandQueryScales[] = "band_query_scales";
inline constexpr char kAttrBandQueryOffsets[] = "band_query_offsets";
inline constexpr char kAttrBandKeyScales[] = "band_key_scales";
inline constexpr char kAttrCache[] = "cache";

struct ReservedSlot {
  int index;
  const char* reason;
};
struct ReservedAttribute {
  const char* name;
  const char* type;
  const char* default_value;
  const char* reason;
};

inline constexpr ReservedSlot kReservedInputs[] = {
    {kAttentionBias, "reserved"},
    {kCacheLength, "reserved"},
    {kDocumentIds, "reserved"},
    {kSinkLogits, "reserved"},
};
inline constexpr ReservedSlot kReservedOutputs[] = {{kLogSumExp, "reserved"}};
inline constexpr ReservedAttribute kReservedAttributes[] = {
    {"first_keys", "int", "0",
     "keys that stay visible outside the window come with a later library"},
    {"softcap", "float", "0", "the softcap comes with a later library"},
};

}  // namespace rope::spec

#endif  // ROPE_SPEC_GEN_H_
