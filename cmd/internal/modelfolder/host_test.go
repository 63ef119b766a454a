package modelfolder_test

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/rope-rewrite/rope-rewrite/cmd/internal/modelfolder"
	"github.com/rope-rewrite/rope-rewrite/customop"
	"github.com/rope-rewrite/rope-rewrite/internal/testruntime"
	"github.com/rope-rewrite/rope-rewrite/rewrite"
)

// ownOps is a GenAI folder whose configuration names an op library of its own.
func ownOps(t *testing.T) string {
	t.Helper()
	folder := filepath.Join(t.TempDir(), "genai")
	put(t, folder, "llama__genai-fp32/config.json", "llama__genai-fp32/genai_config.json", "llama__genai-fp32/model.onnx")
	text := read(t, folder, "genai_config.json")
	changed := strings.Replace(text, `"log_id": "onnxruntime-genai",`, `"log_id": "onnxruntime-genai",`+"\n"+`                "custom_ops_library": "libtheirs.so",`, 1)
	if changed == text {
		t.Fatal("the configuration has no log_id")
	}
	write(t, folder, "genai_config.json", changed)
	write(t, folder, "libtheirs.so", "theirs")
	return folder
}

// The user's own op library stays. The model runs on its fallback in GenAI, and ours lies beside it.
func TestOwnLibraryStays(t *testing.T) {
	folder := ownOps(t)
	output, f := rewritten(t, folder, options(t, "scaling linear:factor=2"), modelfolder.WriteOptions{})
	if got, want := changesOf(f, "genai_config.json"), "model.context_length 64 → 128\nsearch.max_length 64 → 128"; got != want {
		t.Errorf("changes %s, want %s", got, want)
	}
	for name, want := range map[string]bool{"libtheirs.so": true, customop.LibraryFile(): true} {
		if _, err := os.Stat(filepath.Join(output, name)); (err == nil) != want {
			t.Errorf("%s: %v", name, err)
		}
	}
	warned := strings.Join(f.Warnings, "\n")
	if !strings.Contains(warned, "genai_config.json: it already names an op library, libtheirs.so, which stays") {
		t.Errorf("warnings %q", warned)
	}
	if len(warned) > 640 {
		t.Errorf("the warning has %d characters, which a screen shortens", len(warned))
	}
	runs(t, output, warned)

	again, _ := rewritten(t, output, options(t, "scaling linear:factor=4"), modelfolder.WriteOptions{})
	back := options(t)
	back.Earlier.Restore = true
	restored, _ := rewritten(t, again, back, modelfolder.WriteOptions{})
	if a, b := read(t, folder, "genai_config.json"), read(t, restored, "genai_config.json"); a != b {
		t.Errorf("taken back, it is\n%s\nwant\n%s", b, a)
	}
}

// runs runs the lines of a warning, in Python and in C, in the new folder.
func runs(t *testing.T, folder, warning string) {
	t.Helper()
	var python, c string
	for _, word := range strings.Fields(warning) {
		switch {
		case strings.HasPrefix(word, "options."):
			python = word
		case strings.HasPrefix(word, "api->"):
			c = word
		}
	}
	runtime, _ := testruntime.Paths(t)
	run := func(name string, args ...string) {
		t.Helper()
		cmd := exec.Command(name, args...)
		cmd.Dir, cmd.Env = folder, append(os.Environ(), "LD_LIBRARY_PATH="+filepath.Dir(runtime), "ORT_DISABLE_TELEMETRY=1")
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Errorf("%s: %v\n%s", name, err, out)
		}
	}
	headers, err := exec.Command("go", "list", "-m", "-f", "{{.Dir}}", "github.com/yalue/onnxruntime_go").Output()
	if err != nil {
		t.Fatal(err)
	}
	program := fmt.Sprintf(`#include <stdio.h>
#include <onnxruntime_c_api.h>
#define CHECK(call) do { OrtStatus* s = (call); if (s) { fprintf(stderr, "%%s\n", api->GetErrorMessage(s)); return 1; } } while (0)
int main(void) {
  const OrtApi* api = OrtGetApiBase()->GetApi(ORT_API_VERSION);
  OrtEnv* env; OrtSessionOptions* options; OrtSession* session; OrtStatus* status;
  CHECK(api->CreateEnv(ORT_LOGGING_LEVEL_WARNING, "x", &env));
  CHECK(api->CreateSessionOptions(&options));
  status = %s
  CHECK(status);
  CHECK(api->CreateSession(env, "model.onnx", options, &session));
  return 0;
}
`, c)
	write(t, folder, "program.c", program)
	run("gcc", "-Wall", "-Werror", "-I", strings.TrimSpace(string(headers)), "program.c", "-o", "program", "-L", filepath.Dir(runtime), "-lonnxruntime")
	run("./program")
	if err := exec.Command("python3", "-c", "import onnxruntime").Run(); err != nil {
		t.Log("the line in Python is not run: python3 has no onnxruntime")
	} else {
		run("python3", "-c", "import onnxruntime\noptions = onnxruntime.SessionOptions()\n"+python+"\nonnxruntime.InferenceSession('model.onnx', options)")
	}
	if python == "" {
		t.Errorf("there is no line in Python: %s", warning)
	}
}

// Without a fallback the model would not run in GenAI, which loads one library.
func TestOwnLibraryNeedsAFallback(t *testing.T) {
	folder := ownOps(t)
	opts := options(t, "scaling linear:factor=2")
	opts.Output.NoFallback = true
	f, err := modelfolder.Prepare(context.Background(), folder, opts)
	if err == nil {
		f.Close()
		t.Fatal("no error")
	}
	for _, want := range []string{"genai_config.json: it already names an op library, libtheirs.so", "leave out --fallback none, or give --target onnx"} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %s", err, want)
		}
	}
	opts.Target = rewrite.PlainONNX // as the error says
	output, f := rewritten(t, folder, opts, modelfolder.WriteOptions{})
	if len(f.Warnings) > 0 {
		t.Errorf("warnings %q", f.Warnings)
	}
	if got := read(t, output, "genai_config.json"); !strings.Contains(got, `"custom_ops_library": "libtheirs.so"`) {
		t.Error(got)
	}
	if _, err := os.Stat(filepath.Join(output, customop.LibraryFile())); err == nil {
		t.Error("the op library is there, and nothing needs it")
	}
}

// above is a GenAI folder as model hubs have it: genai_config.json names a decoder in the folder onnx.
func above(t *testing.T, decoder string) string {
	t.Helper()
	folder := filepath.Join(t.TempDir(), "hub")
	put(t, folder, "llama__genai-fp32/config.json", "llama__genai-fp32/genai_config.json", "llama__genai-fp32/model.onnx as onnx/model.onnx", "llama__genai-fp16/model.onnx as onnx/model_fp16.onnx")
	write(t, folder, "genai_config.json", strings.Replace(read(t, folder, "genai_config.json"), `"filename": "model.onnx"`, `"filename": "`+decoder+`"`, 1))
	return folder
}

// GenAI looks for the decoder and for the op library from the folder of genai_config.json.
func TestHostAboveItsDecoder(t *testing.T) {
	output, f := rewritten(t, above(t, "onnx/model.onnx"), options(t, "scaling linear:factor=2"), modelfolder.WriteOptions{})
	want := fmt.Sprintf("model.decoder.session_options.custom_ops_library %q\nmodel.context_length 64 → 128\nsearch.max_length 64 → 128", customop.LibraryFile())
	if got := changesOf(f, "genai_config.json"); got != want {
		t.Errorf("changes\n%s\nwant\n%s", got, want)
	}
	for name, want := range map[string]bool{customop.LibraryFile(): true, "onnx/" + customop.LibraryFile(): false} {
		if _, err := os.Stat(filepath.Join(output, name)); (err == nil) != want {
			t.Errorf("%s: %v", name, err)
		}
	}
	if len(f.Warnings) > 0 {
		t.Errorf("warnings %q", f.Warnings)
	}
	reports, _ := audited(t, output)
	for _, m := range reports {
		of := filepath.Base(m.Model) == "model.onnx"
		if got := strings.Contains(strings.Join(m.Configs, " "), "genai_config.json"); got != of {
			t.Errorf("%s: audit reads %q", m.Model, m.Configs)
		}
	}
}

// What genai_config.json says of a file that the folder does not have stays.
func TestHostOfNoDecoder(t *testing.T) {
	_, f := rewritten(t, above(t, "model.onnx"), options(t, "scaling linear:factor=2"), modelfolder.WriteOptions{})
	if got := changesOf(f, "genai_config.json"); got != "" {
		t.Errorf("changes %s", got)
	}
	if want := "genai_config.json: it names model.onnx, which is not in the folder; it is left unchanged"; !slices.Contains(f.Warnings, want) {
		t.Errorf("warnings %q, want %q", f.Warnings, want)
	}
}

// A model with inputs that GenAI does not feed is refused, and one whose new input has a value of its own is not.
func TestNotRunByGenAI(t *testing.T) {
	type change func(*rewrite.Options)
	for name, c := range map[string]struct {
		model  string
		method string
		change change
		want   string // "" is no error
	}{
		"documents":   {"llama__genai-fp32", "mask intra-document", func(o *rewrite.Options) { o.Documents.Input = "ids" }, "does not feed the new input ids; leave out --documents or"},
		"int8 cache":  {"llama__dynamo18", "", func(o *rewrite.Options) { o.Cache.Type = "int8" }, "the scales of the caches; leave out type=int8 or"},
		"fixed cache": {"llama__dynamo18", "", func(o *rewrite.Options) { o.Cache.Capacity = 64 }, "does not feed the new input cache_length; leave out --kv or"},
		"logits":      {"llama__genai-fp32", "", func(o *rewrite.Options) { o.LogitsPlaces = "places" }, ""},
		"raw cache":   {"llama__dynamo18", "", func(o *rewrite.Options) { o.Cache.Raw = true }, ""},
	} {
		folder := t.TempDir()
		put(t, folder, c.model+"/config.json", "llama__genai-fp32/genai_config.json", c.model+"/model.onnx")
		opts := options(t)
		if c.method != "" {
			opts = options(t, c.method)
		}
		c.change(&opts)
		f, err := modelfolder.Prepare(context.Background(), folder, opts)
		if f != nil {
			f.Close()
		}
		if said := fmt.Sprint(err); (err == nil) != (c.want == "") || !strings.Contains(said, c.want) {
			t.Errorf("%s: %v, want %q", name, err, c.want)
		}
		if err == nil {
			continue
		}
		if err := os.Remove(filepath.Join(folder, "genai_config.json")); err != nil { // as the error says
			t.Fatal(err)
		}
		if f, err = modelfolder.Prepare(context.Background(), folder, opts); err != nil {
			t.Errorf("%s, without genai_config.json: %v", name, err)
			continue
		}
		f.Close()
	}
}
