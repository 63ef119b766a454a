package customop

import (
	"fmt"
	"math"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

func Example() {
	node, err := RotaryAttention{
		Query: "q", Key: "k", Value: "v", AttentionMask: "mask", Output: "y",
		NumHeads: 8, KVNumHeads: 2, Causal: 1,
		Frequencies: []float32{1, 0.01},
	}.Node("layer 0")
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(node.Domain, node.OpType)
	fmt.Printf("%q\n", node.Inputs)
	for _, a := range node.Attributes {
		fmt.Println(a.Name)
	}
	// Output:
	// rope.rewrite RotaryAttention
	// ["q" "k" "v" "" "" "" "mask"]
	// spec_version
	// num_heads
	// kv_num_heads
	// frequencies
}

func valid() RotaryAttention {
	return RotaryAttention{Query: "q", Key: "k", Value: "v", Output: "y", NumHeads: 4, KVNumHeads: 2, Causal: 1}
}

func TestNodeWritesOnlyWhatIsSaid(t *testing.T) {
	plain, err := valid().Node("n")
	if err != nil {
		t.Fatal(err)
	}
	spelled := valid()
	spelled.Gain, spelled.RotaryLayout, spelled.Cache = 1, "half", "rotated"
	same, err := spelled.Node("n")
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(plain, same); diff != "" {
		t.Errorf("defaults that are spelled out change the node:\n%s", diff)
	}
	if want := []string{"spec_version", "num_heads", "kv_num_heads"}; len(plain.Attributes) != len(want) {
		t.Errorf("attributes %v, want only %v", plain.Attributes, want)
	}
	bidirectional := valid()
	bidirectional.Causal = 0
	n, err := bidirectional.Node("n")
	if err != nil {
		t.Fatal(err)
	}
	if a, ok := n.Attribute("causal"); !ok || a.Kind != Int || a.Int != 0 {
		t.Errorf("causal = 0 is not written: %v", n.Attributes)
	}
}

// Everything that is set is written under its own name, with its own value.
func TestNodeWritesEverything(t *testing.T) {
	r := RotaryAttention{
		Query: "q", Key: "k", Value: "v", PastKey: "pk", PastValue: "pv", PositionIDs: "p", AttentionMask: "m",
		AttentionBias: "b", CacheLength: "c", DocumentIDs: "d", SinkLogits: "s",
		Output: "y", PresentKey: "nk", PresentValue: "nv", LogSumExp: "lse",
		NumHeads: 4, KVNumHeads: 2, Scale: 0.5, Frequencies: []float32{1}, Gain: 2, RotaryLayout: "interleaved",
		RotaryOffset: 1, ExactAngles: 1, Causal: 1, Window: 3, FirstKeys: 4, FirstKeysShown: 1, Softcap: 5,
		BandStarts: []int64{0, 7}, BandQueryScales: []float32{1, 2}, BandQueryOffsets: []float32{0, -3},
		BandKeyScales: []float32{1, 0.5}, BandQueryLimits: []float32{0, 8}, BandGroups: []int64{1, 2}, BandChunk: 6,
		Temperature: []float32{0, 1, 0, 1}, Cache: "raw",
	}
	got, err := r.Node("n")
	if err != nil {
		t.Fatal(err)
	}
	want := Node{
		Name: "n", OpType: "RotaryAttention", Domain: "rope.rewrite",
		Inputs:  []string{"q", "k", "v", "pk", "pv", "p", "m", "b", "c", "d", "s"},
		Outputs: []string{"y", "nk", "nv", "lse"},
		Attributes: []NodeAttribute{
			{Name: "spec_version", Kind: Int, Int: 4},
			{Name: "num_heads", Kind: Int, Int: 4}, {Name: "kv_num_heads", Kind: Int, Int: 2},
			{Name: "scale", Kind: Float, Float: 0.5}, {Name: "frequencies", Kind: Floats, Floats: []float32{1}},
			{Name: "gain", Kind: Float, Float: 2}, {Name: "rotary_layout", Kind: Text, Text: "interleaved"},
			{Name: "rotary_offset", Kind: Int, Int: 1}, {Name: "exact_angles", Kind: Int, Int: 1},
			{Name: "window", Kind: Int, Int: 3}, {Name: "first_keys", Kind: Int, Int: 4}, {Name: "first_keys_shown", Kind: Int, Int: 1}, {Name: "softcap", Kind: Float, Float: 5},
			{Name: "band_starts", Kind: Ints, Ints: []int64{0, 7}},
			{Name: "band_query_scales", Kind: Floats, Floats: []float32{1, 2}},
			{Name: "band_query_offsets", Kind: Floats, Floats: []float32{0, -3}},
			{Name: "band_key_scales", Kind: Floats, Floats: []float32{1, 0.5}},
			{Name: "band_query_limits", Kind: Floats, Floats: []float32{0, 8}},
			{Name: "band_groups", Kind: Ints, Ints: []int64{1, 2}}, {Name: "band_chunk", Kind: Int, Int: 6},
			{Name: "temperature", Kind: Floats, Floats: []float32{0, 1, 0, 1}},
			{Name: "cache", Kind: Text, Text: "raw"},
		},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	back, err := ParseRotaryAttention(got)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(r, back); diff != "" {
		t.Errorf("read back:\n%s", diff)
	}
}

func TestParseRefuses(t *testing.T) {
	n, err := valid().Node("layer 7")
	if err != nil {
		t.Fatal(err)
	}
	add := func(a NodeAttribute) func(*Node) {
		return func(n *Node) { n.Attributes = append(n.Attributes, a) }
	}
	for want, damage := range map[string]func(*Node){
		"is not a RotaryAttention of the domain": func(n *Node) { n.Domain = "com.example" },
		"specification 99":                       func(n *Node) { n.Attributes[0].Int = 99 },
		"spec_version is missing":                func(n *Node) { n.Attributes = n.Attributes[1:] },
		"it has 16 inputs, but the op has 15":    func(n *Node) { n.Inputs = make([]string, 16) },
		"it has an attribute that the op does n": add(NodeAttribute{Name: "temperatur", Kind: Floats}),
		"one twice":                              add(NodeAttribute{Name: "num_heads", Kind: Int, Int: 4}),
		"gain has another type":                  add(NodeAttribute{Name: "gain", Kind: Int, Int: 4}),
		"window is -2":                           add(NodeAttribute{Name: "window", Kind: Int, Int: -2}),
	} {
		damaged := n
		damaged.Attributes = append([]NodeAttribute(nil), n.Attributes...)
		damage(&damaged)
		_, err := ParseRotaryAttention(damaged)
		if err == nil || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), `"layer 7"`) || strings.Contains(err.Error(), "\n") {
			t.Errorf("error %v, want one sentence with the node's name and %q", err, want)
		}
	}
}

func TestNodeRefuses(t *testing.T) {
	nan, inf := float32(math.NaN()), float32(math.Inf(-1))
	for want, damage := range map[string]func(*RotaryAttention){
		"input value has no name":                             func(r *RotaryAttention) { r.Value = "" },
		"output output has no name":                           func(r *RotaryAttention) { r.Output = "" },
		"past_key and past_value are given together":          func(r *RotaryAttention) { r.PastKey = "p" },
		"num_heads 5 and kv_num_heads 2":                      func(r *RotaryAttention) { r.NumHeads = 5 },
		"num_heads 4 and kv_num_heads 0":                      func(r *RotaryAttention) { r.KVNumHeads = 0 },
		`rotary_layout is "neox": it must be half or interle`: func(r *RotaryAttention) { r.RotaryLayout = "neox" },
		`cache is "x": it must be rotated or raw`:             func(r *RotaryAttention) { r.Cache = "x" },
		"rotary_offset is -1":                                 func(r *RotaryAttention) { r.RotaryOffset = -1 },
		"exact_angles is 2":                                   func(r *RotaryAttention) { r.ExactAngles = 2 },
		"causal is -1":                                        func(r *RotaryAttention) { r.Causal = -1 },
		"window is -2":                                        func(r *RotaryAttention) { r.Window = -2 },
		"first_keys_shown is 2":                               func(r *RotaryAttention) { r.FirstKeysShown = 2 },
		"first_keys is -2":                                    func(r *RotaryAttention) { r.FirstKeys = -2 },
		"softcap is -1":                                       func(r *RotaryAttention) { r.Softcap = -1 },
		"scale is NaN":                                        func(r *RotaryAttention) { r.Scale = nan },
		"gain is -Inf":                                        func(r *RotaryAttention) { r.Gain = inf },
		"frequencies[1] is NaN":                               func(r *RotaryAttention) { r.Frequencies = []float32{1, nan} },
		"band_starts begins with 1":                           func(r *RotaryAttention) { r.BandStarts = []int64{1, 2} },
		"band_starts[2] is 4 after 4":                         func(r *RotaryAttention) { r.BandStarts = []int64{0, 4, 4} },
		"band_query_scales has 1 values for 2 bands":          func(r *RotaryAttention) { r.BandStarts, r.BandQueryScales = []int64{0, 4}, []float32{1} },
		"band_query_offsets is NaN":                           func(r *RotaryAttention) { r.BandQueryOffsets = []float32{nan} },
		"band_key_scales[0] is 2: a rotated cache":            func(r *RotaryAttention) { r.BandKeyScales = []float32{2} },
		"band_groups[0] is 3: a rotated cache":                func(r *RotaryAttention) { r.BandGroups = []int64{3} },
		"band_groups[0] is 0: it must be at least 1":          func(r *RotaryAttention) { r.BandGroups = []int64{0} },
		"band_groups has 2 values for 1 bands":                func(r *RotaryAttention) { r.BandGroups = []int64{1, 1} },
		`band_chunk needs cache "raw"`:                        func(r *RotaryAttention) { r.BandChunk = 3 },
		"band_chunk is -3":                                    func(r *RotaryAttention) { r.BandChunk = -3 },
		"band_chunk needs causal = 1":                         func(r *RotaryAttention) { r.BandChunk, r.Causal = 3, 0 },
		"band_query_limits[0] is -2":                          func(r *RotaryAttention) { r.BandQueryLimits = []float32{-2} },
		"temperature has 1 values":                            func(r *RotaryAttention) { r.Temperature = []float32{2} },
		"slope > 0":                                           func(r *RotaryAttention) { r.Temperature = []float32{0, 0, 0, 1} },
		"document_restart needs cache":                        func(r *RotaryAttention) { r.Cache, r.DocumentIDs, r.DocumentRestart = "raw", "d", 1 },
		"2 bands need causal = 1":                             func(r *RotaryAttention) { r.BandStarts, r.Causal = []int64{0, 4}, 0 },
	} {
		r := valid()
		damage(&r)
		_, err := r.Node("layer 7")
		if err == nil || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), `"layer 7"`) || strings.Contains(err.Error(), "\n") {
			t.Errorf("error %v, want one sentence with the node's name and %q", err, want)
		}
	}
}

// The trailing absent names go, those in the middle stay.
func TestTrimmed(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		names := rapid.SliceOf(rapid.SampledFrom([]string{"", "a"})).Draw(t, "names")
		got := trimmed(names)
		if n := len(got); n > 0 && got[n-1] == "" {
			t.Fatalf("%q ends in an absent name", got)
		}
		if strings.Join(names, "") != strings.Join(got, "") {
			t.Fatalf("%q lost a name of %q", got, names)
		}
	})
}

func TestSpecOf(t *testing.T) {
	for op, want := range map[string]string{"RotaryAttention_8": "RotaryAttention", "Rotary": "Rotary", "Rotary_2": "Rotary", "Rotary_9": "", "Attention": ""} {
		if spec, known := SpecOf(op); spec.Name != want || known != (want != "") {
			t.Errorf("%s is of %q, want %q", op, spec.Name, want)
		}
	}
}

func TestSpecVersionIsTheOldestThatHasEverything(t *testing.T) {
	b := builder{name: "n", opType: "Op"}
	b.input("query", "q", false, 1)
	b.input("sinks", "", true, 3)
	b.optional(NodeAttribute{Name: "softcap", Kind: Float}, true, 4)
	b.optional(NodeAttribute{Name: "gain", Kind: Float, Float: 2}, false, 2)
	n, err := b.node()
	if err != nil {
		t.Fatal(err)
	}
	if a, _ := n.Attribute("spec_version"); a.Int != 2 {
		t.Errorf("spec_version %d, want 2: nothing of version 3 or 4 is used", a.Int)
	}
}
