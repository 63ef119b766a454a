package cli

import (
	"reflect"
	"testing"

	"github.com/rope-rewrite/rope-rewrite/rewrite"
)

// What flags of words set, and what they refuse.
func TestSetWord(t *testing.T) {
	for _, c := range []struct {
		flag, text string
		want       rewrite.Options
	}{
		{"documents", "input", rewrite.Options{Documents: rewrite.Documents{Input: rewrite.DocumentsInput}}},
		{"documents", "INPUT:ids", rewrite.Options{Documents: rewrite.Documents{Input: "ids"}}},
		{"documents", "separator:3", rewrite.Options{Documents: rewrite.Documents{Separator: &rewrite.Separator{Token: 3}}}},
		{"documents", "separator:3,ends", rewrite.Options{Documents: rewrite.Documents{Separator: &rewrite.Separator{Token: 3, Ends: true}}}},
		{"kv", "growing", rewrite.Options{}},
		{"kv", "fixed:capacity=8k", rewrite.Options{Cache: rewrite.Cache{Capacity: 8192}}},
		{"kv", "fixed: Input=n, capacity=64", rewrite.Options{Cache: rewrite.Cache{Capacity: 64, LengthInput: "n"}}},
		{"logits", "all", rewrite.Options{}},
		{"logits", "last", rewrite.Options{LogitsPlaces: rewrite.LogitsPlacesInput}},
		{"logits", "last:input=at", rewrite.Options{LogitsPlaces: "at"}},
		{"base", "carried", rewrite.Options{Earlier: rewrite.Earlier{Carried: true}}},
		{"cache", "raw", rewrite.Options{Cache: rewrite.Cache{Raw: true}}},
		{"angles", "exact", rewrite.Options{Numerics: rewrite.Numerics{Angles: "exact"}}},
		{"angles", "original", rewrite.Options{Numerics: rewrite.Numerics{Angles: "original"}}},
		{"precision", "exact", rewrite.Options{Numerics: rewrite.Numerics{Precision: "exact"}}},
		{"precision", "fast", rewrite.Options{Numerics: rewrite.Numerics{Precision: "fast"}}},
		{"fallback", "none", rewrite.Options{Output: rewrite.Output{NoFallback: true}}},
		{"target", "onnx", rewrite.Options{Target: rewrite.PlainONNX}},
		{"target", "contrib:onnxruntime=1.22", rewrite.Options{Target: "contrib:onnxruntime=1.22"}},
		{"target", "contrib:", rewrite.Options{Target: "contrib:"}}, // which package rewrite refuses
	} {
		var got rewrite.Options
		if err := SetWord(&got, c.flag, c.text); err != nil || !reflect.DeepEqual(got, c.want) {
			t.Errorf("--%s %s: %v, %+v", c.flag, c.text, err, got)
		}
	}
	const expectSeparator = "expected separator:TOKEN or separator:TOKEN,ends; TOKEN is the id of the token that begins or ends each document"
	for _, c := range []struct{ flag, text, want string }{
		{"documents", "input:", `"input:": expected input, input:NAME or separator:TOKEN`},
		{"documents", "separator", `"separator": ` + expectSeparator},
		{"documents", "separator:-1", `"separator:-1": ` + expectSeparator},
		{"documents", "separator:", `"separator:": ` + expectSeparator},
		{"kv", "growing:8k", "growing takes the key type alone, as growing:type=int8; for a cache of N tokens write fixed:capacity=N"},
		{"kv", "growing:", "growing takes the key type alone, as growing:type=int8; for a cache of N tokens write fixed:capacity=N"},
		{"kv", "fixed", "fixed needs a number of tokens; write fixed:capacity=8k"},
		{"kv", "fixed:", `unknown key ""; keys: capacity, input, ring, type`},
		{"kv", "fixed:8k", `"8k" is not key=value; write fixed:capacity=8k`},
		{"kv", "fixed:input=n", "fixed needs a number of tokens; write fixed:capacity=8k"},
		{"kv", "fixed:capacity=0", `capacity="0": expected a number of tokens from 1 to 2147483647, for example 8192 or 8k`},
		{"kv", "fixed:capacity=8,capacity=9", "capacity is given twice"},
		{"kv", "fixed:capacity=8,input=", "input=: expected the name of the new input for the cache's lengths"},
		{"kv", "fixed:capcity=8", `unknown key "capcity" (did you mean "capacity"?); keys: capacity, input, ring, type`},
		{"kv", "growing:type=int4", "type=int4: expected float16, bfloat16 or int8 (did you mean \"int8\"?)"},
		{"kv", "last", "last is a value of --logits; write --logits last"},
		{"kv", "yarn:factor=2", "yarn is a method of --scaling; write --scaling yarn:factor=2"},
		{"logits", "all:1", `"all:1": all takes no keys`},
		{"logits", "last:", `"last:": expected last or last:input=NAME`},
		{"logits", "last:input=", `"last:input=": expected last or last:input=NAME`},
		{"logits", "last:at", `"last:at": expected last or last:input=NAME`},
		{"base", "original:x", `"original:x": original takes no keys`},
		{"cache", "raw:anything", `"raw:anything": raw takes no keys`},
		{"cache", "Rotated:", `"Rotated:": rotated takes no keys`},
		{"precision", "fast:2", `"fast:2": fast takes no keys`},
		{"fallback", "none:x", `"none:x": none takes no keys`},
		{"weights", "link:x", `"link:x": link takes no keys`},
		{"cache", "row", `"row": expected rotated or raw (did you mean "raw"?)`},
		{"target", "cuda", `"cuda": expected ops or onnx or contrib`},
	} {
		if err := SetWord(&rewrite.Options{}, c.flag, c.text); err == nil || err.Error() != c.want {
			t.Errorf("--%s %s: %v, want %s", c.flag, c.text, err, c.want)
		}
	}
}
