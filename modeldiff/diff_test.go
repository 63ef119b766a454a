package modeldiff_test

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/rope-rewrite/rope-rewrite/internal/testruntime"
	"github.com/rope-rewrite/rope-rewrite/modeldiff"
	"github.com/rope-rewrite/rope-rewrite/onnx"
	"github.com/rope-rewrite/rope-rewrite/rewrite"
	"github.com/rope-rewrite/rope-rewrite/rope"
)

func TestMain(m *testing.M) {
	rewrite.ServeIfWorker()
	testruntime.Examples()
	os.Exit(m.Run())
}

const models = "../testdata/models"

func diff(t *testing.T, a, b string) *modeldiff.Report {
	t.Helper()
	testruntime.Require(t)
	d, err := modeldiff.Run(context.Background(), a, b, modeldiff.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// rewritten rewrites a model into a file.
func rewritten(t *testing.T, path string, opts rewrite.Options) string {
	t.Helper()
	testruntime.Require(t)
	m, err := onnx.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close()
	if _, err := rewrite.Rewrite(context.Background(), m, opts); err != nil {
		t.Fatal(err)
	}
	out := filepath.Join(t.TempDir(), "model.onnx")
	if err := m.Save(out, onnx.SaveOptions{}); err != nil {
		t.Fatal(err)
	}
	return out
}

func yarn(t *testing.T, text string) rewrite.Options {
	t.Helper()
	spec, err := rope.ParseSpec(rope.ScalingAxis, text)
	if err != nil {
		t.Fatal(err)
	}
	return rewrite.Options{Edits: []rope.Spec{spec}}
}

// A model and what it was rewritten to, without a method, differ in nodes and not in
// what the attention layers compute, whoever wrote them: for each exporter's spelling the
// measured value and the one that the op's node holds give the same line.
func TestSameOutputIsNoDifference(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"llama__optimum", "llama__dynamo23", "llama__genai-fp32", "cohere__dynamo18", "gemma3_text__dynamo18", "gpt_neox__dynamo18-merged"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			path := filepath.Join(models, name, "model.onnx")
			d := diff(t, path, rewritten(t, path, rewrite.Options{}))
			if sites := d.Of(modeldiff.Attention); len(sites) > 0 || len(d.Notes) > 0 {
				t.Errorf("attention layers differ: %q, notes %q", sites, d.Notes)
			}
			nodes := d.Of(modeldiff.Node)
			if d.Same || !slices.ContainsFunc(nodes, func(c modeldiff.Difference) bool {
				return c.Where == "rope.rewrite RotaryAttention" && c.Expected == "" && c.Found != ""
			}) {
				t.Errorf("same %t, nodes %v", d.Same, nodes)
			}
			if changed := d.Of(modeldiff.Weight); len(changed) > 0 {
				t.Errorf("weights changed: %v", changed)
			}
		})
	}
}

func TestMethodsAndSites(t *testing.T) {
	t.Parallel()
	path := filepath.Join(models, "llama__optimum", "model.onnx")
	two, four := rewritten(t, path, yarn(t, "yarn:factor=2")), rewritten(t, path, yarn(t, "yarn:factor=4"))
	d := diff(t, two, four)
	if list := d.Of(modeldiff.Method); len(list) != 1 || list[0].Where != "scaling" || !strings.HasPrefix(list[0].Expected, "yarn:factor=2 (") || !strings.Contains(list[0].Found, "beta_fast=32") {
		t.Errorf("methods %q", list)
	}
	if list := d.Of(modeldiff.Attention); len(list) != 1 || list[0].Where != "0-1" || !strings.Contains(list[0].Expected, "yarn:factor=2,") || !strings.Contains(list[0].Found, "yarn:factor=4,") {
		t.Errorf("layers %q", list)
	}
	if len(d.Differences) != 2 || d.Graph || d.Same {
		t.Errorf("%q, the same graph %t, same %t", d.Differences, d.Graph, d.Same)
	}
	// What an exporter lost shows without a configuration.
	d = diff(t, filepath.Join(models, "llama__genai-fp32", "model.onnx"), "../testdata/claims/qwen2__genai-window/model.onnx")
	if list := d.Of(modeldiff.Attention); len(list) != 1 || list[0].Where != "1" || !strings.Contains(list[0].Found, "causal + window 8") {
		t.Errorf("layers %q", list)
	}
}

func TestSame(t *testing.T) {
	t.Parallel()
	path := filepath.Join(models, "llama__genai-int4", "model.onnx")
	if d := diff(t, path, path); !d.Same || !d.Graph || d.SameWeights == 0 {
		t.Errorf("a model and itself: %+v", d)
	}
}

// twins returns two files of a model of two weights, the second with one byte of them
// changed if asked for.
func twins(t *testing.T, changed bool) (a, b string) {
	t.Helper()
	weights := bytes.Repeat([]byte{1, 2, 3, 4}, 8)
	m := onnx.New()
	m.RequireIR(8)
	m.RequireOpset("", 18)
	m.Graph.Name = "g"
	for i, name := range []string{"first", "second"} {
		m.Graph.AddInitializer(onnx.NewTensor(name, onnx.Float, []int64{4}, weights[16*i:16*i+16]))
		m.Graph.InsertNode(nil, onnx.NewNode("Identity", []string{name}, []string{name + "_out"}))
		m.Graph.AddOutput(onnx.NewValueInfo(name+"_out", onnx.Float, onnx.Dim{Value: 4}))
	}
	dir := t.TempDir()
	a = filepath.Join(dir, "inside.onnx")
	if err := m.Save(a, onnx.SaveOptions{}); err != nil {
		t.Fatal(err)
	}
	if changed {
		weights[20]++
	}
	b = filepath.Join(dir, "other.onnx")
	if err := m.Save(b, onnx.SaveOptions{}); err != nil {
		t.Fatal(err)
	}
	return a, b
}

// Weights that changed are named, with their digests.
func TestWeights(t *testing.T) {
	t.Parallel()
	a, b := twins(t, true)
	d := diff(t, a, b)
	if list := d.Of(modeldiff.Weight); len(list) != 1 || list[0].Where != "second" || d.SameWeights != 1 || !strings.Contains(list[0].Expected, "float [4] sha256:") || list[0].Expected == list[0].Found || d.Same {
		t.Errorf("%+v", d)
	}
	if len(d.Notes) != 1 || !strings.Contains(d.Notes[0], "are not compared") {
		t.Errorf("that there is no attention to compare is noted: %q", d.Notes)
	}
	if a, b = twins(t, false); !diff(t, a, b).Same {
		t.Error("equal models differ")
	}
}

func TestRenamed(t *testing.T) {
	t.Parallel()
	a, _ := twins(t, false)
	m, err := onnx.Open(a)
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close()
	m.Graph.Initializers[0].Name, m.Graph.Nodes[0].Inputs[0] = "renamed", "renamed"
	b := filepath.Join(t.TempDir(), "b.onnx")
	if err := m.Save(b, onnx.SaveOptions{}); err != nil {
		t.Fatal(err)
	}
	d := diff(t, a, b)
	want := []modeldiff.Difference{{What: modeldiff.Renamed, Where: "first", Expected: "first", Found: "renamed"}}
	if !slices.Equal(d.Differences, want) || d.Same || d.SameWeights != 1 {
		t.Errorf("%+v", d)
	}
}

// Weights in external data are read where they may differ, and not where both models
// have the same bytes of one file; without them the rest is compared.
func TestExternalData(t *testing.T) {
	t.Parallel()
	data, err := os.ReadFile("../testdata/smollm2/optimum/model.onnx")
	if err != nil {
		t.Fatal(err)
	}
	place := func(weights string) string {
		dir := t.TempDir()
		if err := os.WriteFile(filepath.Join(dir, "model.onnx"), data, 0o666); err != nil {
			t.Fatal(err)
		}
		if weights != "" {
			if err := os.Link(weights, filepath.Join(dir, "model.onnx.data")); err != nil {
				t.Skip("this system does not let the test make hard links: ", err)
			}
		}
		return filepath.Join(dir, "model.onnx")
	}
	sparse := func() string { // reads as zeros
		path := filepath.Join(t.TempDir(), "weights")
		file, err := os.Create(path)
		if err != nil {
			t.Fatal(err)
		}
		defer file.Close()
		if err := file.Truncate(651165696); err != nil {
			t.Fatal(err)
		}
		return path
	}
	weights := sparse()
	d := diff(t, place(weights), place(weights))
	if !d.Same || d.Read > 4<<20 {
		t.Errorf("hard links: same %t, %d bytes were read", d.Same, d.Read)
	}
	d = diff(t, place(weights), place(""))
	if len(d.Notes) != 1 || !strings.Contains(d.Notes[0], "weights are not compared") || len(d.Differences) > 0 {
		t.Errorf("without weights: notes %q, %v", d.Notes, d.Differences)
	}
}
