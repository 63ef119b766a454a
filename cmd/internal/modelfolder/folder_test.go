package modelfolder_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"google.golang.org/protobuf/proto"

	"github.com/rope-rewrite/rope-rewrite/cmd/internal/modelfolder"
	"github.com/rope-rewrite/rope-rewrite/customop"
	"github.com/rope-rewrite/rope-rewrite/internal/engine"
	"github.com/rope-rewrite/rope-rewrite/internal/modelconfig"
	"github.com/rope-rewrite/rope-rewrite/internal/testruntime"
	"github.com/rope-rewrite/rope-rewrite/onnx"
	"github.com/rope-rewrite/rope-rewrite/onnx/onnxpb"
	"github.com/rope-rewrite/rope-rewrite/provenance"
	"github.com/rope-rewrite/rope-rewrite/rewrite"
	"github.com/rope-rewrite/rope-rewrite/rope"
)

func TestMain(m *testing.M) {
	engine.ServeIfWorker()
	testruntime.Examples()
	os.Exit(m.Run())
}

const models = "../../../testdata/models"

// options rewrite with methods: "scaling linear:factor=2", with "@0" of one layer and with "@all" of all.
func options(t *testing.T, methods ...string) rewrite.Options {
	t.Helper()
	runtime, library := testruntime.Paths(t)
	o := rewrite.Options{Evaluation: rewrite.Evaluation{Runtime: runtime, Library: library, Worker: []string{os.Args[0]}}}
	for _, text := range methods {
		name, spec, _ := strings.Cut(text, " ")
		axis := map[string]rope.Axis{"scaling": rope.ScalingAxis, "positions": rope.PositionsAxis, "mask": rope.MaskAxis}[name]
		spec, where, some := strings.Cut(spec, "@")
		s, err := rope.ParseSpec(axis, spec)
		if err != nil {
			t.Fatal(err)
		}
		if some {
			e := rewrite.AllLayers(s)
			if where != "all" {
				e.Layers, e.Where = func(i int) bool { return fmt.Sprint(i) == where }, "layers "+where
			}
			o.LayerEdits = append(o.LayerEdits, e)
			continue
		}
		o.Edits = append(o.Edits, s)
	}
	return o
}

// put copies files into a folder: "name" or "name as path".
func put(t *testing.T, folder string, files ...string) {
	t.Helper()
	for _, f := range files {
		from, to, renamed := strings.Cut(f, " as ")
		if !renamed {
			to = filepath.Base(from)
		}
		data, err := os.ReadFile(filepath.Join(models, from))
		if err != nil {
			t.Fatal(err)
		}
		write(t, folder, to, string(data))
	}
}

func write(t *testing.T, folder, name, text string) {
	t.Helper()
	file := filepath.Join(folder, filepath.FromSlash(name))
	if err := os.MkdirAll(filepath.Dir(file), 0o777); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, []byte(text), 0o666); err != nil {
		t.Fatal(err)
	}
}

func read(t *testing.T, folder, name string) string {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(folder, filepath.FromSlash(name)))
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

// hub is a folder as a model hub has them: several forms of a model in a folder of their own, one
// model that turns nothing, large files and small ones.
func hub(t *testing.T) string {
	t.Helper()
	folder := filepath.Join(t.TempDir(), "hub")
	put(t, folder, "llama__dynamo18/config.json", "llama__dynamo18/model.onnx as onnx/model.onnx", "llama__dynamo18-fp16/model.onnx as onnx/model_fp16.onnx")
	write(t, folder, "tokenizer.json", strings.Repeat(" ", 1<<20)+"{}")
	write(t, folder, "generation_config.json", "{}")
	write(t, folder, "other/config.json", `{"max_position_embeddings": 5}`)
	write(t, folder, ".git/config", "hidden")
	m := onnx.New()
	m.RequireOpset("", 18)
	if err := m.Save(filepath.Join(folder, "onnx", "nothing.onnx"), onnx.SaveOptions{}); err != nil {
		t.Fatal(err)
	}
	return folder
}

// rewritten rewrites a folder beside it.
func rewritten(t *testing.T, folder string, opts rewrite.Options, how modelfolder.WriteOptions) (string, *modelfolder.Folder) {
	t.Helper()
	f, err := modelfolder.Prepare(context.Background(), folder, opts)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { f.Close() })
	output := filepath.Join(t.TempDir(), "new")
	if err := f.Write(context.Background(), output, how); err != nil {
		t.Fatal(err)
	}
	return output, f
}

func what(f *modelfolder.Folder) string {
	var list []string
	for _, x := range f.Files {
		list = append(list, x.Path+" "+string(x.What))
	}
	return strings.Join(list, "\n")
}

func methodOf(t *testing.T, file string) string {
	t.Helper()
	m, err := onnx.Open(file)
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close()
	r, err := provenance.Read(m)
	if err != nil {
		t.Fatal(err)
	}
	var list []string
	for _, e := range r.Edits {
		list = append(list, e.String())
	}
	return strings.Join(list, ", ")
}

func TestFolder(t *testing.T) {
	folder := hub(t)
	output, f := rewritten(t, folder, options(t, "scaling linear:factor=2"), modelfolder.WriteOptions{})
	want := `config.json configured
generation_config.json copied
onnx/model.onnx rewritten
onnx/model_fp16.onnx rewritten
onnx/nothing.onnx copied
other/config.json copied
rope_rewrite.json added
tokenizer.json copied`
	if got := strings.ReplaceAll(what(f), " cloned", " copied"); got != want {
		t.Errorf("it became\n%s\nwant\n%s", got, want)
	}
	if got := strings.Join(f.Left, " "); got != ".git" {
		t.Errorf("left out: %s", got)
	}
	for _, name := range []string{"onnx/model.onnx", "onnx/model_fp16.onnx"} {
		if got := methodOf(t, filepath.Join(output, name)); got != "scaling linear:factor=2, angles exact" {
			t.Errorf("%s has %s", name, got)
		}
	}
	config := modelconfig.ReadFile(filepath.Join(output, "config.json"))
	if got := config.Positions().Value; got != 128 {
		t.Errorf("max_position_embeddings is %g", got)
	}
	if got := config.Rotation(0).Scaling.String(); got != "linear:factor=2" {
		t.Errorf("config.json says %s", got)
	}
	if got := read(t, folder, "config.json"); got != read(t, models, "llama__dynamo18/config.json") {
		t.Error("the original's config.json was changed")
	}
}

// Large files are copied, the weights of a model among them, whether they come before or after it; a link
// is made where it is asked for.
func TestWeights(t *testing.T) {
	folder := t.TempDir()
	put(t, folder, "llama__dynamo18/model.onnx as inside.onnx", "llama__dynamo18/config.json")
	outside(t, filepath.Join(folder, "inside.onnx"), filepath.Join(folder, "model.onnx"), "a.bin", "z.bin")
	if err := os.Remove(filepath.Join(folder, "inside.onnx")); err != nil {
		t.Fatal(err)
	}
	write(t, folder, "tokenizer.json", strings.Repeat(" ", 1<<20)+"{}")
	f, err := modelfolder.Prepare(context.Background(), folder, options(t))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	for name, link := range map[string]bool{"copied": false, "linked": true} {
		output := filepath.Join(t.TempDir(), "new")
		if err := f.Write(context.Background(), output, modelfolder.WriteOptions{Link: link}); err != nil {
			t.Fatal(err)
		}
		want := fmt.Sprintf("a.bin %[1]s\nconfig.json copied\nmodel.onnx rewritten\nrope_rewrite.json added\ntokenizer.json %[1]s\nz.bin %[1]s", name)
		if got := strings.ReplaceAll(what(f), " cloned", " copied"); got != want {
			t.Errorf("it became\n%s\nwant\n%s", got, want)
		}
		for _, file := range []string{"a.bin", "tokenizer.json", "z.bin"} {
			x, errX := os.Stat(filepath.Join(folder, file))
			y, errY := os.Stat(filepath.Join(output, file))
			if errX != nil || errY != nil || os.SameFile(x, y) != link {
				t.Errorf("%s, %s: %v, %v, one file: %v", name, file, errX, errY, os.SameFile(x, y))
			}
			if read(t, folder, file) != read(t, output, file) {
				t.Errorf("%s: %s differs", name, file)
			}
		}
	}
}

// outside puts the contents of a model's large weights into files beside it, by turns.
func outside(t *testing.T, from, to string, files ...string) {
	t.Helper()
	data, err := os.ReadFile(from)
	if err != nil {
		t.Fatal(err)
	}
	m := new(onnxpb.ModelProto)
	if err := proto.Unmarshal(data, m); err != nil {
		t.Fatal(err)
	}
	contents := make([][]byte, len(files))
	for i, w := range m.Graph.Initializer {
		if len(w.RawData) <= 4096 {
			continue
		}
		k := i % len(files)
		for key, value := range map[string]string{"location": files[k], "offset": fmt.Sprint(len(contents[k])), "length": fmt.Sprint(len(w.RawData))} {
			w.ExternalData = append(w.ExternalData, &onnxpb.StringStringEntryProto{Key: &key, Value: &value})
		}
		contents[k] = append(contents[k], w.RawData...)
		w.RawData, w.DataLocation = nil, onnxpb.TensorProto_EXTERNAL.Enum()
	}
	if data, err = proto.Marshal(m); err != nil {
		t.Fatal(err)
	}
	write(t, filepath.Dir(to), filepath.Base(to), string(data))
	for k, name := range files {
		write(t, filepath.Dir(to), name, string(contents[k]))
	}
}

// A folder that is rewritten again becomes what the original becomes, and its configurations can be
// taken back to the byte.
func TestAgain(t *testing.T) {
	folder := hub(t)
	first, _ := rewritten(t, folder, options(t, "scaling linear:factor=2"), modelfolder.WriteOptions{})
	yarn := options(t, "scaling yarn:factor=4", "mask sliding-window:window=9")
	direct, _ := rewritten(t, folder, yarn, modelfolder.WriteOptions{})
	second, _ := rewritten(t, first, yarn, modelfolder.WriteOptions{})
	for _, name := range []string{"config.json", "rope_rewrite.json"} {
		if a, b := read(t, direct, name), read(t, second, name); a != b {
			t.Errorf("%s of the folder that was rewritten twice:\n%s\nof the other\n%s", name, b, a)
		}
	}
	if got := methodOf(t, filepath.Join(second, "onnx/model.onnx")); got != "scaling yarn:factor=4, mask sliding-window:window=9, angles exact" {
		t.Errorf("its model has %s", got)
	}
	back := options(t)
	back.Earlier.Restore = true
	third, _ := rewritten(t, second, back, modelfolder.WriteOptions{})
	if a, b := read(t, folder, "config.json"), read(t, third, "config.json"); a != b {
		t.Errorf("taken back, config.json is\n%s\nwant\n%s", b, a)
	}
}

// Half of the models of a folder were patched, and its configuration speaks of these: the
// others still start from what the original was trained for.
func TestHalfPatched(t *testing.T) {
	folder := hub(t)
	half, _ := rewritten(t, folder, options(t, "scaling linear:factor=2"), modelfolder.WriteOptions{})
	put(t, half, "llama__dynamo18-fp16/model.onnx as onnx/model_fp16.onnx") // as it was
	output, f := rewritten(t, half, options(t, "scaling yarn:factor=2"), modelfolder.WriteOptions{})
	for _, x := range f.Files {
		if x.Report == nil {
			continue
		}
		for _, w := range x.Report.Warnings {
			if strings.Contains(w, "names a scaling") {
				t.Errorf("%s: %s", x.Path, w)
			}
		}
		if got := x.Report.Record.Edits[0].Setting("original_max_position_embeddings").Integer(); got != 64 {
			t.Errorf("%s: YaRN starts from %d tokens", x.Path, got)
		}
	}
	if got := modelconfig.ReadFile(filepath.Join(output, "config.json")).Positions().Value; got != 128 {
		t.Errorf("max_position_embeddings is %g", got)
	}
}

// What ONNX Runtime GenAI reads.
func TestHost(t *testing.T) {
	for _, c := range []struct {
		name    string
		edit    func(*rewrite.Options)
		changes string
		library bool
	}{
		{"ops", func(*rewrite.Options) {}, `model.decoder.session_options.custom_ops_library "LIB"; model.context_length 64 → 128; search.max_length 64 → 128`, true},
		{"contrib", func(o *rewrite.Options) { o.Target = rewrite.Contrib }, `model.context_length 64 → 128; search.max_length 64 → 128`, false},
	} {
		folder := filepath.Join(t.TempDir(), "genai")
		put(t, folder, "llama__genai-fp32/config.json", "llama__genai-fp32/genai_config.json", "llama__genai-fp32/model.onnx")
		opts := options(t, "scaling linear:factor=2")
		c.edit(&opts)
		output, f := rewritten(t, folder, opts, modelfolder.WriteOptions{})
		var changes []string
		for _, x := range f.Files {
			if x.Path == "genai_config.json" {
				for _, change := range x.Changes {
					changes = append(changes, change.String())
				}
			}
		}
		if got, want := strings.Join(changes, "; "), strings.ReplaceAll(c.changes, "LIB", customop.LibraryFile()); got != want {
			t.Errorf("%s: %s, want %s", c.name, got, want)
		}
		if _, err := os.Stat(filepath.Join(output, customop.LibraryFile())); (err == nil) != c.library {
			t.Errorf("%s: the library: %v", c.name, err)
		}
		back := options(t)
		back.Earlier.Restore = true
		if !c.library { // GroupQueryAttention is not rewritten again
			continue
		}
		back.Output.NoFallback = true
		third, _ := rewritten(t, output, back, modelfolder.WriteOptions{})
		if got := read(t, third, "genai_config.json"); !strings.Contains(got, `"context_length": 64`) {
			t.Errorf("%s, taken back: %s", c.name, got)
		}
	}
}

// A cache that grows is not shared between past and present.
func TestHostOfAGrowingCache(t *testing.T) {
	folder := filepath.Join(t.TempDir(), "genai")
	put(t, folder, "llama__dynamo18/config.json", "llama__genai-fp32/genai_config.json", "llama__dynamo18/model.onnx")
	output, _ := rewritten(t, folder, options(t), modelfolder.WriteOptions{})
	if got := read(t, output, "genai_config.json"); !strings.Contains(got, `"past_present_share_buffer": false`) || !strings.Contains(got, `"context_length": 64`) {
		t.Error(got)
	}
}

// Nothing is written that would be wrong or lose something.
func TestRefused(t *testing.T) {
	folder := hub(t)
	f, err := modelfolder.Prepare(context.Background(), folder, options(t))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	home := t.TempDir()
	full := filepath.Join(home, "full")
	write(t, full, "precious.txt", "x")
	write(t, home, "file", "x")
	for output, want := range map[string]string{
		folder:                                "originals are never changed",
		filepath.Join(folder, "new"):          "originals are never changed",
		full:                                  "exists; give --force",
		filepath.Join(home, "file"):           "is not a folder; a model folder is written to a folder",
		filepath.Join(home, "nowhere", "new"): "is not a folder; make it first",
	} {
		if err := f.Write(context.Background(), output, modelfolder.WriteOptions{}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %s", output, err, want)
		}
	}
	if err := f.Write(context.Background(), full, modelfolder.WriteOptions{Force: true}); err == nil || !strings.Contains(err.Error(), "precious.txt would be lost") {
		t.Errorf("a file that is not written anew: %v", err)
	}
	ended, end := context.WithCancel(context.Background())
	end()
	if err := f.Write(ended, filepath.Join(home, "new"), modelfolder.WriteOptions{}); !errors.Is(err, context.Canceled) {
		t.Errorf("interrupted: %v", err)
	}
	left, err := filepath.Glob(filepath.Join(home, "*"))
	if hidden, _ := filepath.Glob(filepath.Join(home, ".*part*")); err != nil || len(left) != 2 || hidden != nil {
		t.Errorf("left there: %q %q %v", left, hidden, err)
	}
	if err := f.Write(context.Background(), filepath.Join(home, "new"), modelfolder.WriteOptions{}); err != nil {
		t.Errorf("after an interruption: %v", err)
	}
	write(t, home, "new/config.json", "damaged")
	if err := f.Write(context.Background(), filepath.Join(home, "new"), modelfolder.WriteOptions{Force: true}); err != nil {
		t.Errorf("replaced: %v", err)
	}
	if got := read(t, home, "new/config.json"); got == "damaged" {
		t.Error("the folder was not replaced")
	}
}

func TestPrepareRefuses(t *testing.T) {
	for name, c := range map[string]struct {
		put  func(folder string)
		want string
	}{
		"no model":       {func(f string) { write(t, f, "a.txt", "x") }, "no model with rotary attention"},
		"a broken model": {func(f string) { write(t, f, "a/b.onnx", "") }, "a/b.onnx: "},
		"a broken link":  {func(f string) { _ = os.Symlink("nowhere", filepath.Join(f, "x")) }, "a link to a file that does not exist"},
		"a newer record": {func(f string) { write(t, f, "rope_rewrite.json", `{"version": 99}`) }, "has version 99"},
		"another record": {func(f string) { write(t, f, "rope_rewrite.json", `[]`) }, "is not a record of an earlier rewrite"},
	} {
		folder := t.TempDir()
		c.put(folder)
		if f, err := modelfolder.Prepare(context.Background(), folder, options(t)); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %s", name, err, c.want)
			if f != nil {
				f.Close()
			}
		}
	}
}

// An error of a model names it once.
func TestErrorsNameTheModel(t *testing.T) {
	for _, c := range []struct {
		name, weights, method, want string
	}{
		{"no model", "", "", "model.onnx: this is an empty file"},
		{"weights that are missing", "weights.bin", "", `tensor "model.embed_tokens.weight": external data "weights.bin" is missing beside `},
		{"a method that does not fit", "", "mask anchor", "model.onnx: layer 0: the mask uses document ids"},
	} {
		folder := t.TempDir()
		var methods []string
		switch {
		case c.method != "":
			put(t, folder, "llama__optimum/model.onnx")
			methods = append(methods, c.method)
		case c.weights != "":
			outside(t, filepath.Join(models, "llama__optimum/model.onnx"), filepath.Join(folder, "model.onnx"), c.weights)
			if err := os.Remove(filepath.Join(folder, c.weights)); err != nil {
				t.Fatal(err)
			}
		default:
			write(t, folder, "model.onnx", "")
		}
		f, err := modelfolder.Prepare(context.Background(), folder, options(t, methods...))
		if err == nil {
			f.Close()
			t.Errorf("%s: no error", c.name)
			continue
		}
		text := strings.TrimPrefix(err.Error(), folder+string(filepath.Separator))
		if !strings.HasPrefix(text, c.want) || strings.Count(text, "model.onnx") != 1 {
			t.Errorf("%s: %v, want %s and the model's name once", c.name, err, c.want)
		}
	}
}

func TestNothingToRestore(t *testing.T) {
	opts := options(t)
	opts.Earlier.Restore = true
	if _, err := modelfolder.Prepare(context.Background(), hub(t), opts); err == nil || !strings.Contains(err.Error(), "nothing to restore: no model of the folder") {
		t.Error(err)
	}
}
