package again_test

import (
	"bytes"
	"context"
	"encoding/hex"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/rope-rewrite/rope-rewrite/internal/testruntime"
	"github.com/rope-rewrite/rope-rewrite/internal/testsample"
	"github.com/rope-rewrite/rope-rewrite/onnx"
	"github.com/rope-rewrite/rope-rewrite/provenance"
	"github.com/rope-rewrite/rope-rewrite/rewrite"
	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/tests/kit"
	"github.com/rope-rewrite/rope-rewrite/rope"
)

// request is one way to rewrite a model.
type request struct {
	name string
	opts rewrite.Options
}

func requests(t *testing.T) []request {
	spec := func(axis rope.Axis, text string) []rope.Spec {
		s, err := rope.ParseSpec(axis, text)
		if err != nil {
			t.Fatal(err)
		}
		return []rope.Spec{s}
	}
	yarn := spec(rope.ScalingAxis, "yarn:factor=4,original_max_position_embeddings=64")
	return []request{
		{"yarn", rewrite.Options{Edits: yarn}},
		{"string", rewrite.Options{Edits: spec(rope.PositionsAxis, "string:shift=85,window=32")}},
		{"dual chunk and yarn", rewrite.Options{Edits: append(spec(rope.PositionsAxis, "dual-chunk:chunk_size=32,local_size=8"), yarn...)}},
		{"rerope", rewrite.Options{Edits: spec(rope.PositionsAxis, "rerope:window=16")}},
		{"anchor", rewrite.Options{Edits: spec(rope.MaskAxis, "anchor"), Documents: rewrite.Documents{Input: "documents"}}},
		{"window on one layer", rewrite.Options{LayerEdits: []rewrite.LayerEdit{{Spec: spec(rope.MaskAxis, "sliding-window:window=9")[0], Layers: func(l int) bool { return l == 1 }, Where: "layer 1"}}}},
		{"fixed", rewrite.Options{Cache: rewrite.Cache{Capacity: 32}}},
		{"raw and exact", rewrite.Options{Cache: rewrite.Cache{Raw: true}, Numerics: rewrite.Numerics{Angles: "exact"}}},
		{"log-n", rewrite.Options{Edits: spec(rope.ScalingAxis, "log-n:original_max_position_embeddings=64")}},
		{"dynamic", rewrite.Options{Edits: spec(rope.ScalingAxis, "dynamic:factor=2,original_max_position_embeddings=16,length=run")}},
	}
}

// rewritten saves what a rewrite makes of a file; nil where the model is refused.
func rewritten(t *testing.T, from, to string, opts rewrite.Options) *rewrite.Report {
	t.Helper()
	m, err := onnx.Open(from)
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close()
	opts.AllowUnchanged = opts.Cache.Capacity == 0
	report, err := kit.Rewrite(context.Background(), m, opts)
	if unfit := (*rewrite.EditError)(nil); errors.As(err, &unfit) || errors.Is(err, rewrite.ErrPartial) {
		return nil
	}
	if err != nil {
		t.Fatal(err)
	}
	if err := m.Save(to, onnx.SaveOptions{Force: true}); err != nil {
		t.Fatal(err)
	}
	return report
}

// A rewritten model is restored to what a rewrite without a method gives, and rewritten
// again to what the same request gives of the original: byte for byte.
func TestAgain(t *testing.T) {
	for _, name := range testsample.Of(t, []string{
		"llama__optimum", "gemma3_text__dynamo18", "llama__genai-fp16", "gpt_neox__dynamo18-fusions", "llama__ts17-fixed",
		"cohere__dynamo18", "gpt_neox__dynamo18-merged", "gptj__ts17", "llama__dynamo18-nocache", "llama__optimum-int8", "llama__ts17", "qwen3__dynamo23",
	}, 1) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			original := filepath.Join("..", "..", "..", "..", "testdata", "models", name, "model.onnx")
			dir := t.TempDir()
			file := func(name string) string { return filepath.Join(dir, strings.ReplaceAll(name, " ", "-")+".onnx") }
			identity := rewrite.Options{}
			if rewritten(t, original, file("identity"), identity) == nil {
				t.Fatal("the model is refused")
			}
			list := requests(t)
			var possible []request
			for _, r := range list {
				if rewritten(t, original, file(r.name), r.opts) != nil {
					possible = append(possible, r)
				}
			}
			if len(possible) < 3 {
				t.Fatalf("%d of %d requests are possible", len(possible), len(list))
			}
			for i, r := range possible {
				rewritten(t, file(r.name), file("restored"), rewrite.Options{Earlier: rewrite.Earlier{Restore: true}})
				same(t, r.name+" restored", file("restored"), file("identity"))
				// What the op computes is read out of its node, and written as it was.
				rewritten(t, file(r.name), file("carried"), rewrite.Options{Earlier: rewrite.Earlier{Carried: true}, Edits: []rope.Spec{must(rope.ParseSpec(rope.ScalingAxis, "none"))}})
				same(t, r.name+" carried on", file("carried"), file(r.name))
				next := possible[(i+1)%len(possible)]
				rewritten(t, file(r.name), file("again"), next.opts)
				same(t, r.name+", then "+next.name, file("again"), file(next.name))
			}
		})
	}
}

// Dynamic NTK that the exporter wrote is taken out of a rewritten model as out of the original.
func TestAgainWithoutDynamicNTK(t *testing.T) {
	testruntime.Require(t)
	original := filepath.Join(kit.Testdata, "coverage", "llama_dynamic__dynamo18", "model.onnx")
	dir := t.TempDir()
	first, again, once := filepath.Join(dir, "first.onnx"), filepath.Join(dir, "again.onnx"), filepath.Join(dir, "once.onnx")
	opts := rewrite.Options{Edits: []rope.Spec{must(rope.ParseSpec(rope.ScalingAxis, "yarn:factor=4,original_max_position_embeddings=16,base=original"))}}
	rewritten(t, original, first, rewrite.Options{})
	rewritten(t, original, once, opts)
	report := rewritten(t, first, again, opts)
	if report == nil {
		t.Fatal("the rewritten model is refused")
	}
	same(t, "without dynamic NTK, with YaRN", again, once)
	if now := inspected(t, again); now.Attention.Encoding.LengthDependent.Trained != 0 {
		t.Errorf("its frequencies depend on the length: %+v", now.Attention.Encoding.LengthDependent)
	}
}

// A model without a cache that takes its frequencies by the length of a call has positions only for
// the op, which belong to no method: with and without them it is written again as from the original.
func TestAgainCounted(t *testing.T) {
	testruntime.Require(t)
	original := filepath.Join(kit.Testdata, "coverage", "phi3_longrope__dynamo18-nocache", "model.onnx")
	dir := t.TempDir()
	file := func(name string) string { return filepath.Join(dir, name+".onnx") }
	rewritten(t, original, file("identity"), rewrite.Options{})
	for name, edit := range map[string]rope.Spec{
		"first keys":   must(rope.ParseSpec(rope.MaskAxis, "first-keys:count=2,window=6,positions=cache")),
		"another base": must(rope.ParseSpec(rope.ScalingAxis, "theta:rope_theta=5000,base=carried")),
	} {
		opts := rewrite.Options{Edits: []rope.Spec{edit}}
		rewritten(t, original, file(name), opts)
		rewritten(t, file("identity"), file("again"), opts)
		same(t, name, file("again"), file(name))
		rewritten(t, file(name), file("restored"), rewrite.Options{Earlier: rewrite.Earlier{Restore: true}})
		same(t, name+" taken back", file("restored"), file("identity"))
	}
}

func same(t *testing.T, what, got, want string) {
	t.Helper()
	a, errA := os.ReadFile(got)
	b, errB := os.ReadFile(want)
	if errA != nil || errB != nil || !bytes.Equal(a, b) {
		t.Errorf("%s: %s differs from %s", what, filepath.Base(got), filepath.Base(want))
	}
}

// The record says what was done, and base=carried goes on from it.
func TestRecord(t *testing.T) {
	original := filepath.Join("..", "..", "..", "..", "testdata", "models", "llama__optimum", "model.onnx")
	dir := t.TempDir()
	first, second := filepath.Join(dir, "first.onnx"), filepath.Join(dir, "second.onnx")
	report := rewritten(t, original, first, rewrite.Options{
		Edits:     []rope.Spec{must(rope.ParseSpec(rope.ScalingAxis, "yarn:factor=4")), must(rope.ParseSpec(rope.PositionsAxis, "string:window=32"))},
		Documents: rewrite.Documents{Input: ""},
		Cache:     rewrite.Cache{Capacity: 512},
		Context:   rope.Context{Length: 256},
	})
	m := must(onnx.Open(first))
	defer m.Close()
	record, err := provenance.Read(m)
	if err != nil {
		t.Fatal(err)
	}
	source := must(onnx.Open(original))
	defer source.Close()
	if sum := source.Digest(); record.Graph != hex.EncodeToString(sum[:]) {
		t.Errorf("the graph's digest is %s", record.Graph)
	}
	if record.MaxError != report.Sites[0].Proof.MaxError || record.MaxError == 0 {
		t.Errorf("the largest error is %g, the report's %g", record.MaxError, report.Sites[0].Proof.MaxError)
	}
	if record.Target != "ops" || record.OpSpec != 2 || !slices.Equal(record.AddedInputs, []string{"cache_length"}) || len(record.Sites) != 1 || !slices.Equal(record.Sites[0].Layers, []int{0, 1}) {
		t.Errorf("the record is %+v", record)
	}
	if e := record.Sites[0].Original.Encoding; len(e.Frequencies) != 8 || e.Frequencies[0] != 1 {
		t.Errorf("the original frequencies are %v", e.Frequencies)
	}
	want := map[string]string{"factor": "4 given", "original_max_position_embeddings": "64 configuration", "shift": "85 context", "window": "32 given", "capacity": "512 given"}
	for _, d := range record.Edits {
		for _, s := range d.Settings {
			if w := want[s.Name]; w != "" && w != s.Value.String()+" "+string(s.From) {
				t.Errorf("%s: %s is %v %s, want %s", d, s.Name, s.Value, s.From, w)
			}
			delete(want, s.Name)
		}
	}
	if len(want) > 0 {
		t.Errorf("nothing is said of %v", want)
	}

	// On top of it: everything stays, and the frequencies are halved once more.
	again := rewritten(t, first, second, rewrite.Options{Edits: []rope.Spec{must(rope.ParseSpec(rope.ScalingAxis, "linear:factor=2,base=carried"))}})
	if len(again.Record.Edits) != 5 {
		t.Errorf("the edits are %v", again.Record.Edits)
	}
	before, now := inspected(t, first), inspected(t, second)
	for i, f := range now.Attention.Encoding.Frequencies {
		if f != float64(float32(before.Attention.Encoding.Frequencies[i]/2)) {
			t.Errorf("frequency %d is %g after %g", i, f, before.Attention.Encoding.Frequencies[i])
		}
	}
	if len(now.Attention.Bands) != 2 || now.Cache != "fixed" {
		t.Errorf("the map is %v and the cache %s", now.Attention.Bands, now.Cache)
	}
	// Without base= nothing stacks, and what is left out is said.
	plain := rewritten(t, second, second+"2", rewrite.Options{Edits: []rope.Spec{must(rope.ParseSpec(rope.ScalingAxis, "linear:factor=2"))}})
	if now := inspected(t, second+"2"); now.Attention.Encoding.Frequencies[0] != 0.5 || len(now.Attention.Bands) > 0 || now.Cache != "growing" {
		t.Errorf("it is %+v", now.Attention)
	}
	if w := strings.Join(plain.Warnings, " "); !strings.Contains(w, "this rewrite removes the earlier methods: scaling yarn:factor=4, scaling linear:factor=2,base=carried, positions string:window=32, kv fixed:capacity=512,input=cache_length") {
		t.Errorf("the warnings are %s", w)
	}
}

func must[T any](x T, err error) T {
	if err != nil {
		panic(err)
	}
	return x
}

func inspected(t *testing.T, path string) rewrite.Site {
	t.Helper()
	m := must(onnx.Open(path))
	defer m.Close()
	report, err := rewrite.Inspect(context.Background(), m, rewrite.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return report.Sites[0]
}

// A record that does not describe the model, or is damaged, is refused, and so is what
// cannot be asked of a rewritten model.
func TestAgainRefuses(t *testing.T) {
	original := filepath.Join("..", "..", "..", "..", "testdata", "models", "llama__optimum", "model.onnx")
	dir := t.TempDir()
	patched := filepath.Join(dir, "patched.onnx")
	yarn := []rope.Spec{must(rope.ParseSpec(rope.ScalingAxis, "yarn:factor=4"))}
	rewritten(t, original, patched, rewrite.Options{Edits: yarn})
	some := rewrite.Options{Edits: yarn}
	record := func(change func(*provenance.Record)) func(*onnx.Model) {
		return func(m *onnx.Model) {
			r := must(provenance.Read(m))
			change(r)
			if err := provenance.Write(m, r); err != nil {
				t.Fatal(err)
			}
		}
	}
	text := func(old, new string) func(*onnx.Model) {
		return func(m *onnx.Model) {
			for key, value := range m.Metadata() {
				m.SetMetadata(key, strings.Replace(value, old, new, 1))
			}
		}
	}
	op := func(change func(n *onnx.Node)) func(*onnx.Model) {
		return func(m *onnx.Model) {
			for n := range m.Graph.AllNodes() {
				if n.OpType == "RotaryAttention" {
					change(n)
					return
				}
			}
		}
	}
	for want, c := range map[string]struct {
		change func(*onnx.Model)
		opts   rewrite.Options
	}{
		"give a method, or --restore":              {nil, rewrite.Options{}},
		"drop one of them":                         {nil, rewrite.Options{Earlier: rewrite.Earlier{Restore: true}, Edits: yarn}},
		"cannot leave the other layers":            {nil, rewrite.Options{Edits: yarn, Layers: func(int) bool { return true }}},
		"has no record":                            {func(m *onnx.Model) { m.RemoveMetadata(provenance.Key) }, some},
		"unexpected end of JSON input":             {func(m *onnx.Model) { m.SetMetadata(provenance.Key, "") }, some},
		"it has version 3":                         {text(`"version":2`, `"version":3`), some},
		"unknown field":                            {text(`"tool"`, `"took"`), some},
		"layer 0 is in it twice":                   {text(`"layers":[0,1],"nodes"`, `"layers":[0,0],"nodes"`), some},
		"and one with the number 7":                {text(`"layers":[0,1],"nodes"`, `"layers":[0,7],"nodes"`), some},
		"2 layers have 1 nodes":                    {record(func(r *provenance.Record) { r.Sites[0].Ops = r.Sites[0].Ops[:1] }), some},
		"an attention of 0 heads":                  {record(func(r *provenance.Record) { r.Sites[0].Original.Heads = 0 }), some},
		"is not the one that the model's record":   {record(func(r *provenance.Record) { r.Sites[0].Original.Heads = 8 }), some},
		"another program changed it":               {op(func(n *onnx.Node) { n.Name = "renamed" }), some},
		"it needs specification 99 of the op":      {op(func(n *onnx.Node) { n.SetAttribute(onnx.IntAttr("spec_version", 99)) }), some},
		"the model's record names 2 nodes":         {op(func(n *onnx.Node) { n.Domain = "com.example" }), some},
		"layout \"spiral\" is none of":             {text(`"layout":"half"`, `"layout":"spiral"`), some},
		"it has 9000012 bytes":                     {func(m *onnx.Model) { m.SetMetadata(provenance.Key, strings.Repeat(" ", 9000012)) }, some},
		"(4 heads, 2 for keys, 16 rotated channel": {record(func(r *provenance.Record) { r.Sites[0].Original.Encoding.Frequencies = []float64{1} }), some},
	} {
		m := must(onnx.Open(patched))
		if c.change != nil {
			c.change(m)
		}
		_, err := kit.Rewrite(context.Background(), m, c.opts)
		if err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "\n") {
			t.Errorf("error %v, want one sentence with %q", err, want)
		}
		m.Close()
	}
	m := must(onnx.Open(original))
	defer m.Close()
	if _, err := kit.Rewrite(context.Background(), m, rewrite.Options{Earlier: rewrite.Earlier{Restore: true}}); err == nil || !strings.Contains(err.Error(), "nothing to restore") {
		t.Errorf("an original is restored: %v", err)
	}
}
