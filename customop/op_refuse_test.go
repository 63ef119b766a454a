package customop_test

import (
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/rope-rewrite/rope-rewrite/onnx"
	"github.com/rope-rewrite/rope-rewrite/rope"
	"github.com/rope-rewrite/rope-rewrite/rope/ref"
)

// refused demands one sentence that holds the node's name and every wanted part.
func refused(t *testing.T, err error, want ...string) {
	t.Helper()
	if err == nil {
		t.Fatalf("no error; want one with %q", want)
	}
	for _, part := range append(want, "attention 3") {
		if !strings.Contains(err.Error(), part) {
			t.Errorf("error %q lacks %q", err, part)
		}
	}
	if strings.Contains(err.Error(), "\n") {
		t.Errorf("error %q is more than one line", err)
	}
}

// damage changes a good node, and what is said of it then.
type damage struct {
	change func(*onnx.Node)
	want   []string
}

func setting(a *onnx.Attribute) func(*onnx.Node) { return func(n *onnx.Node) { n.SetAttribute(a) } }

func dropping(name string) func(*onnx.Node) {
	return func(n *onnx.Node) {
		n.Attributes = slices.DeleteFunc(n.Attributes, func(a *onnx.Attribute) bool { return a.Name == name })
	}
}

// reading gives a node an input in a place.
func reading(at int, name string) func(*onnx.Node) {
	return func(n *onnx.Node) {
		for len(n.Inputs) <= at {
			n.Inputs = append(n.Inputs, "")
		}
		n.Inputs[at] = name
	}
}

// What a node cannot mean, or this library cannot do, is refused when the
// session is created: here attributes that say what cannot be.
func TestSessionRefusesAttributes(t *testing.T) {
	nan := float32(math.NaN())
	refuseNodes(t, map[string]damage{
		"newer version":      {setting(onnx.IntAttr("spec_version", 99)), []string{"spec version 99", "update librope_ops"}},
		"version 0":          {setting(onnx.IntAttr("spec_version", 0)), []string{"spec version 0"}},
		"no version":         {dropping("spec_version"), []string{"spec_version", "missing"}},
		"no heads":           {dropping("num_heads"), []string{"num_heads", "missing"}},
		"zero heads":         {setting(onnx.IntAttr("num_heads", 0)), []string{"num_heads", "0"}},
		"negative kv heads":  {setting(onnx.IntAttr("kv_num_heads", -4)), []string{"kv_num_heads", "-4"}},
		"huge kv heads":      {setting(onnx.IntAttr("kv_num_heads", 1<<40)), []string{"kv_num_heads", "1099511627776"}},
		"not divisible":      {setting(onnx.IntAttr("kv_num_heads", 3)), []string{"num_heads 4", "kv_num_heads 3"}},
		"type of attribute":  {setting(onnx.IntAttr("scale", 1)), []string{"scale"}},
		"NaN frequency":      {setting(onnx.FloatsAttr("frequencies", 1, nan)), []string{"frequencies", "nan", "1"}},
		"infinite frequency": {setting(onnx.FloatsAttr("frequencies", float32(math.Inf(1)))), []string{"frequencies", "inf"}},
		"NaN scale":          {setting(onnx.FloatAttr("scale", nan)), []string{"scale", "nan"}},
		"NaN gain":           {setting(onnx.FloatAttr("gain", nan)), []string{"gain", "nan"}},
		"layout":             {setting(onnx.StringAttr("rotary_layout", "neox")), []string{"rotary_layout", "neox", "half", "interleaved"}},
		"negative offset":    {setting(onnx.IntAttr("rotary_offset", -1)), []string{"rotary_offset", "-1"}},
		"exact_angles":       {setting(onnx.IntAttr("exact_angles", 2)), []string{"exact_angles", "2"}},
		"causal":             {setting(onnx.IntAttr("causal", 5)), []string{"causal", "5"}},
		"negative window":    {setting(onnx.IntAttr("window", -3)), []string{"window", "-3"}},
	})
}

// Position maps, and what goes with them.
func TestSessionRefusesPositionMaps(t *testing.T) {
	nan := float32(math.NaN())
	refuseNodes(t, map[string]damage{
		"bands from 1":        {setting(onnx.IntsAttr("band_starts", 1, 2)), []string{"band_starts", "0"}},
		"bands fall":          {setting(onnx.IntsAttr("band_starts", 0, 5, 4)), []string{"band_starts", "4", "5"}},
		"one scale, no band":  {setting(onnx.FloatsAttr("band_query_scales", 1, 2)), []string{"band_query_scales", "2", "1"}},
		"NaN band":            {setting(onnx.FloatsAttr("band_query_offsets", nan)), []string{"band_query_offsets", "nan"}},
		"scaled rotated keys": {setting(onnx.FloatsAttr("band_key_scales", 2)), []string{"band_key_scales", "2"}},
		"bands, not causal": {func(n *onnx.Node) {
			n.SetAttribute(onnx.IntAttr("causal", 0))
			n.SetAttribute(onnx.IntsAttr("band_starts", 0, 9))
		}, []string{"band", "causal"}},
		"half a past":          {reading(3, "past_key"), []string{"past_key", "past_value"}},
		"unknown cache":        {setting(onnx.StringAttr("cache", "paged")), []string{"cache", "paged"}},
		"groups, rotated":      {setting(onnx.IntsAttr("band_groups", 2)), []string{"band_groups", "2", "rotated cache"}},
		"trained length alone": {setting(onnx.IntAttr("trained_length", 9)), []string{"trained_length", "9", "exactly one"}},
		"dynamic alone":        {setting(onnx.IntAttr("dynamic_linear", 1)), []string{"trained_length", "0", "exactly one"}},
		"long, too short": {func(n *onnx.Node) {
			n.SetAttribute(onnx.IntAttr("trained_length", 9))
			n.SetAttribute(onnx.FloatsAttr("long_frequencies", 1))
		}, []string{"long_frequencies", "1", "frequencies"}},
		"group of none":        {setting(onnx.IntsAttr("band_groups", 0)), []string{"band_groups", "0"}},
		"groups, no bands":     {setting(onnx.IntsAttr("band_groups", 1, 1)), []string{"band_groups", "2", "1"}},
		"chunk, rotated":       {setting(onnx.IntAttr("band_chunk", 9)), []string{"band_chunk", "9", "rotated cache"}},
		"negative chunk":       {setting(onnx.IntAttr("band_chunk", -9)), []string{"band_chunk", "-9"}},
		"negative limit":       {setting(onnx.FloatsAttr("band_query_limits", -9)), []string{"band_query_limits", "-9"}},
		"temperature of three": {setting(onnx.FloatsAttr("temperature", 1, 2, 3)), []string{"temperature", "3", "four"}},
		"falling temperature":  {setting(onnx.FloatsAttr("temperature", 1, -2, 3, 4)), []string{"temperature", "slope"}},
		"chunk, not causal": {func(n *onnx.Node) {
			n.SetAttribute(onnx.IntAttr("causal", 0))
			n.SetAttribute(onnx.IntAttr("band_chunk", 9))
			n.SetAttribute(onnx.StringAttr("cache", "raw"))
		}, []string{"band_chunk", "causal"}},
	})
}

// Masks, documents and inputs.
func TestSessionRefusesMasks(t *testing.T) {
	refuseNodes(t, map[string]damage{
		"restart, raw": {func(n *onnx.Node) {
			reading(9, "document_ids")(n)
			n.SetAttribute(onnx.IntAttr("document_restart", 1))
			n.SetAttribute(onnx.StringAttr("cache", "raw"))
		}, []string{"document_restart", "rotated cache"}},
		"cache length":           {reading(8, "cache_length"), []string{"cache_length", "past_key"}},
		"total length":           {reading(12, "total_length"), []string{"total_length", "cache_length"}},
		"first keys shown":       {setting(onnx.IntAttr("first_keys_shown", 2)), []string{"first_keys_shown", "2"}},
		"negative first keys":    {setting(onnx.IntAttr("first_keys", -1)), []string{"first_keys", "-1"}},
		"negative softcap":       {setting(onnx.FloatAttr("softcap", -30)), []string{"softcap", "-30"}},
		"infinite softcap":       {setting(onnx.FloatAttr("softcap", float32(math.Inf(1)))), []string{"softcap", "inf"}},
		"document mask":          {setting(onnx.StringAttr("document_mask", "packed")), []string{"document_mask", "packed", "intra", "anchor"}},
		"anchor without ids":     {setting(onnx.StringAttr("document_mask", "anchor")), []string{"document_mask", "document_ids"}},
		"restart without ids":    {setting(onnx.IntAttr("document_restart", 1)), []string{"document_restart", "document_ids"}},
		"document restart":       {setting(onnx.IntAttr("document_restart", 2)), []string{"document_restart", "2"}},
		"negative start":         {setting(onnx.IntAttr("document_start", -2)), []string{"document_start", "-2"}},
		"document start too far": {setting(onnx.IntAttr("document_start", 1<<31)), []string{"document_start", "2147483648"}},
		"restart and bands": {func(n *onnx.Node) {
			reading(9, "document_ids")(n)
			n.SetAttribute(onnx.IntAttr("document_restart", 1))
			n.SetAttribute(onnx.IntsAttr("band_starts", 0, 5))
		}, []string{"document_restart", "one band", "band_starts"}},
		"required input":  {reading(1, ""), []string{"key"}},
		"too many inputs": {reading(15, "query"), []string{"Node(attention 3)", "input size 16"}},
	})
}

func refuseNodes(t *testing.T, damages map[string]damage) {
	t.Helper()
	for name, c := range damages {
		t.Run(name, func(t *testing.T) {
			p := filled(problem(attention(4, 2, 8), 1, 3, 0), 1)
			node := nodeOf(t, p)
			c.change(node)
			types := map[string]onnx.DataType{
				"query": onnx.Float, "key": onnx.Float, "value": onnx.Float, "past_key": onnx.Float, "past_value": onnx.Float,
				"attention_bias": onnx.Float, "cache_length": onnx.Int32, "total_length": onnx.Int32, "document_ids": onnx.Int64,
				"sink_logits": onnx.Float, "position_ids": onnx.Int64,
			}
			_, err := newSession(t, node, types, 1)
			if err == nil {
				t.Fatal("the session was created")
			}
			refused(t, err, c.want...)
		})
	}
}

// A node with defaults spelled out is as good as without.
func TestDefaultsAreAccepted(t *testing.T) {
	p := filled(problem(attention(4, 2, 8), 1, 3, 0), 1)
	node := nodeOf(t, p)
	node.SetAttribute(onnx.IntAttr("first_keys", 0))
	node.SetAttribute(onnx.IntAttr("first_keys_shown", 0))
	node.SetAttribute(onnx.FloatAttr("softcap", 0))
	node.SetAttribute(onnx.StringAttr("document_mask", "intra"))
	node.SetAttribute(onnx.StringAttr("cache", "rotated"))
	in := feedsOf(p, false)
	s, err := newSession(t, node, typesOf(in), 1)
	if err != nil {
		t.Fatal(err)
	}
	got, err := s.run(in)
	if err != nil {
		t.Fatal(err)
	}
	compare(t, p, false, got)
}

// badInput is an input that does not fit, and what is said of it.
type badInput struct {
	input string
	bad   tensor
	want  []string
}

func zeros(dims ...int64) tensor { return floats(make([]float32, product(dims)), dims...) }

func ones(n int) []int64 { return slices.Repeat([]int64{1}, n) }

// Bad input of a run names the node, the input and what did not fit: here the
// shapes of query, key, value and past.
func TestRunRefusesShapes(t *testing.T) {
	refuseInputs(t, map[string]badInput{
		"rank 2":             {"query", zeros(2, 20), []string{"query [2, 20]", "3 or 4"}},
		"rank 5":             {"key", zeros(2, 2, 5, 8, 1), []string{"key [2, 2, 5, 8, 1]", "3 or 4"}},
		"heads, rank 4":      {"query", zeros(2, 3, 5, 8), []string{"query [2, 3, 5, 8]", "num_heads 4"}},
		"heads, rank 3":      {"query", zeros(2, 5, 30), []string{"query [2, 5, 30]", "num_heads 4"}},
		"no channels":        {"query", zeros(2, 4, 5, 0), []string{"query [2, 4, 5, 0]"}},
		"odd head":           {"query", zeros(2, 4, 5, 10), []string{"query [2, 4, 5, 10]", "key [2, 2, 5, 8]"}},
		"too small a head":   {"query", zeros(2, 4, 5, 6), []string{"query [2, 4, 5, 6]"}},
		"key batch":          {"key", zeros(1, 2, 5, 8), []string{"key [1, 2, 5, 8]", "query [2, 4, 5, 8]"}},
		"key length":         {"key", zeros(2, 2, 6, 8), []string{"key [2, 2, 6, 8]", "query [2, 4, 5, 8]"}},
		"value length":       {"value", zeros(2, 2, 4, 8), []string{"value [2, 2, 4, 8]", "query [2, 4, 5, 8]"}},
		"value heads":        {"value", zeros(2, 4, 5, 8), []string{"value [2, 4, 5, 8]", "kv_num_heads 2"}},
		"past key rank":      {"past_key", zeros(2, 4, 16), []string{"past_key [2, 4, 16]"}},
		"past key batch":     {"past_key", zeros(1, 2, 4, 8), []string{"past_key [1, 2, 4, 8]", "[2, 2, 4, 8]"}},
		"past key channels":  {"past_key", zeros(2, 2, 4, 10), []string{"past_key [2, 2, 4, 10]", "key [2, 2, 5, 8]"}},
		"past value length":  {"past_value", zeros(2, 2, 3, 8), []string{"past_value [2, 2, 3, 8]", "past_key [2, 2, 4, 8]"}},
		"no tokens, bad key": {"query", zeros(2, 4, 0, 8), []string{"key [2, 2, 5, 8]", "query [2, 4, 0, 8]"}},
	})
}

// Positions, masks, biases and sinks.
func TestRunRefusesOtherInputs(t *testing.T) {
	inf, nan := float32(math.Inf(1)), float32(math.NaN())
	refuseInputs(t, map[string]badInput{
		"mask length":       {"attention_mask", integers(ones(10), 2, 5), []string{"attention_mask [2, 5]", "[2, 9]", "query [2, 4, 5, 8]"}},
		"mask batch":        {"attention_mask", integers(ones(27), 3, 9), []string{"attention_mask [3, 9]"}},
		"mask rank":         {"attention_mask", integers(ones(18), 2, 1, 1, 9), []string{"attention_mask [2, 1, 1, 9]"}},
		"positions length":  {"position_ids", integers(ones(18), 2, 9), []string{"position_ids [2, 9]", "[2, 5]"}},
		"positions rank":    {"position_ids", integers(ones(5), 5), []string{"position_ids [5]"}},
		"negative position": {"position_ids", integers([]int64{4, 5, 6, 7, 8, 4, 5, -6, 7, 8}, 2, 5), []string{"position_ids", "-6", "row 1", "place 2"}},
		"immense position":  {"position_ids", integers([]int64{4, 5, 6, 7, 1 << 62, 4, 5, 6, 7, 8}, 2, 5), []string{"position_ids", "4611686018427387904", "row 0", "place 4"}},
		"gap between bands": {"position_ids", integers([]int64{4, 5, 6, 7, 8, 4, 5, 7, 8, 9}, 2, 5), []string{"position_ids", "row 1", "place 2", "band"}},
		"restart in a band": {"position_ids", integers([]int64{0, 1, 0, 1, 2, 4, 5, 6, 7, 8}, 2, 5), []string{"position_ids", "row 0", "place 2", "band"}},
		"bias rank":         {"attention_bias", zeros(1, 1, 1, 5, 9), []string{"attention_bias [1, 1, 1, 5, 9]", "[2, 4, 5, 9]", "past_key [2, 2, 4, 8]"}},
		"bias keys":         {"attention_bias", zeros(2, 4, 5, 5), []string{"attention_bias [2, 4, 5, 5]", "[2, 4, 5, 9]", "query [2, 4, 5, 8]"}},
		"bias kv heads":     {"attention_bias", zeros(2, 1, 9), []string{"attention_bias [2, 1, 9]", "[2, 4, 5, 9]"}},
		"bias of nothing":   {"bias_before_softcap", zeros(0), []string{"bias_before_softcap [0]", "[2, 4, 5, 9]"}},
		"bias too wide":     {"bias_before_softcap", zeros(10), []string{"bias_before_softcap [10]", "[2, 4, 5, 9]"}},
		"sinks of kv heads": {"sink_logits", zeros(2), []string{"sink_logits [2]", "[4]", "num_heads", "query [2, 4, 5, 8]"}},
		"sinks rank":        {"sink_logits", zeros(1, 4), []string{"sink_logits [1, 4]", "[4]"}},
		"NaN sink":          {"sink_logits", floats([]float32{0, 1, nan, 2}, 4), []string{"sink_logits", "nan", "head 2"}},
		"infinite sink":     {"sink_logits", floats([]float32{0, inf, 1, 2}, 4), []string{"sink_logits", "inf", "head 1"}},
		"ids width":         {"document_ids", integers(ones(20), 2, 10), []string{"document_ids [2, 10]", "[2, 9]", "past_key [2, 2, 4, 8]"}},
		"ids batch":         {"document_ids", integers(ones(27), 3, 9), []string{"document_ids [3, 9]", "[2, 9]"}},
		"id below a reader's": {"document_ids", integers([]int64{0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 1, 1, 1, -1, 1, 1, -2, 1}, 2, 9),
			[]string{"document_ids [2, 9]", "-2", "row 1", "place 7"}},
	})
}

func refuseInputs(t *testing.T, inputs map[string]badInput) {
	t.Helper()
	const batch, length, past = 2, 5, 4
	for name, c := range inputs {
		t.Run(name, func(t *testing.T) {
			a := attention(4, 2, 8)
			a.Bands = stringBands(3, 1)
			a.Mask.Documents, a.Sinks = rope.AnchorDocument, []float64{0, 1, 2, 3}
			p := packed(leftPadded(problem(a, batch, length, past), 0), 0, 4)
			p.Bias, p.BiasBeforeSoftcap = biases(p, 1, 0), biases(p, 2, 0)
			refuseInput(t, filled(p, 1), c)
		})
	}
}

// refuseInput runs a problem's node with a bad input. The session is as good as before then.
func refuseInput(t *testing.T, p ref.Problem, c badInput) {
	t.Helper()
	in := feedsOf(p, false)
	s, err := newSession(t, nodeOf(t, p), typesOf(in), 1)
	if err != nil {
		t.Fatal(err)
	}
	in[c.input] = c.bad
	_, err = s.run(in)
	refused(t, err, c.want...)

	in = feedsOf(p, false)
	got, err := s.run(in)
	if err != nil {
		t.Fatal(err)
	}
	compare(t, p, false, got)
}

// Nothing in, nothing out: a call without new tokens keeps the cache, and a
// batch of none is empty.
func TestEmptyCalls(t *testing.T) {
	p := filled(problem(attention(4, 2, 8), 2, 0, 6), 1)
	in := feedsOf(p, false)
	in["query"], in["key"], in["value"] = floats(nil, 2, 4, 0, 8), floats(nil, 2, 2, 0, 8), floats(nil, 2, 2, 0, 8)
	s, err := newSession(t, nodeOf(t, p), typesOf(in), 1)
	if err != nil {
		t.Fatal(err)
	}
	got, err := s.run(in)
	if err != nil {
		t.Fatal(err)
	}
	compare(t, p, false, got)
}
