package modelfolder_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/rope-rewrite/rope-rewrite/audit"
	"github.com/rope-rewrite/rope-rewrite/cmd/internal/modelfolder"
	"github.com/rope-rewrite/rope-rewrite/internal/modelfiles"
	"github.com/rope-rewrite/rope-rewrite/internal/testsample"
	"github.com/rope-rewrite/rope-rewrite/rewrite"
)

// audited audits the models of the folder that was written, and returns the gravest outcome.
func audited(t *testing.T, folder string) (reports []*audit.Report, gravest audit.Outcome) {
	t.Helper()
	paths, _, err := modelfiles.List(folder)
	if err != nil {
		t.Fatal(err)
	}
	gravest = audit.AllAgree
	for _, path := range paths {
		report, err := audit.Run(context.Background(), path, audit.Options{Rewrite: options(t)})
		if none := (*audit.NoConfigError)(nil); errors.As(err, &none) || errors.Is(err, rewrite.ErrNoAttention) {
			continue
		}
		if err != nil {
			t.Fatal(err)
		}
		reports = append(reports, report)
		if got := report.Outcome(); got == audit.SomeDiffer || gravest == audit.AllAgree {
			gravest = got
		}
	}
	return reports, gravest
}

// planned are the warnings where only a plan is asked for.
func planned(t *testing.T, folder string, opts rewrite.Options) []string {
	t.Helper()
	opts.PlanOnly = true
	f, err := modelfolder.Prepare(context.Background(), folder, opts)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	return f.Warnings
}

// changesOf lists what was changed in a configuration.
func changesOf(f *modelfolder.Folder, name string) string {
	var list []string
	for _, x := range f.Files {
		if x.Path == name {
			for _, c := range x.Changes {
				list = append(list, c.String())
			}
		}
	}
	return strings.Join(list, "\n")
}

// Optimum's SmolLM2 rotates with another base than its configuration names. What is written is what
// the graph has, or what the method gives it.
func TestBaseOfTheGraph(t *testing.T) {
	folder := t.TempDir()
	put(t, folder, "../smollm2/optimum/config.json", "../smollm2/optimum/model.onnx")
	write(t, folder, "model.onnx.data", "")
	if err := os.Truncate(filepath.Join(folder, "model.onnx.data"), 651165696); err != nil { // its weights are never read
		t.Fatal(err)
	}
	for method, want := range testsample.OfMap(t, map[string]string{
		"scaling yarn:factor=4": `max_position_embeddings 8192 → 32768
rope_parameters {"rope_theta":100000.0, "rope_type":"default"} → {"rope_type":"yarn", "factor":4, "original_max_position_embeddings":8192, "rope_theta":10000}`,
		"scaling yarn:factor=4,rope_theta=100000": `max_position_embeddings 8192 → 32768
rope_parameters {"rope_theta":100000.0, "rope_type":"default"} → {"rope_type":"yarn", "factor":4, "original_max_position_embeddings":8192, "rope_theta":1e5}
rope_theta 10000.0 → 100000`,
	}, 1) {
		output, f := rewritten(t, folder, options(t, method), modelfolder.WriteOptions{Link: true})
		if got := strings.ReplaceAll(changesOf(f, "config.json"), `"rope_theta":100000}`, `"rope_theta":1e5}`); got != want {
			t.Errorf("%s: changes\n%s\nwant\n%s", method, got, want)
		}
		if _, got := audited(t, output); got != audit.AllAgree {
			t.Errorf("%s: audit of the result: %s", method, got)
		}
		if len(f.Warnings) > 0 {
			t.Errorf("%s: %q", method, f.Warnings)
		}
	}
}

// flat is Gemma 3's configuration with one dictionary for all layers.
const flat = `{"model_type": "gemma3_text", "layer_types": ["sliding_attention", "full_attention"], "sliding_window": 8,
"max_position_embeddings": 64, "num_hidden_layers": 2, "rope_parameters": {"rope_type": "default", "rope_theta": 10000}}`

// A model of two bases is described where the configuration has a dictionary for each; where it has one for
// all, its key stays.
func TestTwoBases(t *testing.T) {
	for _, c := range []struct {
		name, config, method string
		changes              []string // of rope_parameters
		warnings             []string
		outcome              audit.Outcome
	}{
		{"by types", "", "scaling linear:factor=2@all", []string{
			`rope_parameters.full_attention {"rope_theta":10000.0, "rope_type":"default"} → {"rope_type":"linear", "factor":2, "rope_theta":10000}`,
			`rope_parameters.sliding_attention {"rope_theta":1000.0, "rope_type":"default"} → {"rope_type":"linear", "factor":2, "rope_theta":1000}`}, nil, audit.AllAgree},
		{"one type", "", "scaling linear:factor=2", []string{
			`rope_parameters.full_attention {"rope_theta":10000.0, "rope_type":"default"} → {"rope_type":"linear", "factor":2, "rope_theta":10000}`}, nil, audit.AllAgree},
		{"one for all", flat, "scaling linear:factor=2@all", nil, []string{
			"config.json: the scaling linear:factor=2 starts from several rope_theta (1000, 10000), but it has one for all layers, so its rotation is unchanged",
			"model.onnx: audit will exit with 5: config.json: rope_parameters.rope_theta says 10000, and rope_theta is 1000 in layers 0",
			"model.onnx: audit will exit with 5: config.json: rope_parameters says none, and rope_scaling is linear:factor=2 in layers 0-1"}, audit.SomeDiffer},
	} {
		folder := t.TempDir()
		put(t, folder, "gemma3_text__dynamo18/config.json", "gemma3_text__dynamo18/model.onnx")
		if c.config != "" {
			write(t, folder, "config.json", c.config)
		}
		output, f := rewritten(t, folder, options(t, c.method), modelfolder.WriteOptions{})
		var got []string
		for line := range strings.SplitSeq(changesOf(f, "config.json"), "\n") {
			if strings.HasPrefix(line, "rope_parameters") {
				got = append(got, line)
			}
		}
		if !slices.Equal(got, c.changes) {
			t.Errorf("%s: changes\n%s\nwant\n%s", c.name, strings.Join(got, "\n"), strings.Join(c.changes, "\n"))
		}
		if !slices.Equal(f.Warnings, c.warnings) {
			t.Errorf("%s: warnings\n%s\nwant\n%s", c.name, strings.Join(f.Warnings, "\n"), strings.Join(c.warnings, "\n"))
		}
		if planned := planned(t, folder, options(t, c.method)); !slices.Equal(planned, c.warnings) {
			t.Errorf("%s: where nothing is written, warnings\n%s\nwant\n%s", c.name, strings.Join(planned, "\n"), strings.Join(c.warnings, "\n"))
		}
		if _, got := audited(t, output); got != c.outcome {
			t.Errorf("%s: audit of the result: %s, want %s", c.name, got, c.outcome)
		}
	}
}

// Whatever is asked for, audit finds nothing in the new folder that a warning did not foretell.
func TestAuditIsForetold(t *testing.T) {
	type one struct{ model, method string }
	var cases []one
	for at, model := range []string{"llama__dynamo18", "gemma3_text__dynamo18", "gpt_neox__dynamo23", "qwen3__dynamo23", "llama__genai-fp32"} {
		for i, method := range []string{
			"", "scaling yarn:factor=4", "scaling yarn:factor=4@all", "scaling linear:factor=2@0", "scaling theta:rope_theta=5000", "scaling theta:rope_theta=5000@1",
			"scaling dynamic:factor=2,length=run", "scaling llama3:factor=8,low_freq_factor=1,high_freq_factor=4", "scaling ntk:alpha=2", "scaling yarn:factor=2,ramp=ratio",
			"mask sliding-window:window=4", "mask sliding-window:window=4@0", "mask first-keys:count=1,window=4", "positions string:shift=21,window=4",
		} {
			if at == 0 || i%3 == at%3 { // the first model is tried with all methods, others with a third each
				cases = append(cases, one{model, method})
			}
		}
	}
	agree, differ := 0, 0
	for _, c := range testsample.Of(t, cases, 8) {
		folder := t.TempDir()
		put(t, folder, c.model+"/config.json", c.model+"/model.onnx")
		if strings.Contains(c.model, "genai") {
			put(t, folder, c.model+"/genai_config.json")
		}
		opts := options(t)
		if c.method != "" {
			opts = options(t, c.method)
		}
		output, f := rewritten(t, folder, opts, modelfolder.WriteOptions{})
		said := slices.ContainsFunc(f.Warnings, func(w string) bool { return strings.Contains(w, "audit will exit with 5") })
		if _, got := audited(t, output); got != audit.AllAgree && got != audit.SomeDiffer || said != (got == audit.SomeDiffer) {
			t.Errorf("%s, %s: audit of the result: %s; foretold: %q", c.model, c.method, got, f.Warnings)
		} else if said {
			differ++
		} else {
			agree++
		}
	}
	t.Logf("%d folders agree with their configurations, and of %d a warning says what differs", agree, differ)
}

// A configuration comes back to the byte, however it is written.
func TestRestoredToTheByte(t *testing.T) {
	folder := t.TempDir()
	put(t, folder, "llama__genai-fp32/model.onnx")
	for name, files := range map[string][2]string{
		"by hand": {`{"rope_scaling" : { "type":"linear" ,"factor" : 1.0 }, "max_position_embeddings": 64,` + "\r\n  \"note\": \"<&>\" }\r\n",
			`{ "model" : {"context_length" :  64, "decoder": { "filename": "model.onnx" } } ,` + "\n" + `"search": {"max_length": 64 , "past_present_share_buffer": true}}`},
		"on one line": {`{"max_position_embeddings":64,"rope_theta":1e4}`,
			`{"model":{"context_length":64,"decoder":{"filename":"model.onnx","session_options":{"custom_ops_library":"a\u002eso"}}},"search":{"max_length":64}}`},
	} {
		write(t, folder, "config.json", files[0])
		write(t, folder, "genai_config.json", files[1])
		changed, _ := rewritten(t, folder, options(t, "scaling yarn:factor=4", "mask sliding-window:window=9"), modelfolder.WriteOptions{})
		if read(t, changed, "config.json") == files[0] || read(t, changed, "genai_config.json") == files[1] {
			t.Errorf("%s: a configuration is unchanged", name)
		}
		back := options(t)
		back.Target = rewrite.PlainONNX // which needs no library in genai_config.json
		back.Earlier.Restore = true
		restored, _ := rewritten(t, changed, back, modelfolder.WriteOptions{})
		for i, file := range []string{"config.json", "genai_config.json"} {
			if got := read(t, restored, file); got != files[i] {
				t.Errorf("%s: %s came back as\n%q\nwant\n%q", name, file, got, files[i])
			}
		}
	}
}

// A configuration that cannot be read is not called missing.
func TestUnreadConfiguration(t *testing.T) {
	for text, why := range map[string]string{
		`{"max_position_embeddings": 64,}`:      "invalid character '}' looking for beginning of object key string",
		`{"max_position_embeddings": "many"}`:   "cannot unmarshal string into Go struct field",
		``:                                      "unexpected end of JSON input",
		`{"x": Infinity}`:                       "invalid character 'I' looking for beginning of value",
		"\xef\xbb\xbf{}":                        "invalid character 'ï' looking for beginning of value",
		strings.Repeat(" ", 5<<20) + `{"x": 1}`: "has more than 4 MiB",
	} {
		folder := t.TempDir()
		put(t, folder, "llama__dynamo18/model.onnx")
		write(t, folder, "config.json", text)
		f, err := modelfolder.Prepare(context.Background(), folder, options(t, "scaling yarn:factor=4"))
		if err == nil {
			f.Close()
			t.Errorf("%.40q: no error", text)
			continue
		}
		for _, want := range []string{"the trained context is unknown: the model's configuration cannot be read", "config.json", why, "correct it, or give original_max_position_embeddings="} {
			if !strings.Contains(err.Error(), want) {
				t.Errorf("%.40q: %v, want %s", text, err, want)
			}
		}
		output, f := rewritten(t, folder, options(t, "scaling yarn:factor=4,original_max_position_embeddings=64"), modelfolder.WriteOptions{})
		warned := strings.Join(f.Warnings, "\n")
		if !strings.Contains(warned, "config.json: it cannot be read") || !strings.Contains(warned, why) {
			t.Errorf("%.40q: warnings %q", text, warned)
		}
		if read(t, output, "config.json") != text {
			t.Errorf("%.40q: it was changed", text)
		}
		byType := options(t)
		byType.LayerEdits = []rewrite.LayerEdit{{Spec: options(t, "scaling linear:factor=2").Edits[0], Type: "full_attention", Where: "full_attention layers"}}
		if f, err = modelfolder.Prepare(context.Background(), folder, byType); err == nil || !strings.Contains(err.Error(), "the configuration that names them cannot be read") {
			t.Errorf("%.40q, by types: %v", text, err)
		}
		if f != nil {
			f.Close()
		}
	}
}

// A genai_config.json above the folder onnx counts in the audit of the new models.
func TestAuditOfAHostAboveIsForetold(t *testing.T) {
	folder := above(t, "onnx/model.onnx")
	write(t, folder, "genai_config.json", strings.Replace(read(t, folder, "genai_config.json"), `"head_size": 16`, `"head_size": 32`, 1))
	_, f := rewritten(t, folder, options(t, "scaling linear:factor=2"), modelfolder.WriteOptions{})
	if len(f.Warnings) != 1 || !strings.HasPrefix(f.Warnings[0], "onnx/model.onnx: audit will exit with 5: genai_config.json: ") {
		t.Errorf("warnings %q", f.Warnings)
	}
}
