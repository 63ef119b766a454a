package customop

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"strings"

	"github.com/rope-rewrite/rope-rewrite/internal/short"
)

// check refuses what no input could make right. What depends on shapes is left
// to the kernel, which knows them.
func (r RotaryAttention) check() error {
	if r.NumHeads < 1 || r.KVNumHeads < 1 || r.NumHeads%r.KVNumHeads != 0 {
		return fmt.Errorf("num_heads %d and kv_num_heads %d: both must be positive and the first a multiple of the second", r.NumHeads, r.KVNumHeads)
	}
	return cmp.Or(
		paired("past_key", r.PastKey, "past_value", r.PastValue),
		needs("cache_length", r.CacheLength, "past_key", r.PastKey),
		needs("total_length", r.TotalLength, "cache_length", r.CacheLength),
		r.checkCacheType(),
		oneOf("rotary_layout", r.RotaryLayout, "half", "interleaved"),
		oneOf("cache", r.Cache, "rotated", "raw"),
		oneOf("document_mask", r.DocumentMask, "intra", "anchor"),
		oneOf("precision", r.Precision, "exact", "fast"),
		flag("exact_angles", r.ExactAngles),
		flag("causal", r.Causal),
		flag("cross", r.Cross),
		flag("first_keys_shown", r.FirstKeysShown),
		flag("document_restart", r.DocumentRestart),
		notNegative("rotary_offset", r.RotaryOffset),
		notNegative("window", r.Window),
		notNegative("first_keys", r.FirstKeys),
		notNegative("softcap", r.Softcap),
		notNegative("document_start", r.DocumentStart),
		finite("scale", r.Scale),
		finite("gain", r.Gain),
		finite("softcap", r.Softcap),
		finite("frequencies", r.Frequencies...),
		notNegative("band_chunk", r.BandChunk),
		r.checkBands(),
		r.checkTemperature(),
		r.checkTrainedLength(),
		r.checkDocuments(),
		r.checkAxes(),
		r.checkCross(),
		r.checkFactors(),
		r.checkDistances(),
		r.checkRing(),
	)
}

// checkRing refuses what needs the tokens that a ring forgets.
func (r RotaryAttention) checkRing() error {
	switch {
	case r.CacheRing == 0:
		return nil
	case r.Causal == 0, r.Window == 0, r.CacheLength == "":
		return errors.New("cache_ring needs causal = 1, a window and cache_length")
	case r.AttentionBias != "", r.BiasBeforeSoftcap != "", r.TotalLength != "", r.DocumentRestart == 1:
		return errors.New("cache_ring forgets tokens, which attention_bias, bias_before_softcap, total_length and document_restart need")
	}
	return flag("cache_ring", r.CacheRing)
}

// checkAxes refuses what asks for one position where a token has several.
func (r RotaryAttention) checkAxes() error {
	if len(r.PositionAxes) == 0 {
		return nil
	}
	for pair, axis := range r.PositionAxes {
		if axis < 0 {
			return fmt.Errorf("position_axes[%d] is %d: it must not be negative", pair, axis)
		}
	}
	one := func(list []float32, plain float32) bool { return len(list) == 0 || len(list) == 1 && list[0] == plain }
	plain := len(r.BandStarts) <= 1 && r.BandChunk == 0 && one(r.BandQueryScales, 1) && one(r.BandQueryOffsets, 0) && one(r.BandKeyScales, 1) && one(r.BandQueryLimits, 0)
	switch {
	case len(r.PositionAxes) != len(r.Frequencies):
		return fmt.Errorf("position_axes has %d values, frequencies %d", len(r.PositionAxes), len(r.Frequencies))
	case r.PositionIDs == "":
		return errors.New("position_axes needs position_ids")
	case !plain, r.Cache == "raw", len(r.Temperature) > 0, r.DocumentRestart == 1:
		return errors.New(`position_axes gives a token several positions; a map of bands, cache "raw", temperature and document_restart need one`)
	}
	return nil
}

// checkCross refuses what counts tokens where the keys are those of another text.
func (r RotaryAttention) checkCross() error {
	counts := r.Causal == 1 || r.Window > 0 || len(r.Frequencies) > 0 || r.Cache == "raw" || len(r.Temperature) > 0
	if r.Cross == 1 && (counts || r.PastKey != "" || r.PositionIDs != "" || r.DocumentIDs != "") {
		return errors.New("cross takes keys of another text, which need causal 0, and no window, frequencies, raw cache, temperature, past_key, position_ids and document_ids")
	}
	return nil
}

func (r RotaryAttention) checkFactors() error {
	if q, k := len(r.QueryFactors), len(r.KeyFactors); q > 0 && k > 0 && q != k {
		return fmt.Errorf("query_factors has %d values, key_factors %d: a head has one size", q, k)
	}
	return cmp.Or(finite("query_factors", r.QueryFactors...), finite("key_factors", r.KeyFactors...))
}

// checkCacheType refuses scales without integers, and integers without scales.
func (r RotaryAttention) checkCacheType() error {
	scaled := r.CacheType == "int8"
	for _, tensor := range []struct {
		name, value string
		needed      bool
	}{
		{"past_key_scale", r.PastKeyScale, r.PastKey != ""},
		{"past_value_scale", r.PastValueScale, r.PastValue != ""},
		{"present_key_scale", r.PresentKeyScale, r.PresentKey != ""},
		{"present_value_scale", r.PresentValueScale, r.PresentValue != ""},
	} {
		if (tensor.value != "") != (scaled && tensor.needed) {
			return fmt.Errorf("%s is %q with cache_type %q: caches of int8 have scales, and others none", tensor.name, short.Name(tensor.value), short.Name(cmp.Or(r.CacheType, "same")))
		}
	}
	if r.CacheType != "" && r.CacheType != "same" && r.PastKey == "" {
		return fmt.Errorf("cache_type %q needs past_key and past_value", short.Name(r.CacheType))
	}
	return oneOf("cache_type", r.CacheType, "same", "float16", "bfloat16", "int8")
}

// checkDistances refuses slopes and buckets that do not fit the heads or each other.
func (r RotaryAttention) checkDistances() error {
	slopes, buckets, biases := int64(len(r.DistanceSlopes)), int64(len(r.DistanceStarts)), int64(len(r.DistanceBiases))
	switch {
	case slopes > 0 && slopes != r.NumHeads:
		return fmt.Errorf("distance_slopes has %d values for %d heads", slopes, r.NumHeads)
	case biases != buckets*r.NumHeads:
		return fmt.Errorf("distance_biases has %d values for %d buckets of %d heads", biases, buckets, r.NumHeads)
	case r.DistanceShown == 1 && slopes+buckets == 0:
		return errors.New("distance_shown needs distance_slopes or distance_starts")
	case r.Cross == 1 && slopes+buckets > 0:
		return errors.New("cross takes keys of another text, which have no distance from the queries")
	}
	for b := 1; b < len(r.DistanceStarts); b++ {
		if r.DistanceStarts[b] <= r.DistanceStarts[b-1] {
			return fmt.Errorf("distance_starts[%d] is %d after %d: they must rise", b, r.DistanceStarts[b], r.DistanceStarts[b-1])
		}
	}
	return cmp.Or(flag("distance_shown", r.DistanceShown), finite("distance_slopes", r.DistanceSlopes...), finite("distance_biases", r.DistanceBiases...))
}

func (r RotaryAttention) checkDocuments() error {
	if r.DocumentRestart == 1 && len(r.BandStarts) > 1 {
		return fmt.Errorf("document_restart needs one band, band_starts has %d: bands follow the distance of indices", len(r.BandStarts))
	}
	if r.DocumentIDs == "" && (r.DocumentRestart == 1 || r.DocumentMask == "anchor") {
		return errors.New("document_mask and document_restart need document_ids")
	}
	return nil
}

func (r RotaryAttention) checkBands() error {
	bands := max(1, len(r.BandStarts))
	for b, start := range r.BandStarts {
		if b == 0 && start != 0 {
			return fmt.Errorf("band_starts begins with %d: the first band starts at distance 0", start)
		}
		if b > 0 && start <= r.BandStarts[b-1] {
			return fmt.Errorf("band_starts[%d] is %d after %d: they must rise", b, start, r.BandStarts[b-1])
		}
	}
	if bands > 1 && r.Causal == 0 {
		return fmt.Errorf("%d bands need causal = 1: keys after the query belong to no band", bands)
	}
	for _, list := range []struct {
		name   string
		values []float32
	}{
		{"band_query_scales", r.BandQueryScales},
		{"band_query_offsets", r.BandQueryOffsets},
		{"band_query_limits", r.BandQueryLimits},
		{"band_key_scales", r.BandKeyScales},
	} {
		if n := len(list.values); n != 0 && n != bands {
			return fmt.Errorf("%s has %d values for %d bands", list.name, n, bands)
		}
		if err := finite(list.name, list.values...); err != nil {
			return err
		}
	}
	for b, limit := range r.BandQueryLimits {
		if limit < 0 {
			return fmt.Errorf("band_query_limits[%d] is %g: it must not be negative (0 means none)", b, limit)
		}
	}
	if n := len(r.BandGroups); n != 0 && n != bands {
		return fmt.Errorf("band_groups has %d values for %d bands", n, bands)
	}
	for b, group := range r.BandGroups {
		if group < 1 {
			return fmt.Errorf("band_groups[%d] is %d: it must be at least 1", b, group)
		}
	}
	if r.BandChunk > 0 && r.Causal == 0 {
		return errors.New("band_chunk needs causal = 1: keys after the query belong to no band")
	}
	return r.checkRotatedCache()
}

// checkRotatedCache refuses maps for which a key would have to stand elsewhere
// than where its cache has it.
func (r RotaryAttention) checkRotatedCache() error {
	if r.Cache == "raw" {
		if r.DocumentRestart == 1 {
			return errors.New(`document_restart needs cache "rotated": where a cached key's document began is not known`)
		}
		return nil
	}
	for b, scale := range r.BandKeyScales {
		if scale != 1 {
			return fmt.Errorf("band_key_scales[%d] is %g: a rotated cache needs 1 (cache \"raw\" does not)", b, scale)
		}
	}
	for b, group := range r.BandGroups {
		if group != 1 {
			return fmt.Errorf("band_groups[%d] is %d: a rotated cache needs 1 (cache \"raw\" does not)", b, group)
		}
	}
	if r.BandChunk != 0 {
		return errors.New(`band_chunk needs cache "raw"`)
	}
	return nil
}

func (r RotaryAttention) checkTemperature() error {
	t := r.Temperature
	switch {
	case len(t) == 0:
		return nil
	case len(t) != 4:
		return fmt.Errorf("temperature has %d values: it takes offset, slope, start and group", len(t))
	case t[0] < 0 || t[1] <= 0 || t[2] < 0 || t[3] < 1:
		return fmt.Errorf("temperature is %v: offset must be ≥ 0, slope > 0, start ≥ 0 and group ≥ 1", t)
	}
	return finite("temperature", t...)
}

// checkTrainedLength refuses frequencies by length that say nothing or two things.
func (r RotaryAttention) checkTrainedLength() error {
	given := 0
	for _, is := range []bool{len(r.LongFrequencies) > 0, r.DynamicNtk != 0, r.DynamicLinear != 0} {
		if is {
			given++
		}
	}
	switch {
	case r.TrainedLength < 0:
		return fmt.Errorf("trained_length is %d: it must not be negative", r.TrainedLength)
	case r.TrainedLength == 0 && given > 0, r.TrainedLength > 0 && given != 1:
		return fmt.Errorf("trained_length is %d with %d of long_frequencies, dynamic_ntk and dynamic_linear: it needs exactly one of them, and they need it", r.TrainedLength, given)
	case len(r.LongFrequencies) > 0 && len(r.LongFrequencies) != len(r.Frequencies):
		return fmt.Errorf("long_frequencies has %d values, frequencies %d", len(r.LongFrequencies), len(r.Frequencies))
	case r.DynamicNtk != 0 && (len(r.Frequencies) < 2 || !(r.DynamicNtk >= 1)):
		return fmt.Errorf("dynamic_ntk is %g for %d frequencies: it must be at least 1 and needs two", r.DynamicNtk, len(r.Frequencies))
	}
	return cmp.Or(finite("long_frequencies", r.LongFrequencies...), finite("dynamic_ntk", r.DynamicNtk), flag("dynamic_linear", r.DynamicLinear))
}

func paired(name1, tensor1, name2, tensor2 string) error {
	if (tensor1 == "") != (tensor2 == "") {
		return fmt.Errorf("%s and %s are given together or not at all", name1, name2)
	}
	return nil
}

func needs(name, tensor, other, otherTensor string) error {
	if tensor != "" && otherTensor == "" {
		return fmt.Errorf("%s needs %s", name, other)
	}
	return nil
}

func oneOf(name, value string, allowed ...string) error {
	if value == "" {
		return nil
	}
	for _, a := range allowed {
		if value == a {
			return nil
		}
	}
	return fmt.Errorf("%s is %q: it must be %s", name, short.Name(value), strings.Join(allowed, " or "))
}

func flag(name string, value int64) error {
	if value == 0 || value == 1 {
		return nil
	}
	return fmt.Errorf("%s is %d: it must be 0 or 1", name, value)
}

func notNegative[T int64 | float32](name string, value T) error {
	if value < 0 {
		return fmt.Errorf("%s is %v: it must not be negative", name, value)
	}
	return nil
}

func finite(name string, values ...float32) error {
	for i, v := range values {
		if !math.IsNaN(float64(v)) && !math.IsInf(float64(v), 0) {
			continue
		}
		if len(values) > 1 {
			name = fmt.Sprintf("%s[%d]", name, i)
		}
		return fmt.Errorf("%s is %g: it must be a finite number", name, v)
	}
	return nil
}
