package pairs

import (
	"maps"

	"github.com/rope-rewrite/rope-rewrite/rewrite"
	"github.com/rope-rewrite/rope-rewrite/rope"
)

// trained is how many tokens the small exports were trained on, capacity what fixed caches hold, and tokens what rows have:
// more than are trained, and than a window or a ring holds.
const (
	trained  = 64
	capacity = 96
	tokens   = 72
)

// setting is one value of a feature.
type setting struct {
	name  string
	apply func(*rewrite.Options)
}

// feature is something that a rewrite can be asked for. Its first setting changes nothing.
type feature struct {
	name     string
	settings []setting
}

// exports are the models: keys and values shared by heads, a norm before the rotation, layers with windows of their own,
// 16 bits, and no cache.
var exports = feature{"model", []setting{{name: "llama__dynamo18"}, {name: "qwen3__dynamo23"}, {name: "gemma3_text__dynamo18"},
	{name: "gpt_neox__dynamo18-fp16"}, {name: "llama__dynamo18-nocache"}}}

// features are all that can be asked for together.
var features = []feature{
	exports,
	{"scaling", []setting{
		{name: "none"},
		method(rope.ScalingAxis, "yarn:factor=4"),
		method(rope.ScalingAxis, "ntk:alpha=2"),
		method(rope.ScalingAxis, "longrope:length=run,factor=4,short_factor=[1;1;1;1;1;1;1;2],long_factor=[1;1.5;2;2.5;3;3.5;4;4.5]"),
		method(rope.ScalingAxis, "dynamic:factor=2,length=run"),
		method(rope.ScalingAxis, "dynamic-linear:length=run"),
		method(rope.ScalingAxis, "log-n"),
		method(rope.ScalingAxis, "temperature:attn_scale=0.5,floor_scale=16"),
		{name: "yarn:factor=4 @0", apply: func(o *rewrite.Options) { layer(o, rope.ScalingAxis, "yarn:factor=4", 0) }},
		{name: "nope @1", apply: func(o *rewrite.Options) { layer(o, rope.ScalingAxis, "nope", 1) }},
		{name: "dynamic:length=run @0", apply: func(o *rewrite.Options) { layer(o, rope.ScalingAxis, "dynamic:factor=2,length=run", 0) }},
	}},
	{"positions", []setting{
		{name: "identity"},
		method(rope.PositionsAxis, "string:shift=20,window=6"),
		method(rope.PositionsAxis, "rerope:window=10"),
		method(rope.PositionsAxis, "leaky-rerope:window=10,factor=4"),
		method(rope.PositionsAxis, "self-extend:group=4,window=10"),
		method(rope.PositionsAxis, "dual-chunk:chunk_size=24,local_size=8"),
		method(rope.PositionsAxis, "randomized:range=200"),
	}},
	{"window", []setting{
		{name: "the model's"},
		method(rope.MaskAxis, "sliding-window:window=12"),
		method(rope.MaskAxis, "first-keys:window=12,count=3"),
		method(rope.MaskAxis, "first-keys:window=12,count=3,positions=cache"),
	}},
	{"documents", []setting{
		{name: "none"},
		documents("intra-document", nil),
		documents("anchor", nil),
		documents("intra-document-reset:start=1", nil),
		documents("anchor:restart=true", nil),
		documents("intra-document", &rewrite.Separator{Token: 5}),
	}},
	{"cache", []setting{{name: "rotated"}, {"raw", func(o *rewrite.Options) { o.Cache.Raw = true }}}},
	{"kv", []setting{
		{name: "growing"},
		{"fixed", func(o *rewrite.Options) { o.Cache.Capacity = capacity }},
		{"ring", func(o *rewrite.Options) { o.Cache.Capacity, o.Cache.Ring = capacity, true }},
	}},
	{"type", []setting{{name: "same"}, cacheType("float16"), cacheType("bfloat16"), cacheType("int8")}},
	{"logits", []setting{{name: "all"}, {"last", func(o *rewrite.Options) { o.LogitsPlaces = rewrite.LogitsPlacesInput }}}},
	{"target", []setting{
		{name: "ops"},
		{"onnx", func(o *rewrite.Options) { o.Target = rewrite.PlainONNX }},
		{"contrib", func(o *rewrite.Options) { o.Target, o.Context.Length = rewrite.Contrib, capacity }}, // its tables have so many rows
	}},
	{"base", []setting{{name: "original"}, {"carried", carried}}},
}

// earlier is what a model was rewritten with before, where methods are added to it.
const earlier = "theta:rope_theta=20000"

func method(axis rope.Axis, text string) setting {
	return setting{text, func(o *rewrite.Options) { o.Edits = append(o.Edits, parsed(axis, text)) }}
}

func layer(o *rewrite.Options, axis rope.Axis, text string, only int) {
	o.LayerEdits = append(o.LayerEdits, rewrite.LayerEdit{Spec: parsed(axis, text), Layers: func(i int) bool { return i == only }, Where: "one layer"})
}

func documents(text string, separator *rewrite.Separator) setting {
	s := setting{text, func(o *rewrite.Options) {
		o.Edits = append(o.Edits, parsed(rope.MaskAxis, text))
		if o.Documents.Separator = separator; separator == nil {
			o.Documents.Input = rewrite.DocumentsInput
		}
	}}
	if separator != nil {
		s.name += " by separator"
	}
	return s
}

// carried adds the methods to those of an earlier rewrite. It is the last feature, so that the methods are there.
func carried(o *rewrite.Options) {
	o.Earlier.Carried = true
	based := func(s *rope.Spec) {
		if s.Axis == rope.ScalingAxis {
			given := map[string]rope.Value{"base": rope.Text("carried")}
			maps.Copy(given, s.Params)
			s.Params = given
		}
	}
	for i := range o.Edits {
		based(&o.Edits[i])
	}
	for i := range o.LayerEdits {
		based(&o.LayerEdits[i].Spec)
	}
}

func cacheType(name string) setting {
	return setting{name, func(o *rewrite.Options) { o.Cache.Type = name }}
}

// parsed reads a method of the table; one that cannot be read is a mistake of the table's.
func parsed(axis rope.Axis, text string) rope.Spec {
	spec, err := rope.ParseSpec(axis, text)
	if err != nil {
		panic(err)
	}
	return spec
}
