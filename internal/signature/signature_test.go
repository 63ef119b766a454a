package signature_test

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/rope-rewrite/rope-rewrite/customop"
	"github.com/rope-rewrite/rope-rewrite/internal/signature"
	"github.com/rope-rewrite/rope-rewrite/onnx"
)

const models = "../../testdata/models"

func read(t *testing.T, model string) (*signature.Signature, error) {
	t.Helper()
	folder := filepath.Join(models, model)
	m, err := onnx.Open(filepath.Join(folder, "model.onnx"))
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close()
	return signature.Read(m, folder)
}

// What real exports take and give.
func TestRead(t *testing.T) {
	const tokens, positions, padding, past = signature.Tokens, signature.Positions, signature.Padding, signature.Past
	for model, want := range map[string]struct {
		roles         []signature.Role
		first         signature.Cache
		vocabulary    int64
		lengthTracked bool
	}{
		"llama__optimum": {
			roles:      []signature.Role{tokens, padding, positions, past, past, past, past},
			first:      signature.Cache{Past: "past_key_values.0.key", Present: "present.0.key", Heads: 2, Size: 16},
			vocabulary: 128,
		},
		"llama__genai-fp32": { // leaves the size of a head open
			roles:      []signature.Role{tokens, padding, past, past, past, past},
			first:      signature.Cache{Past: "past_key_values.0.key", Present: "present.0.key", Heads: 2, Size: 16},
			vocabulary: 128, lengthTracked: true,
		},
		"llama__ts17-fixed": {
			roles:      []signature.Role{tokens, padding, positions, past, past, past, past},
			first:      signature.Cache{Past: "past_key_values.0.key", Present: "present.0.key", Heads: 2, Rows: 24, Size: 16},
			vocabulary: 128,
		},
		"moonshine__dynamo18": { // half of its caches are an encoder's
			roles:      []signature.Role{tokens, past, past, past, past, signature.Memory, signature.Memory, signature.Memory, signature.Memory},
			first:      signature.Cache{Past: "past_key_values.0.key", Present: "present.0.key", Heads: 4, Size: 8},
			vocabulary: 64,
		},
		"gptj__ts17": {roles: []signature.Role{tokens, padding}, vocabulary: 64},
	} {
		s, err := read(t, model)
		if err != nil {
			t.Errorf("%s: %v", model, err)
			continue
		}
		var roles []signature.Role
		for _, in := range s.Inputs {
			roles = append(roles, in.Role)
		}
		if !slices.Equal(roles, want.roles) {
			t.Errorf("%s: roles %v, want %v", model, roles, want.roles)
		}
		if len(s.Caches) > 0 && s.Caches[0] != want.first || len(s.Caches) == 0 && want.first != (signature.Cache{}) {
			t.Errorf("%s: caches %+v, want %+v first", model, s.Caches, want.first)
		}
		if s.Logits != "logits" || s.Vocabulary != want.vocabulary || s.Capacity != 0 || s.LengthTracked != want.lengthTracked {
			t.Errorf("%s: logits %s, vocabulary %d, capacity %d, length-tracked %v", model, s.Logits, s.Vocabulary, s.Capacity, s.LengthTracked)
		}
	}
}

func TestReadRefusesWhatCannotBeFed(t *testing.T) {
	for model, want := range map[string]string{
		"llama__ts17-static-cache": `"cache_position" cannot be fed`,
	} {
		if _, err := read(t, model); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want a word of %s", model, err, want)
		}
	}
}

// value is a value of a graph; sizes below zero are not known.
func value(name string, t onnx.DataType, sizes ...int64) *onnx.ValueInfo {
	dims := make([]onnx.Dim, len(sizes))
	for i, n := range sizes {
		dims[i] = onnx.Dim{Value: n}
	}
	return onnx.NewValueInfo(name, t, dims...)
}

// small is a model with one cache, whose values have names of their own.
func small(change func(g *onnx.Graph)) *onnx.Model {
	m := onnx.New()
	g := m.Graph
	g.AddInput(value("input_ids", onnx.Int64, -1, -1))
	g.AddInput(value("k", onnx.Float, -1, 2, -1, 16))
	g.AddInput(value("v", onnx.Float, -1, 2, -1, 8))
	g.AddOutput(value("scores", onnx.Float, -1, -1, 100))
	g.AddOutput(value("k_out", onnx.Float, -1, 2, -1, 16))
	g.AddOutput(value("v_out", onnx.Float, -1, 2, -1, 8))
	change(g)
	return m
}

// rotaryAttention is a node of the op with some of its inputs.
func rotaryAttention(inputs map[string]string) *onnx.Node {
	names := make([]string, len(customop.RotaryAttentionSpec.Inputs))
	for i, in := range customop.RotaryAttentionSpec.Inputs {
		names[i] = inputs[in.Name]
	}
	n := onnx.NewNode("RotaryAttention", names, []string{"out"})
	n.Domain = customop.Domain
	return n
}

// Caches are paired by their names, whatever their order, and in order where
// the names say nothing.
func TestPresentOfPast(t *testing.T) {
	for name, c := range map[string]struct {
		change  func(g *onnx.Graph)
		present []string
	}{
		"by order": {func(*onnx.Graph) {}, []string{"k_out", "v_out"}},
		"by name": {func(g *onnx.Graph) {
			g.Inputs[1].Name, g.Inputs[2].Name = "past_key_values.0.key", "past_key_values.0.value"
			g.Outputs[1].Name, g.Outputs[2].Name = "present.0.value", "present.0.key"
		}, []string{"present.0.key", "present.0.value"}},
		"by name, beside attentions": {func(g *onnx.Graph) {
			g.Inputs[1].Name, g.Inputs[2].Name = "past_key_values.0.key", "past_key_values.0.value"
			g.Outputs[1].Name, g.Outputs[2].Name = "present.0.key", "present.0.value"
			g.AddOutput(value("attentions", onnx.Float, -1, 2, -1, -1))
		}, []string{"present.0.key", "present.0.value"}},
	} {
		s, err := signature.Read(small(c.change), t.TempDir())
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if got := []string{s.Caches[0].Present, s.Caches[1].Present}; !slices.Equal(got, c.present) {
			t.Errorf("%s: %v, want %v", name, got, c.present)
		}
		if s.Inputs[1].Cache != 0 || s.Inputs[2].Cache != 1 || s.Logits != "scores" || s.Vocabulary != 100 {
			t.Errorf("%s: %+v", name, s)
		}
	}
}

// The output named logits is taken for them, also where another stands before it.
func TestLogits(t *testing.T) {
	s, err := signature.Read(small(func(g *onnx.Graph) { g.AddOutput(value("logits", onnx.Float, -1, -1, 50)) }), t.TempDir())
	if err != nil || s.Logits != "logits" || s.Vocabulary != 50 {
		t.Errorf("%+v, %v", s, err)
	}
}

// A list of one whole number, -1 where nothing is fed, says of which tokens the logits are.
func TestPlaces(t *testing.T) {
	last, first := []byte{255, 255, 255, 255, 255, 255, 255, 255}, make([]byte, 8)
	for _, c := range []struct {
		size      int64 // of the input; -1 is open
		otherwise []byte
		want      bool
	}{{-1, last, true}, {-1, first, false}, {1, last, false}} { // the last is a constant of an old file
		s, err := signature.Read(small(func(g *onnx.Graph) {
			g.AddInput(value("at", onnx.Int64, c.size))
			g.AddInitializer(onnx.NewTensor("at", onnx.Int64, []int64{1}, c.otherwise))
		}), t.TempDir())
		if err != nil || s.Takes(signature.Places) != c.want {
			t.Errorf("%+v: %+v, %v", c, s, err)
		}
	}
}

// A weight that an old file lists among the inputs is not fed.
func TestWeightsAreNotFed(t *testing.T) {
	s, err := signature.Read(small(func(g *onnx.Graph) {
		g.AddInput(value("embed", onnx.Float, 1))
		g.AddInitializer(onnx.NewTensor("embed", onnx.Float, []int64{1}, make([]byte, 4)))
	}), t.TempDir())
	if err != nil || len(s.Inputs) != 3 {
		t.Errorf("%+v, %v", s, err)
	}
}

// What the rewriter adds is known by where the op reads it, and by the names
// that it usually has.
func TestInputsOfTheOp(t *testing.T) {
	for name, change := range map[string]func(g *onnx.Graph){
		"read by the op": func(g *onnx.Graph) {
			g.AddInput(value("texts", onnx.Int64, -1, -1))
			g.AddInput(value("held", onnx.Int32, -1))
			g.Nodes = append(g.Nodes, rotaryAttention(map[string]string{"document_ids": "texts", "cache_length": "held"}))
		},
		"by name": func(g *onnx.Graph) {
			g.AddInput(value("document_ids", onnx.Int64, -1, -1))
			g.AddInput(value("cache_length", onnx.Int32, -1))
		},
	} {
		s, err := signature.Read(small(func(g *onnx.Graph) {
			for _, v := range []*onnx.ValueInfo{g.Inputs[1], g.Inputs[2], g.Outputs[1], g.Outputs[2]} {
				v.Shape[2] = onnx.Dim{Value: 64}
			}
			change(g)
		}), t.TempDir())
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if s.Inputs[3].Role != signature.Documents || s.Inputs[4].Role != signature.CacheLength || s.Capacity != 64 || s.LengthTracked {
			t.Errorf("%s: %+v", name, s)
		}
		if got := s.Caches[1].Dims(3); !slices.Equal(got, []int64{3, 2, 64, 8}) {
			t.Errorf("%s: an empty cache is %v", name, got)
		}
	}
	s, err := signature.Read(small(func(g *onnx.Graph) {
		g.Nodes = append(g.Nodes, rotaryAttention(map[string]string{"total_length": "total"}))
	}), t.TempDir())
	if err != nil || !s.LengthTracked {
		t.Errorf("a total length: %+v, %v", s, err)
	}
}

// The rotation alone has its inputs in other places than the attention.
func TestInputsOfRotary(t *testing.T) {
	s, err := signature.Read(small(func(g *onnx.Graph) {
		g.AddInput(value("where", onnx.Int64, -1, -1))
		n := onnx.NewNode("Rotary_2", []string{"k", "", "where", "", "", "longest"}, []string{"turned"})
		n.Domain = customop.Domain
		g.Nodes = append(g.Nodes, n)
	}), t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	roles := map[string]signature.Role{}
	for _, in := range s.Inputs {
		roles[in.Name] = in.Role
	}
	if roles["where"] != signature.Positions || s.LengthTracked {
		t.Errorf("the inputs are %v, counted %v", roles, s.LengthTracked)
	}
}

// Token ids that the op hides keys by are fed as token ids still.
func TestTokensThatHideKeys(t *testing.T) {
	s, err := signature.Read(small(func(g *onnx.Graph) {
		g.Nodes = append(g.Nodes, rotaryAttention(map[string]string{"attention_mask": "input_ids"}))
	}), t.TempDir())
	if err != nil || s.Inputs[0].Role != signature.Tokens {
		t.Errorf("%+v, %v", s, err)
	}
}

// A head size that the cache leaves open is in the graph, else in config.json.
func TestHeadSize(t *testing.T) {
	open := func(g *onnx.Graph) {
		g.Inputs[1].Shape[3] = onnx.Dim{Param: "head_size"}
		g.Nodes = append(g.Nodes, onnx.NewNode("GroupQueryAttention", []string{"k"}, []string{"context"}, onnx.IntAttr("num_heads", 4)))
	}
	for name, c := range map[string]struct {
		width  int64 // of what comes out of the attention; -1 is unknown
		config string
		above  bool // config.json is above the folder
		want   int64
		says   string
	}{
		"the graph":             {width: 96, config: `{"head_dim": 7}`, want: 24},
		"head_dim":              {width: -1, config: `{"head_dim": 16}`, want: 16},
		"hidden size and heads": {width: -1, config: `{"hidden_size": 64, "num_attention_heads": 2}`, want: 32},
		"neither":               {width: -1, config: `{}`, says: "has neither head_dim"},
		"no JSON":               {width: -1, config: `{`, says: "config.json"},
		"no file":               {width: -1, says: `"k" leaves its last dimension open`},
		"a file above":          {width: -1, config: `{"head_dim": 16}`, above: true, want: 16},
		"no JSON above":         {width: -1, config: `{`, above: true, says: "config.json"},
	} {
		folder := filepath.Join(t.TempDir(), "onnx")
		if err := os.Mkdir(folder, 0o755); err != nil {
			t.Fatal(err)
		}
		if c.config != "" {
			file := filepath.Join(folder, "config.json")
			if c.above {
				file = filepath.Join(folder, "..", "config.json")
			}
			if err := os.WriteFile(file, []byte(c.config), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		s, err := signature.Read(small(func(g *onnx.Graph) {
			open(g)
			g.ValueInfo = append(g.ValueInfo, value("context", onnx.Float, -1, -1, c.width))
		}), folder)
		switch {
		case c.says != "":
			if err == nil || !strings.Contains(err.Error(), c.says) {
				t.Errorf("%s: %v, want a word of %s", name, err, c.says)
			}
		case err != nil:
			t.Errorf("%s: %v", name, err)
		case s.Caches[0].Size != c.want || s.Caches[1].Size != 8:
			t.Errorf("%s: %+v, want %d", name, s.Caches, c.want)
		}
	}
}

func TestReadRefuses(t *testing.T) {
	for want, change := range map[string]func(g *onnx.Graph){
		"no capacity":                           func(g *onnx.Graph) { g.AddInput(value("cache_length", onnx.Int32, -1)) },
		"one output of logits":                  func(g *onnx.Graph) { g.RemoveOutput("scores") },
		"as many cache outputs as cache inputs": func(g *onnx.Graph) { g.RemoveOutput("v_out") },
		`"pixels" cannot be fed`:                func(g *onnx.Graph) { g.AddInput(value("pixels", onnx.Float, -1)) },
	} {
		if _, err := signature.Read(small(change), t.TempDir()); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want a word of %s", err, want)
		}
	}
}
