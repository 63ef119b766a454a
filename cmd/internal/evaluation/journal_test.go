package evaluation

import (
	"context"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/rope-rewrite/rope-rewrite/cmd/internal/evaluation/task"
)

// A journal that was cut off in the middle of a line goes on behind its last whole one.
func TestJournal(t *testing.T) {
	path := filepath.Join(t.TempDir(), "samples.jsonl")
	about := About{Plan: Plan{Tasks: []string{"passkey"}}, Files: map[string]string{"model.onnx": "1"}, Variants: []string{"none", "model.onnx"}}
	j, samples, err := OpenJournal(path, about, false)
	if err != nil || len(samples) != 0 {
		t.Fatal(samples, err)
	}
	for i := range 3 {
		if err := j.Add(Sample{Variant: "a", Index: i}); err != nil {
			t.Fatal(err)
		}
	}
	if err := j.Close(); err != nil {
		t.Fatal(err)
	}
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, b[:len(b)-5], 0o666); err != nil {
		t.Fatal(err)
	}
	j, samples, err = OpenJournal(path, about, true)
	if err != nil || len(samples) != 2 {
		t.Fatalf("%d samples, %v; want 2", len(samples), err)
	}
	if err := j.Add(Sample{Variant: "a", Index: 7}); err != nil {
		t.Fatal(err)
	}
	if err := j.Close(); err != nil {
		t.Fatal(err)
	}
	j, samples, err = OpenJournal(path, about, true)
	if err != nil || len(samples) != 3 || samples[2].Index != 7 {
		t.Fatalf("%+v, %v", samples, err)
	}
	j.Close()
	other := func(change func(*About)) About {
		a := about
		change(&a)
		return a
	}
	for _, c := range []struct {
		about  About
		resume bool
		want   string
	}{
		{about, false, "--resume"},
		{other(func(a *About) { a.Tasks = []string{"kv"} }), true, "other models, tasks or numbers"},
		{other(func(a *About) { a.Variants, a.Files = []string{"none", "b"}, nil }), true, "other models, tasks or numbers"},
		{other(func(a *About) { a.Files = map[string]string{"model.onnx": "2"} }), true, "model.onnx changed after its samples were computed"},
		{other(func(a *About) { a.Files = map[string]string{"model.onnx": "1", "tokenizer.json": "2"} }), true, "tokenizer.json changed after its samples were computed"},
		{other(func(a *About) { a.Text = "1" }), true, "the text of --text changed after its samples were computed"},
		{other(func(a *About) { a.Seed = 7 }), true, "other models, tasks or numbers"},
	} {
		if _, _, err := OpenJournal(path, c.about, c.resume); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%v, want %q", err, c.want)
		}
	}
	if err := os.WriteFile(path, []byte(`{"variants":["none","model.onnx"],"Tasks":["passkey"]}`+"\n"), 0o666); err != nil {
		t.Fatal(err)
	}
	if _, _, err := OpenJournal(path, about, true); err == nil || !strings.Contains(err.Error(), "do not say which model") {
		t.Errorf("%v", err)
	}
}

// What decides a sample is told apart: the model, its weights, what stands beside it, texts and forms.
func TestAbout(t *testing.T) {
	folder := t.TempDir()
	model, err := os.ReadFile("../../../testdata/models/llama__optimum/model.onnx")
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(folder, "model.onnx"), model, 0o666); err != nil {
		t.Fatal(err)
	}
	of := func(p Plan) About {
		t.Helper()
		a, err := NewAbout(context.Background(), p, []Variant{{Name: "none", Model: folder}}, 0)
		if err != nil {
			t.Fatal(err)
		}
		return a
	}
	plan := Plan{Tasks: []string{"passkey"}}
	first := of(plan)
	if second := of(plan); !reflect.DeepEqual(first, second) {
		t.Errorf("%+v, then %+v", first, second)
	}
	for name, contents := range map[string][]byte{
		"tokenizer.json": {'1'}, "chat_template.jinja": {'1'}, "config.json": {'1'},
		"model.onnx": append(model, 0x72, 0), // metadata without contents
	} {
		if err := os.WriteFile(filepath.Join(folder, name), contents, 0o666); err != nil {
			t.Fatal(err)
		}
		next := of(plan)
		if path := filepath.Join(folder, name); first.Files[path] == next.Files[path] {
			t.Errorf("a change of %s is not seen", name)
		}
		first = next
	}
	for name, p := range map[string]Plan{
		"haystack": {Tasks: plan.Tasks, Haystack: "A. B. "},
		"text":     {Tasks: plan.Tasks, Text: "A"},
		"form":     {Tasks: plan.Tasks, Forms: map[string]task.Form{"passkey": {Haystack: "A. ", Needle: "{key}"}}},
	} {
		a := of(p)
		if reflect.DeepEqual(a.Plan, first.Plan) {
			t.Errorf("another %s is not seen", name)
		}
	}
}
