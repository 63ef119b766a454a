package lm_test

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"flag"
	"log/slog"
	"os"
	"path/filepath"
	"runtime/debug"
	"strconv"
	"strings"
	"testing"

	"github.com/rope-rewrite/rope-rewrite/internal/testruntime"
	"github.com/rope-rewrite/rope-rewrite/lm"
	"github.com/rope-rewrite/rope-rewrite/lm/chat"
	"github.com/rope-rewrite/rope-rewrite/lm/sample"
	"github.com/rope-rewrite/rope-rewrite/rewrite"
)

// sentence fails unless an error is one line with the wanted words, and no longer than a
// reader takes in.
func sentence(t *testing.T, name string, err error, want string) {
	t.Helper()
	switch {
	case err == nil || !strings.Contains(err.Error(), want):
		t.Errorf("%s: %v, want a word of %s", name, err, want)
	case strings.Contains(err.Error(), "\n") || len(err.Error()) > 600:
		t.Errorf("%s: the error is no sentence: %v", name, err)
	}
}

// What cannot be opened is refused in a sentence that names it.
func TestBadFolders(t *testing.T) {
	library := testruntime.Require(t)
	read := func(path string) string {
		b, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		return string(b)
	}
	export := func(name string) string { return read(filepath.Join(models, name, "model.onnx")) }
	tokenizer := func(old, new string) string {
		text := read(filepath.Join(folder(t, nil), "tokenizer.json"))
		if !strings.Contains(text, old) {
			t.Fatalf("%s is not in the tokenizer", old)
		}
		return strings.Replace(text, old, new, 1)
	}
	for name, c := range map[string]struct {
		files map[string]string
		want  string
	}{
		"no model":                               {map[string]string{"model.onnx": ""}, "has no .onnx file"},
		"two models":                             {map[string]string{"other.onnx": "x"}, "several models: name one of model.onnx, other.onnx"},
		"text for a model":                       {map[string]string{"model.onnx": "hello"}, "load the model"},
		"an empty model":                         {map[string]string{"model.onnx": " "}, "model.onnx"},
		"half a model":                           {map[string]string{"model.onnx": export("llama__optimum")[:50_000]}, "load the model"},
		"no cache":                               {map[string]string{"model.onnx": export("llama__dynamo18-nocache")}, "without a key-value cache"},
		"a cache of fixed size without a length": {map[string]string{"model.onnx": export("llama__ts17-fixed")}, "a cache of exactly 24 tokens"},
		"an input that is not known":             {map[string]string{"model.onnx": export("llama__ts17-static-cache")}, `"cache_position" cannot be fed`},
		"no tokenizer":                           {map[string]string{"tokenizer.json": ""}, "there is no tokenizer"},
		"a tokenizer that is no JSON":            {map[string]string{"tokenizer.json": "{"}, "tokenizer.json"},
		"a tokenizer of another kind":            {map[string]string{"tokenizer.json": `{"model": {"type": "Sorted"}}`}, "Sorted"},
		"another pre-tokenizer":                  {map[string]string{"tokenizer.json": tokenizer("ByteLevel", "Letters")}, "Letters"},
		"another model's tokenizer":              {map[string]string{"tokenizer.json": tokenizer(`"~": 108`, `"~": 5000`)}, "has 5001 tokens, but the model has 128: it belongs to another model"},
		"a configuration no JSON":                {map[string]string{"generation_config.json": "{"}, "generation_config.json"},
		"an end token in words":                  {map[string]string{"generation_config.json": `{"eos_token_id": "</s>"}`}, "eos_token_id"},
		"a temperature in words":                 {map[string]string{"generation_config.json": `{"do_sample": true, "temperature": "warm"}`}, "temperature"},
		"a config.json that is a list":           {map[string]string{"config.json": "[1]"}, "config.json"},
		"a broken genai_config.json":             {map[string]string{"genai_config.json": "{"}, "genai_config.json"},
		"a decoder outside its folder":           {map[string]string{"genai_config.json": `{"model": {"decoder": {"filename": "../model.onnx"}}}`}, "outside its folder"},
		"a decoder that is not there":            {map[string]string{"genai_config.json": `{"model": {"decoder": {"filename": "decoder.onnx"}}}`}, "decoder.onnx"},
	} {
		m, err := lm.Open(folder(t, c.files), lm.Options{OpsLibrary: library})
		if err == nil {
			m.Close()
		}
		sentence(t, name, err, c.want)
	}
	_, err := lm.Open(filepath.Join(t.TempDir(), "nothing"), lm.Options{})
	sentence(t, "no folder", err, "there is no model")
	if !errors.Is(err, os.ErrNotExist) {
		t.Errorf("no folder: %v is no ErrNotExist", err)
	}
	_, err = lm.OpenDecoder(filepath.Join(models, "gpt_neox__ts17", "model.onnx"), lm.Options{})
	sentence(t, "an encoder", err, "without a key-value cache")
}

// The op library is required or not, and never searched beside the model.
func TestLibrary(t *testing.T) {
	library := testruntime.Require(t)
	defined := patched(t, filepath.Join(models, "llama__optimum", "model.onnx"), library, rewrite.Options{})
	bare := patched(t, filepath.Join(models, "llama__optimum", "model.onnx"), library, rewrite.Options{Output: rewrite.Output{NoFallback: true}})
	garbage := filepath.Join(t.TempDir(), "librope_ops.so")
	for _, path := range []string{garbage, filepath.Join(filepath.Dir(defined), "librope_ops.so"), filepath.Join(filepath.Dir(bare), "librope_ops.so")} {
		if err := os.WriteFile(path, []byte("no library"), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	for _, variable := range []string{"ROPE_OPS_LIBRARY", "HOME", "XDG_CACHE_HOME"} {
		t.Setenv(variable, "")
	}
	var said bytes.Buffer
	d, err := lm.OpenDecoder(defined, lm.Options{Log: slog.New(slog.NewTextHandler(&said, nil))})
	if err != nil {
		t.Fatalf("on the fallback: %v", err)
	}
	if got := said.String(); strings.Count(got, "\n") != 1 || !strings.Contains(got, "runs on its fallback") || !strings.Contains(got, "librope_ops") {
		t.Errorf("on the fallback the log has %q", got)
	}
	s, err := d.NewSequence()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.Forward(context.Background(), lm.Row{Tokens: []int64{1, 2, 3}}); err != nil {
		t.Error(err)
	}
	s.Close()
	d.Close()
	for name, c := range map[string]struct {
		path string
		o    lm.Options
		want string
	}{
		"required":                  {defined, lm.Options{Require: true}, "librope_ops.so was not found"},
		"no fallback, no library":   {bare, lm.Options{}, "has no fallback"},
		"a path to nothing":         {defined, lm.Options{OpsLibrary: "/nowhere/librope_ops.so"}, "/nowhere/librope_ops.so"},
		"a file that is no library": {defined, lm.Options{OpsLibrary: garbage}, garbage},
	} {
		d, err := lm.OpenDecoder(c.path, c.o)
		if err == nil {
			d.Close()
		}
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want a word of %s", name, err, c.want)
		}
	}
}

// What cannot be generated is refused in a sentence, and the model goes on.
func TestBadInputs(t *testing.T) {
	m := openModel(t, nil)
	canceled, cancel := context.WithCancel(context.Background())
	cancel()
	for name, c := range map[string]struct {
		ctx  context.Context
		in   lm.Input
		o    lm.GenerateOptions
		want string
	}{
		"nothing":                  {in: lm.Input{}, want: "no prompt is given"},
		"no chat template":         {in: lm.Input{Messages: []chat.Message{{Role: "user", Content: "Hi"}}}, want: "has no chat template"},
		"two inputs":               {in: lm.Input{Text: "a", Tokens: []int64{1}}, want: "give one of"},
		"a token too large":        {in: lm.Input{Tokens: []int64{5, 128}}, want: "token 1 of the call is 128, and the model has 128 tokens"},
		"a token below 0":          {in: lm.Input{Tokens: []int64{-1}}, want: "is -1"},
		"fewer than no tokens":     {in: lm.Input{Text: "a"}, o: lm.GenerateOptions{MaxTokens: -1}, want: "MaxTokens -1"},
		"a negative temperature":   {in: lm.Input{Text: "a"}, o: lm.GenerateOptions{Sample: &sample.Options{Temperature: -1}}, want: "Temperature"},
		"a share above 1":          {in: lm.Input{Text: "a"}, o: lm.GenerateOptions{Sample: &sample.Options{TopP: 2}}, want: "TopP 2"},
		"a context that has ended": {ctx: canceled, in: lm.Input{Text: "a"}, want: "canceled"},
		"documents for too few":    {in: lm.Input{Row: lm.Row{Tokens: []int64{1, 2}, Documents: []int64{1}}}, want: "2 tokens are given, but document ids for 1"},
	} {
		ctx := c.ctx
		if ctx == nil {
			ctx = context.Background()
		}
		var err error
		tokens := 0
		for _, e := range m.Generate(ctx, c.in, c.o) {
			if e != nil {
				err = e
			} else {
				tokens++
			}
		}
		sentence(t, name, err, c.want)
		if tokens > 0 {
			t.Errorf("%s: %d tokens before the error", name, tokens)
		}
	}
	if ids, _ := collect(t, m, lm.Input{Text: "abc"}, lm.GenerateOptions{MaxTokens: 5, IgnoreEnd: true}); len(ids) != 5 {
		t.Errorf("after the errors: %v", ids)
	}
	other := openModel(t, nil)
	s, err := begin(t, other).Snapshot()
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	sentence(t, "another model's snapshot", begin(t, m).Restore(s), "another model")
}

// A cache that is full ends the text.
func TestFullCache(t *testing.T) {
	library := testruntime.Require(t)
	dir := folder(t, nil)
	b, err := os.ReadFile(patched(t, filepath.Join(models, "llama__optimum", "model.onnx"), library, rewrite.Options{Cache: rewrite.Cache{Capacity: 12}}))
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "model.onnx"), b, 0o644); err != nil {
		t.Fatal(err)
	}
	m, err := lm.Open(dir, lm.Options{Threads: 1, OpsLibrary: library})
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close()
	var last error
	count := 0
	var finish lm.Finish
	for token, err := range m.Generate(context.Background(), lm.Input{Text: "abcdefgh"}, lm.GenerateOptions{IgnoreEnd: true}) {
		if last = err; err == nil {
			count++
		}
		finish = token.Finish
	}
	if count != 5 || last != nil || finish != lm.FinishLength || m.ContextLength() != 12 {
		t.Errorf("%d tokens, %v, finish %q, context %d", count, last, finish, m.ContextLength())
	}
	for _, err := range m.Generate(context.Background(), lm.Input{Text: "abcdefghijklmn"}, lm.GenerateOptions{}) {
		sentence(t, "a prompt that is too long", err, "the text has 14 tokens and the cache room for 12")
	}
}

var opens = flag.Int("opens", 100, "how many models TestNothingLeaks opens")

// Models that are opened and closed again and again, and half of them fail, leave nothing.
func TestNothingLeaks(t *testing.T) {
	library := testruntime.Require(t)
	good := folder(t, nil)
	bad := folder(t, map[string]string{"tokenizer.json": strings.Replace(mustRead(t, filepath.Join(good, "tokenizer.json")), `"~": 108`, `"~": 5000`, 1)})
	round := func() {
		m, err := lm.Open(good, lm.Options{Threads: 1, OpsLibrary: library})
		if err != nil {
			t.Fatal(err)
		}
		for range m.Generate(context.Background(), lm.Input{Text: "abc"}, lm.GenerateOptions{MaxTokens: 2}) {
		}
		if err := m.Close(); err != nil {
			t.Fatal(err)
		}
		if m, err := lm.Open(bad, lm.Options{Threads: 1, OpsLibrary: library}); err == nil {
			m.Close()
			t.Fatal("another model's tokenizer was accepted")
		}
	}
	for range 20 {
		round() // what the runtime keeps for later
	}
	before := resident(t)
	for range *opens / 2 { // a round is two opens
		round()
	}
	grown := resident(t) - before
	t.Logf("after %d opens the process has %.1f MB more", *opens, float64(grown)/(1<<20))
	if each := grown / int64(*opens); each > 100<<10 { // the model alone has 280 kB
		t.Errorf("each open leaves %d kB", each>>10)
	}
}

func mustRead(t testing.TB, path string) string {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// resident is the memory of this process, without what Go can give back.
func resident(t *testing.T) int64 {
	t.Helper()
	debug.FreeOSMemory()
	f, err := os.Open("/proc/self/status")
	if err != nil {
		t.Skip("the system does not tell the memory of a process: ", err)
	}
	defer f.Close()
	for s := bufio.NewScanner(f); s.Scan(); {
		if value, ok := strings.CutPrefix(s.Text(), "VmRSS:"); ok {
			n, err := strconv.ParseInt(strings.TrimSuffix(strings.TrimSpace(value), " kB"), 10, 64)
			if err != nil {
				t.Fatal(err)
			}
			return n << 10
		}
	}
	t.Skip("the system does not tell the memory of a process")
	return 0
}
