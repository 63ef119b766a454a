#include "attributes.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "attribute_values.h"
#include "node_info.h"
#include "spec.gen.h"

namespace rope {
namespace {

bool IsDefault(const NodeInfo& node, const spec::ReservedAttribute& attribute) {
  const std::string type = attribute.type;
  if (type == "int") {
    const auto value = node.GetInt(attribute.name);
    return !value || std::to_string(*value) == attribute.default_value;
  }
  if (type == "float") {
    const auto value = node.GetFloat(attribute.name);
    return !value || *value == std::stof(attribute.default_value);
  }
  if (type == "string") {
    const auto value = node.GetString(attribute.name);
    return !value || *value == attribute.default_value;
  }
  if (type == "ints") {
    const auto value = node.GetInts(attribute.name);
    return !value || value->empty();
  }
  const auto value = node.GetFloats(attribute.name);
  return !value || value->empty();
}

void CheckReserved(const NodeInfo& node) {
  for (const auto& input : spec::kReservedInputs) {
    if (node.HasInput(static_cast<size_t>(input.index))) {
      node.Refuse("input ", spec::kInputNames[input.index],
                  " is not supported by this version of librope_ops: ", input.reason);
    }
  }
  for (const auto& output : spec::kReservedOutputs) {
    if (node.HasOutput(static_cast<size_t>(output.index))) {
      node.Refuse("output ", spec::kOutputNames[output.index],
                  " is not supported by this version of librope_ops: ", output.reason);
    }
  }
  for (const auto& attribute : spec::kReservedAttributes) {
    if (!IsDefault(node, attribute)) {
      node.RefuseAttribute(
          attribute.name,
          " must keep its default in this version of librope_ops: ", attribute.reason);
    }
  }
}

void CheckPairs(const NodeInfo& node) {
  if (node.HasInput(spec::kPastKey) != node.HasInput(spec::kPastValue)) {
    node.Refuse("past_key and past_value must be given together");
  }
  if (node.HasInput(spec::kCacheLength) && !node.HasInput(spec::kPastKey)) {
    node.Refuse("cache_length needs past_key and past_value, whose rows it counts");
  }
  if (node.HasInput(spec::kTotalLength) && !node.HasInput(spec::kCacheLength)) {
    node.Refuse("total_length needs cache_length");
  }
}

bool Interleaved(const NodeInfo& node) {
  const std::string layout =
      node.GetString(spec::kAttrRotaryLayout).value_or(spec::kDefaultRotaryLayout);
  if (layout != "half" && layout != "interleaved") {
    node.RefuseAttribute(spec::kAttrRotaryLayout, " is '", layout,
                         "'; it must be 'half' or 'interleaved'");
  }
  return layout == "interleaved";
}

float Softcap(const NodeInfo& node) {
  const float softcap = FiniteFloat(node, spec::kAttrSoftcap, spec::kDefaultSoftcap);
  if (softcap < 0) {
    node.RefuseAttribute(spec::kAttrSoftcap, " is ", softcap, "; it must not be negative");
  }
  return softcap;
}

DocumentMask ReadDocumentMask(const NodeInfo& node) {
  const std::string mask =
      node.GetString(spec::kAttrDocumentMask).value_or(spec::kDefaultDocumentMask);
  if (mask != "intra" && mask != "anchor") {
    node.RefuseAttribute(spec::kAttrDocumentMask, " is '", mask,
                         "'; it must be 'intra' or 'anchor'");
  }
  return mask == "anchor" ? DocumentMask::kAnchor : DocumentMask::kIntra;
}

int64_t DocumentStart(const NodeInfo& node) {
  const int64_t start = NonNegative(node, spec::kAttrDocumentStart, spec::kDefaultDocumentStart);
  if (start > kMaxPosition) {
    node.RefuseAttribute(spec::kAttrDocumentStart, " is ", start, "; it must be at most ",
                         kMaxPosition);
  }
  return start;
}

void CheckDocuments(const NodeInfo& node, const AttentionParams& params) {
  const bool anchor = params.document_mask == DocumentMask::kAnchor;
  if ((anchor || params.document_restart) && !node.HasInput(spec::kDocumentIds)) {
    node.RefuseAttribute(anchor ? spec::kAttrDocumentMask : spec::kAttrDocumentRestart,
                         " needs input ", spec::kInputNames[spec::kDocumentIds]);
  }
  if (params.document_restart && params.bands.size() > 1) {
    node.RefuseAttribute(spec::kAttrDocumentRestart, " needs one band, but ", spec::kAttrBandStarts,
                         " has ", params.bands.size(),
                         ": bands follow the distance i - j, which positions that restart do not");
  }
}

bool Fast(const NodeInfo& node) {
  const std::string precision =
      node.GetString(spec::kAttrPrecision).value_or(spec::kDefaultPrecision);
  if (precision != "exact" && precision != "fast") {
    node.RefuseAttribute(spec::kAttrPrecision, " is '", precision,
                         "'; it must be 'exact' or 'fast'");
  }
  return precision == "fast";
}

bool RawCache(const NodeInfo& node) {
  const std::string cache = node.GetString(spec::kAttrCache).value_or(spec::kDefaultCache);
  if (cache != "rotated" && cache != "raw") {
    node.RefuseAttribute(spec::kAttrCache, " is '", cache, "'; it must be 'rotated' or 'raw'");
  }
  return cache == "raw";
}

Temperature ReadTemperature(const NodeInfo& node) {
  const auto values = FiniteFloats(node, spec::kAttrTemperature);
  if (values.empty()) return {};
  if (values.size() != 4) {
    node.RefuseAttribute(spec::kAttrTemperature, " has ", values.size(),
                         " values; it takes four: offset, slope, start and group");
  }
  if (values[0] < 0 || values[1] <= 0 || values[2] < 0 || values[3] < 1) {
    node.RefuseAttribute(spec::kAttrTemperature,
                         " must have an offset >= 0, a slope > 0, a start >= 0 and a group >= 1");
  }
  return {values[0], values[1], values[2], values[3]};
}

std::vector<float> PerBand(const NodeInfo& node, const char* name, size_t bands, float fallback) {
  auto values = FiniteFloats(node, name);
  if (values.empty()) values.assign(bands, fallback);
  if (values.size() != bands) {
    node.RefuseAttribute(name, " has ", values.size(), " values for ", bands, " bands");
  }
  return values;
}

std::vector<Band> ReadBands(const NodeInfo& node, bool causal) {
  auto starts = node.GetInts(spec::kAttrBandStarts).value_or(std::vector<int64_t>{});
  if (starts.empty()) starts = {0};
  if (starts[0] != 0) {
    node.RefuseAttribute(spec::kAttrBandStarts, " begins with ", starts[0],
                         "; the first band starts at 0");
  }
  for (size_t b = 1; b < starts.size(); ++b) {
    if (starts[b] <= starts[b - 1]) {
      node.RefuseAttribute(spec::kAttrBandStarts, " must ascend, but ", starts[b], " follows ",
                           starts[b - 1]);
    }
  }
  if (starts.size() > 1 && !causal) {
    node.Refuse("more than one band needs causal = 1: bands follow the distance i - j >= 0");
  }
  const auto scales = PerBand(node, spec::kAttrBandQueryScales, starts.size(), 1);
  const auto offsets = PerBand(node, spec::kAttrBandQueryOffsets, starts.size(), 0);
  const auto limits = PerBand(node, spec::kAttrBandQueryLimits, starts.size(), 0);
  const auto key_scales = PerBand(node, spec::kAttrBandKeyScales, starts.size(), 1);
  auto groups = node.GetInts(spec::kAttrBandGroups).value_or(std::vector<int64_t>{});
  if (groups.empty()) groups.assign(starts.size(), 1);
  if (groups.size() != starts.size()) {
    node.RefuseAttribute(spec::kAttrBandGroups, " has ", groups.size(), " values for ",
                         starts.size(), " bands");
  }
  // No position reaches a longer chunk, and sums with one could overflow.
  constexpr int64_t kLongest = int64_t{1} << 40;
  const int64_t chunk =
      std::min(NonNegative(node, spec::kAttrBandChunk, spec::kDefaultBandChunk), kLongest);
  if (chunk > 0 && !causal) {
    node.RefuseAttribute(spec::kAttrBandChunk, " needs causal = 1");
  }
  std::vector<Band> bands(starts.size());
  for (size_t b = 0; b < bands.size(); ++b) {
    bands[b] = {starts[b], scales[b], offsets[b], key_scales[b], limits[b], groups[b], chunk};
  }
  return bands;
}

// A band's place for the query may be anything; one for keys may not, where
// the cache has them rotated already.
void CheckBands(const NodeInfo& node, const AttentionParams& params) {
  for (const Band& band : params.bands) {
    if (band.query_limit < 0) {
      node.RefuseAttribute(spec::kAttrBandQueryLimits, " holds ", band.query_limit,
                           "; a limit must not be negative");
    }
    if (band.group < 1) {
      node.RefuseAttribute(spec::kAttrBandGroups, " holds ", band.group,
                           "; a group has at least 1 position");
    }
    if (params.raw_cache) continue;
    if (band.key_scale != 1) {
      node.RefuseAttribute(spec::kAttrBandKeyScales, " holds ", band.key_scale,
                           "; a rotated cache needs 1");
    }
    if (band.group != 1) {
      node.RefuseAttribute(spec::kAttrBandGroups, " holds ", band.group,
                           "; a rotated cache needs 1");
    }
    if (band.chunk != 0) {
      node.RefuseAttribute(spec::kAttrBandChunk, " is ", band.chunk, "; a rotated cache needs 0");
    }
  }
  if (params.raw_cache && params.document_restart) {
    node.RefuseAttribute(
        spec::kAttrDocumentRestart,
        " needs a rotated cache: where a cached key's document began is not known");
  }
}

// Each pair's axis. What asks for one position of a token cannot go with several.
std::vector<int64_t> ReadPositionAxes(const NodeInfo& node, const AttentionParams& params) {
  const auto axes = node.GetInts(spec::kAttrPositionAxes).value_or(std::vector<int64_t>{});
  if (axes.empty()) return axes;
  if (axes.size() != params.frequencies.size()) {
    node.RefuseAttribute(spec::kAttrPositionAxes, " has ", axes.size(), " values, ",
                         spec::kAttrFrequencies, " has ", params.frequencies.size());
  }
  CheckAxes(node, axes);
  if (!node.HasInput(spec::kPositionIds)) {
    node.RefuseAttribute(spec::kAttrPositionAxes, " needs input ",
                         spec::kInputNames[spec::kPositionIds]);
  }
  const Band& band = params.bands[0];
  if (params.bands.size() > 1 || band.MovesQuery() || band.key_scale != 1 || params.raw_cache ||
      params.temperature.slope > 0 || params.document_restart) {
    node.RefuseAttribute(spec::kAttrPositionAxes,
                         " gives a token several positions; a map of bands, a raw cache, a "
                         "temperature and document_restart need one");
  }
  return axes;
}

// Another text's keys have no place among the tokens of the queries.
bool ReadCross(const NodeInfo& node, const AttentionParams& params) {
  if (!Flag(node, spec::kAttrCross, spec::kDefaultCross)) return false;
  if (params.causal || params.window > 0 || !params.frequencies.empty() || params.raw_cache ||
      params.temperature.slope > 0) {
    node.RefuseAttribute(spec::kAttrCross,
                         " takes keys of another text, which need causal 0, and no window, "
                         "frequencies, raw cache and temperature");
  }
  for (const auto input : {spec::kPastKey, spec::kPositionIds, spec::kDocumentIds}) {
    if (node.HasInput(input)) {
      node.RefuseAttribute(spec::kAttrCross, " takes keys of another text, which goes without ",
                           spec::kInputNames[input]);
    }
  }
  return true;
}

// A ring forgets tokens behind a window. What needs all of them cannot go with it.
bool ReadRing(const NodeInfo& node, const AttentionParams& params) {
  if (!Flag(node, spec::kAttrCacheRing, spec::kDefaultCacheRing)) return false;
  if (!params.causal || params.window == 0 || !node.HasInput(spec::kCacheLength)) {
    node.RefuseAttribute(spec::kAttrCacheRing, " needs causal 1, a window and input ",
                         spec::kInputNames[spec::kCacheLength]);
  }
  if (params.document_restart) {
    node.RefuseAttribute(spec::kAttrCacheRing, " forgets tokens, which ",
                         spec::kAttrDocumentRestart, " counts");
  }
  for (const auto input : {spec::kAttentionBias, spec::kBiasBeforeSoftcap, spec::kTotalLength}) {
    if (node.HasInput(input)) {
      node.RefuseAttribute(spec::kAttrCacheRing, " goes without input ", spec::kInputNames[input]);
    }
  }
  return true;
}

// Slopes and buckets of distances. What the keys of another text have none of.
void ReadDistances(const NodeInfo& node, AttentionParams& params) {
  params.distance_slopes = FiniteFloats(node, spec::kAttrDistanceSlopes);
  params.distance_starts = node.GetInts(spec::kAttrDistanceStarts).value_or(std::vector<int64_t>{});
  params.distance_biases = FiniteFloats(node, spec::kAttrDistanceBiases);
  params.distance_shown = Flag(node, spec::kAttrDistanceShown, spec::kDefaultDistanceShown);
  const auto heads = static_cast<size_t>(params.num_heads);
  if (!params.distance_slopes.empty() && params.distance_slopes.size() != heads) {
    node.RefuseAttribute(spec::kAttrDistanceSlopes, " has ", params.distance_slopes.size(),
                         " values for ", heads, " heads");
  }
  const size_t buckets = params.distance_starts.size();
  if (params.distance_biases.size() != buckets * heads) {
    node.RefuseAttribute(spec::kAttrDistanceBiases, " has ", params.distance_biases.size(),
                         " values for ", buckets, " buckets of ", heads, " heads");
  }
  for (size_t b = 1; b < buckets; ++b) {
    if (params.distance_starts[b] <= params.distance_starts[b - 1]) {
      node.RefuseAttribute(spec::kAttrDistanceStarts, " must ascend, but ",
                           params.distance_starts[b], " follows ", params.distance_starts[b - 1]);
    }
  }
  if (params.distance_shown && !params.has_distances()) {
    node.RefuseAttribute(spec::kAttrDistanceShown, " needs ", spec::kAttrDistanceSlopes, " or ",
                         spec::kAttrDistanceStarts);
  }
  if (params.cross && params.has_distances()) {
    node.RefuseAttribute(spec::kAttrCross,
                         " takes keys of another text, which have no distance from the queries");
  }
}

// A raw cache holds keys without factors, which are then the queries'.
void ReadFactors(const NodeInfo& node, AttentionParams& params) {
  params.query_factors = FiniteFloats(node, spec::kAttrQueryFactors);
  params.key_factors = FiniteFloats(node, spec::kAttrKeyFactors);
  const size_t queries = params.query_factors.size();
  const size_t keys = params.key_factors.size();
  if (queries != 0 && keys != 0 && queries != keys) {
    node.RefuseAttribute(spec::kAttrQueryFactors, " has ", queries, " values, ",
                         spec::kAttrKeyFactors, " has ", keys);
  }
  if (!params.raw_cache || keys == 0) return;
  params.query_factors.resize(keys, 1.0f);
  for (size_t c = 0; c < keys; ++c) params.query_factors[c] *= params.key_factors[c];
  params.key_factors.clear();
}

}  // namespace

AttentionParams ReadAttributes(const OrtApi& api, const OrtKernelInfo* info,
                               const std::string& name) {
  const NodeInfo node(api, info, name);
  CheckSpecVersion(node);
  CheckReserved(node);
  CheckPairs(node);

  AttentionParams params;
  params.num_heads = RequiredHeads(node, spec::kAttrNumHeads);
  params.kv_num_heads = RequiredHeads(node, spec::kAttrKvNumHeads);
  if (params.num_heads % params.kv_num_heads != 0) {
    node.Refuse("num_heads ", params.num_heads, " is not a multiple of kv_num_heads ",
                params.kv_num_heads);
  }
  params.scale = FiniteFloat(node, spec::kAttrScale, spec::kDefaultScale);
  params.frequencies = FiniteFloats(node, spec::kAttrFrequencies);
  params.gain = FiniteFloat(node, spec::kAttrGain, spec::kDefaultGain);
  params.interleaved = Interleaved(node);
  params.rotary_offset = NonNegative(node, spec::kAttrRotaryOffset, spec::kDefaultRotaryOffset);
  params.exact_angles = Flag(node, spec::kAttrExactAngles, spec::kDefaultExactAngles);
  params.fast = Fast(node);
  params.causal = Flag(node, spec::kAttrCausal, spec::kDefaultCausal);
  params.window = NonNegative(node, spec::kAttrWindow, spec::kDefaultWindow);
  params.first_keys = NonNegative(node, spec::kAttrFirstKeys, spec::kDefaultFirstKeys);
  params.first_keys_shown = Flag(node, spec::kAttrFirstKeysShown, spec::kDefaultFirstKeysShown);
  params.softcap = Softcap(node);
  params.raw_cache = RawCache(node);
  params.bands = ReadBands(node, params.causal);
  params.temperature = ReadTemperature(node);
  params.document_mask = ReadDocumentMask(node);
  params.document_restart = Flag(node, spec::kAttrDocumentRestart, spec::kDefaultDocumentRestart);
  params.document_start = DocumentStart(node);
  CheckDocuments(node, params);
  CheckBands(node, params);
  params.position_axes = ReadPositionAxes(node, params);
  ReadFactors(node, params);
  params.cross = ReadCross(node, params);
  ReadDistances(node, params);
  params.ring = ReadRing(node, params);
  return params;
}

void CheckCacheType(const NodeInfo& node, const std::string& type) {
  const std::string given = node.GetString(spec::kAttrCacheType).value_or(spec::kDefaultCacheType);
  if (given != "same" && given != "float16" && given != "bfloat16" && given != "int8") {
    node.RefuseAttribute(spec::kAttrCacheType, " is '", given,
                         "'; it must be 'same', 'float16', 'bfloat16' or 'int8'");
  }
  if (given != type && !(node.HasInput(spec::kPastKey) || node.HasOutput(spec::kPresentKey))) {
    node.RefuseAttribute(spec::kAttrCacheType, " is '", given, "', which needs past_key");
  }
  if (given != type) {
    node.RefuseAttribute(spec::kAttrCacheType, " is '", given, "', but that of past_key is '", type,
                         "' ('same' where it is query's)");
  }
  const auto check = [&](const char* name, bool has, bool of) {
    if (has == (given == "int8" && of)) return;
    node.Refuse(name, has ? " is given" : " is missing", " with cache_type '", given,
                "'; caches of int8 have scales, and others none");
  };
  check("input past_key_scale", node.HasInput(spec::kPastKeyScale), node.HasInput(spec::kPastKey));
  check("input past_value_scale", node.HasInput(spec::kPastValueScale),
        node.HasInput(spec::kPastValue));
  check("output present_key_scale", node.HasOutput(spec::kPresentKeyScale),
        node.HasOutput(spec::kPresentKey));
  check("output present_value_scale", node.HasOutput(spec::kPresentValueScale),
        node.HasOutput(spec::kPresentValue));
}

}  // namespace rope
