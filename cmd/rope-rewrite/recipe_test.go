package main

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/rope-rewrite/rope-rewrite/customop"
	"github.com/rope-rewrite/rope-rewrite/internal/testruntime"
	"github.com/rope-rewrite/rope-rewrite/internal/testsample"
)

// The recipe of a model that was rewritten makes the same bytes of its original, whatever it was
// asked for.
func TestRecipes(t *testing.T) {
	runtime, library := testruntime.Paths(t)
	t.Setenv(customop.RuntimeVariable, runtime)
	t.Setenv(customop.LibraryVariable, library)
	command := func(t *testing.T, args ...string) []byte {
		t.Helper()
		var stdout, stderr bytes.Buffer
		if code := run(context.Background(), args, &stdout, &stderr); code != 0 {
			t.Fatalf("%q: exit code %d: %s%s", args, code, &stdout, &stderr)
		}
		return stdout.Bytes()
	}
	const yarn = "--scaling yarn:factor=4,original_max_position_embeddings=32"
	for _, flags := range testsample.Of(t, []string{
		"",
		yarn,
		yarn + "@1",
		yarn + "@0 --scaling linear:factor=2@1",
		"--positions string:shift=12,window=4@0 --mask sliding-window:window=8@1",
		"--context 256 --scaling dynamic:factor=2,original_max_position_embeddings=64",
		`--rope-parameters {"rope_type":"yarn","factor":4.0,"original_max_position_embeddings":32}`,
		"--mask anchor --documents input",
		"--mask intra-document --documents input:ids",
		"--kv fixed:capacity=64",
		"--kv fixed:capacity=64,input=held",
		"--target onnx " + yarn,
		"--target contrib",
		"--target contrib:onnxruntime=1.22",
		"--opset 18",
		"--opset 18 --target onnx " + yarn,
		"--logits last",
		"--logits last:input=place",
		"--cache raw",
		"--precision fast",
		"--angles exact",
		"--angles original " + yarn,
		"--fallback none",
		"--layers 1 " + yarn,
	}, 2) {
		t.Run(flags, func(t *testing.T) { roundTrip(t, command, "llama__optimum", flags) })
	}
	for name, flags := range testsample.OfMap(t, map[string]string{
		"llama__dynamo18-fp16":    "--precision fast --opset 18 " + yarn,
		"llama__dynamo18-nocache": "--mask intra-document-reset --documents separator:3,ends",
		"gemma3_text__dynamo18":   "--scaling linear:factor=2",
		"llama__genai-fp32":       yarn,
	}, 1) {
		t.Run(name, func(t *testing.T) { roundTrip(t, command, name, flags) })
	}
	t.Run("carried", func(t *testing.T) {
		dir := t.TempDir()
		first := filepath.Join(dir, "first.onnx")
		command(t, model("llama__optimum"), "-o", first, "--scaling", "linear:factor=2")
		both := filepath.Join(dir, "both.onnx")
		command(t, first, "-o", both, "--base", "carried", "--positions", "string:shift=12,window=4")
		again(t, command, "llama__optimum", both)
	})
}

func model(name string) string { return filepath.Join("../../testdata/models", name, "model.onnx") }

func roundTrip(t *testing.T, command func(*testing.T, ...string) []byte, name, flags string) {
	out := filepath.Join(t.TempDir(), "out.onnx")
	command(t, append([]string{model(name), "-o", out}, strings.Fields(flags)...)...)
	again(t, command, name, out)
}

// again rewrites a model by another's recipe.
func again(t *testing.T, command func(*testing.T, ...string) []byte, name, rewritten string) {
	text := command(t, "inspect", rewritten, "--recipe")
	file := filepath.Join(t.TempDir(), "recipe.yaml")
	if err := os.WriteFile(file, text, 0o666); err != nil {
		t.Fatal(err)
	}
	out := filepath.Join(t.TempDir(), "again.onnx")
	args := []string{model(name), "--recipe", file, "-o", out}
	command(t, args...)
	want, err := os.ReadFile(rewritten)
	if err != nil {
		t.Fatal(err)
	}
	if got, err := os.ReadFile(out); err != nil || !bytes.Equal(got, want) {
		t.Errorf("another model by the recipe\n%s(%v)", text, err)
	}
}
