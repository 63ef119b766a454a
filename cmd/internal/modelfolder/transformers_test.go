package modelfolder_test

import (
	"context"
	"flag"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/rope-rewrite/rope-rewrite/cmd/internal/modelfolder"
	"github.com/rope-rewrite/rope-rewrite/internal/decoder"
	"github.com/rope-rewrite/rope-rewrite/internal/engine"
	"github.com/rope-rewrite/rope-rewrite/internal/npz"
	"github.com/rope-rewrite/rope-rewrite/internal/testruntime"
	"github.com/rope-rewrite/rope-rewrite/internal/testsample"
	"github.com/rope-rewrite/rope-rewrite/rope"
)

var update = flag.Bool("update", false, "write testdata/configs; then run testdata/scripts/config_claims.py --write")

// written is a rewrite of the small llama, trained on 16 tokens and meant for 48.
type written struct {
	name    string // of the configuration in testdata/configs, which transformers computed; "" where there is no key
	model   string // model_type, llama if ""
	methods []string
	form    string // newer (rope_parameters) or older (rope_scaling); both if ""
	warning string // where there is no key: what the warning names

	documents string // the input with document ids
}

const (
	eights = "1;1.5;2;2.5;3;3.5;4;4.5"
	halves = "1;1;1;1;1;1.25;1.5;2"
)

// rewrites are all methods, with the parameters that change which keys are written.
var rewrites = []written{
	{name: "none", methods: []string{"scaling none"}},
	{name: "theta", methods: []string{"scaling theta:rope_theta=50000"}},
	{name: "linear", methods: []string{"scaling linear:factor=3"}},
	{name: "ntk", methods: []string{"scaling ntk:alpha=3"}},
	{name: "dynamic", methods: []string{"scaling dynamic:factor=2"}},
	{name: "dynamic-linear", methods: []string{"scaling dynamic-linear"}},
	{name: "partial-ntk", methods: []string{"scaling partial-ntk"}},
	{name: "ntk-by-parts", methods: []string{"scaling ntk-by-parts"}},
	{name: "yarn", methods: []string{"scaling yarn"}},
	{name: "yarn-keys", methods: []string{"scaling yarn:factor=4,beta_fast=4,beta_slow=0.5,truncate=false,mscale=1.2,mscale_all_dim=0.6"}},
	{name: "yarn-attention-factor", methods: []string{"scaling yarn:attention_factor=1.3"}},
	{name: "yarn-temperature", methods: []string{"scaling yarn:temperature=1.25"}},
	{name: "yarn-ratio", methods: []string{"scaling yarn:ramp=ratio"}},
	{name: "longrope", methods: []string{"scaling longrope:short_factor=[" + halves + "],long_factor=[" + eights + "]"}},
	{name: "llama3", methods: []string{"scaling llama3:factor=3,low_freq_factor=1,high_freq_factor=4"}},
	{name: "proportional", methods: []string{"scaling proportional:partial_rotary_factor=0.5,factor=2"}, form: "newer"},
	{name: "beta-ary", methods: []string{"scaling beta-ary:factor=3"}},
	{name: "resonance", methods: []string{"scaling resonance"}},
	{name: "frequencies", methods: []string{"scaling frequencies:inv_freq=[1.5;0.7;0.3;0.1;0.05;0.02;0.01;0.005],attention_factor=1.1"}},
	{name: "phi3-yarn", model: "phi3", methods: []string{"scaling yarn"}, form: "newer"},
	{name: "phi3-window", model: "phi3", methods: []string{"mask sliding-window:window=10"}},
	{name: "mistral-window", model: "mistral", methods: []string{"mask sliding-window:window=10", "scaling yarn"}},
	{name: "qwen2-window", model: "qwen2", methods: []string{"mask sliding-window:window=10"}},
	{name: "qwen2-upper-window", model: "qwen2", methods: []string{"mask sliding-window:window=10@1"}},

	{methods: []string{"scaling proportional:partial_rotary_factor=0.5,factor=2"}, form: "older", warning: "scaling proportional"},
	{model: "phi3", methods: []string{"scaling yarn"}, form: "older", warning: "scaling yarn"},
	{methods: []string{"scaling nope"}, warning: "scaling nope"},
	{methods: []string{"scaling dynamic:factor=2,length=run"}, warning: "length=run of the scaling dynamic"},
	{methods: []string{"scaling dynamic-linear:length=run"}, warning: "length=run of the scaling dynamic-linear"},
	{methods: []string{"scaling longrope:length=run,short_factor=[" + halves + "],long_factor=[" + eights + "]"}, warning: "length=run of the scaling longrope"},
	{methods: []string{"scaling log-n"}, warning: "key for the temperature"},
	{methods: []string{"scaling temperature:floor_scale=8"}, warning: "key for the temperature"},
	{methods: []string{"positions string:shift=L/3,window=4"}, warning: "key for the position map"},
	{methods: []string{"positions rerope:window=8"}, warning: "key for the position map"},
	{methods: []string{"positions leaky-rerope:window=8,factor=4"}, warning: "key for the position map"},
	{methods: []string{"positions self-extend:window=8,group=4"}, warning: "key for the position map"},
	{methods: []string{"positions dual-chunk:chunk_size=12,local_size=3"}, warning: "key for the position map"},
	{methods: []string{"mask sliding-window:window=10"}, warning: "the window of 10 tokens"},
	{methods: []string{"mask first-keys:count=2,window=8"}, warning: "key for the first keys"},
	{methods: []string{"mask first-keys:count=2,window=8,positions=cache"}, warning: "key for the position map"},
	{methods: []string{"mask intra-document"}, documents: "document_ids", warning: "key for the documents"},
	{methods: []string{"mask intra-document-reset"}, documents: "document_ids", warning: "key for the restarted positions"},
	{methods: []string{"mask anchor"}, documents: "document_ids", warning: "key for the documents"},
}

// without are the methods for which the small llama is no model: it is causal already and has a cache.
var without = []string{"identity", "randomized", "keep", "causal"}

// configOf is llama's configuration as one or the other version of transformers writes it.
func configOf(t *testing.T, model, form string) string {
	data, err := os.ReadFile(filepath.Join(models, "llama__dynamo18", "config.json"))
	if err != nil {
		t.Fatal(err)
	}
	text := strings.Replace(string(data), `"max_position_embeddings": 64`, `"max_position_embeddings": 16`, 1)
	if model != "" {
		text = strings.Replace(text, `"model_type": "llama"`, `"model_type": "`+model+`"`, 1)
	}
	if model == "phi3" {
		text = strings.Replace(text, `"max_position`, `"original_max_position_embeddings": 16,`+"\n  "+`"max_position`, 1)
	}
	if form == "older" {
		dictionary := text[strings.Index(text, `"rope_parameters"`) : strings.Index(text, "},")+1]
		text = strings.Replace(text, dictionary, `"rope_scaling": null,`+"\n  "+`"rope_theta": 10000.0`, 1)
	}
	return text
}

// What transformers computes from the configuration that is written is what the model computes, decoding
// beyond the trained length too. Where there is no key for a method, a warning says so, and so does audit.
func TestTransformersAgrees(t *testing.T) {
	var cases []written
	var tried []string
	for _, w := range rewrites {
		for _, text := range w.methods {
			_, spec, _ := strings.Cut(text, " ")
			name, _, _ := strings.Cut(spec, ":")
			tried = append(tried, name)
		}
		for _, form := range []string{"newer", "older"} {
			if w.form == "" || w.form == form {
				c := w
				c.form = form
				cases = append(cases, c)
			}
		}
	}
	for m := range rope.Methods() {
		if !slices.Contains(tried, m.Name) && !slices.Contains(without, m.Name) {
			t.Errorf("the method %s is not tried", m.Name)
		}
	}
	if !*update {
		cases = testsample.Of(t, cases, 11)
	}
	for _, w := range cases {
		t.Run(strings.Join(w.methods, " ")+" "+w.form, w.test)
	}
}

const configs = "../../../testdata/configs"

func (w written) test(t *testing.T) {
	from := t.TempDir()
	put(t, from, "llama__dynamo18/model.onnx")
	before := configOf(t, w.model, w.form)
	write(t, from, "config.json", before)
	opts := options(t, w.methods...)
	opts.Context.Length, opts.Documents.Input = 48, w.documents
	output, f := rewritten(t, from, opts, modelfolder.WriteOptions{})
	config := read(t, output, "config.json")
	if w.name == "" {
		for _, want := range []string{w.warning, "audit will exit with 5"} {
			if !slices.ContainsFunc(f.Warnings, func(s string) bool { return strings.Contains(s, want) }) {
				t.Errorf("no warning of %s: %q", want, f.Warnings)
			}
		}
		if rest := strings.Replace(config, ": 48", ": 16", 1); rest != before {
			t.Errorf("it claims something:\n%s", rest)
		}
		return
	}
	if len(f.Warnings) > 0 {
		t.Errorf("warnings: %q", f.Warnings)
	}
	file := filepath.Join(configs, w.name+"."+w.form+".json")
	if *update {
		write(t, configs, filepath.Base(file), config)
		return
	}
	if want, err := os.ReadFile(file); err != nil || string(want) != config {
		t.Fatalf("it writes\n%s\nand transformers computed\n%s\n(%v; -update)", config, want, err)
	}
	sameLogits(t, filepath.Join(output, "model.onnx"), w.name)
}

// sameLogits decodes the text of the goldens, after a prefill of 12 tokens.
func sameLogits(t *testing.T, model, name string) {
	t.Helper()
	goldens, err := npz.Open(filepath.Join(configs, "goldens.npz"))
	if err != nil {
		t.Fatal(err)
	}
	defer goldens.Close()
	const prefill, step = 12, 4
	ids, shape, err := goldens.Int64("ids")
	if err != nil {
		t.Fatal(err)
	}
	want, wanted, err := goldens.Float32(name)
	if err != nil {
		t.Fatal(err)
	}
	testruntime.Paths(t)
	eng, err := engine.NewLocal(engine.Config{Threads: 1})
	if err != nil {
		t.Fatal(err)
	}
	d, err := decoder.Open(context.Background(), eng, model, decoder.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	calls := append([]int64{prefill}, slices.Repeat([]int64{1}, shape[1]-prefill)...)
	got, err := d.Chunks(context.Background(), d.Padded([][]int64{ids}, 0), calls...)
	if err != nil {
		t.Fatal(err)
	}
	most, width := 0.0, wanted[1]
	for i, w := range want {
		most = max(most, math.Abs(got[i/width*step*width+i%width]-float64(w)))
	}
	if most > 1e-4 {
		t.Errorf("logits differ from transformers' by %g", most)
	}
}
