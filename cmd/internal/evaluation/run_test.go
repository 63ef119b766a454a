package evaluation_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/rope-rewrite/rope-rewrite/cmd/internal/evaluation"
	"github.com/rope-rewrite/rope-rewrite/cmd/internal/evaluation/task"
	"github.com/rope-rewrite/rope-rewrite/internal/engine"
	"github.com/rope-rewrite/rope-rewrite/internal/testruntime"
	"github.com/rope-rewrite/rope-rewrite/lm"
	"github.com/rope-rewrite/rope-rewrite/lm/sample"
	"github.com/rope-rewrite/rope-rewrite/onnx"
	"github.com/rope-rewrite/rope-rewrite/rewrite"
	"github.com/rope-rewrite/rope-rewrite/rope"
)

func TestMain(m *testing.M) {
	engine.ServeIfWorker()
	testruntime.Examples()
	os.Exit(m.Run())
}

const model = "../../../testdata/models/llama__optimum/model.onnx"

// tokenBytes is what a token takes in the model's cache: two layers of keys and values, of two
// heads of 16.
const tokenBytes = 2 * 2 * 2 * 16 * 4

// variants are the model as it is, and one whose frequencies depend on the length of a call.
func variants(t *testing.T) ([]evaluation.Variant, lm.Options) {
	library := testruntime.Require(t)
	runtime, _ := testruntime.Paths(t)
	patch := rewrite.Options{Evaluation: rewrite.Evaluation{Runtime: runtime, Library: library, Worker: []string{os.Args[0]}}}
	dynamic, err := rope.ParseSpec(rope.ScalingAxis, "dynamic:factor=2,original_max_position_embeddings=64,length=run")
	if err != nil {
		t.Fatal(err)
	}
	scaled := patch
	scaled.Edits = []rope.Spec{dynamic}
	return []evaluation.Variant{
		{Name: "none", Model: model, Patch: patch, AsIs: true},
		{Name: "dynamic", Model: model, Patch: scaled},
	}, lm.Options{Threads: 1, OpsLibrary: library, Folder: "../../../testdata/lm", Require: true}
}

func plan() evaluation.Plan {
	return evaluation.Plan{
		Tasks: []string{"passkey", "kv", evaluation.Perplexity}, Lengths: []int{400, 500}, Depths: []float64{0.3, 0.7},
		Samples: 2, Seed: 1, Windows: 2, Text: strings.Repeat("A text that says little, again and again. ", 40),
	}
}

// run evaluates, and returns the samples without their times.
func run(t *testing.T, p evaluation.Plan, v []evaluation.Variant, o evaluation.Options) (samples []evaluation.Sample, err error) {
	t.Helper()
	o.Sample = func(s evaluation.Sample) error {
		s.Seconds = 0
		samples = append(samples, s)
		return nil
	}
	return samples, evaluation.Run(context.Background(), p, v, o)
}

// What is shared by trials changes no answer: with too little memory for it, and in other pieces,
// every sample is the same. One that was computed before is not computed again.
func TestRun(t *testing.T) {
	v, options := variants(t)
	samples, err := run(t, plan(), v, evaluation.Options{Model: options})
	if err != nil {
		t.Fatal(err)
	}
	if want := 2*2*2*2*2 + 2 + 2*2; len(samples) != want { // dynamic's windows are computed for each length
		t.Errorf("%d samples, want %d", len(samples), want)
	}
	answers := map[string]bool{}
	for _, s := range samples {
		answers[s.Answer] = true
	}
	if len(answers) < 10 {
		t.Errorf("only %d answers are different: the test shows nothing", len(answers))
	}
	little := plan()
	little.Memory = 2 * 500 * tokenBytes // the cache of 500 tokens twice, and no more
	pieces := options
	pieces.Chunk = 64
	alone, err := run(t, little, v[:1], evaluation.Options{Model: pieces})
	if err != nil {
		t.Fatal(err)
	}
	for i, s := range alone {
		if w := samples[i]; s.Answer != w.Answer || s.Variant != w.Variant || s.Index != w.Index {
			t.Errorf("%s, %s of %d tokens: the answer is %q, and %q where trials share", s.Variant, s.Task, s.Length, s.Answer, w.Answer)
		}
	}
	rest, err := run(t, plan(), v, evaluation.Options{Model: options, Done: samples[:20]})
	if err != nil || len(rest) != len(samples)-20 {
		t.Errorf("%d samples are computed again of %d, %v", len(rest), len(samples)-20, err)
	}
}

// The document ids of a prompt reach a model whose mask is by documents: its answers are those of the whole prompt with its
// ids, and not those of a single document.
func TestMaskByDocuments(t *testing.T) {
	v, options := variants(t)
	masked := v[0]
	masked.Name, masked.AsIs = "intra-document", false
	mask, err := rope.ParseSpec(rope.MaskAxis, "intra-document")
	if err != nil {
		t.Fatal(err)
	}
	masked.Patch.Edits, masked.Patch.Documents.Input = []rope.Spec{mask}, rewrite.DocumentsInput
	// The model's tokenizer has no line ends.
	form := task.Form{Before: "Read these. ", Needle: "Document {name}: {key}", Between: " ", Question: "Question: {name}", Answer: "{begin}", Tokens: 32, Share: 5}
	p := evaluation.Plan{
		Tasks: []string{"qa_1"}, Lengths: []int{5000}, Depths: []float64{0}, Samples: 5, Seed: 1, Windows: 1, Forms: map[string]task.Form{"qa_1": form},
	}
	samples, err := run(t, p, []evaluation.Variant{masked}, evaluation.Options{Model: options, Prompts: true})
	if err != nil {
		t.Fatal(err)
	}
	m, err := onnx.Open(model)
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close()
	path := filepath.Join(t.TempDir(), "model.onnx")
	if _, err := rewrite.Rewrite(t.Context(), m, masked.Patch); err != nil {
		t.Fatal(err)
	}
	if err := m.Save(path, onnx.SaveOptions{}); err != nil {
		t.Fatal(err)
	}
	patched, err := lm.Open(path, options)
	if err != nil {
		t.Fatal(err)
	}
	defer patched.Close()
	others := 0
	for _, s := range samples {
		answer := func(documents []int64) (text string) {
			in := lm.Input{Row: lm.Row{Tokens: s.IDs, Documents: documents}}
			for token, err := range patched.Generate(t.Context(), in, lm.GenerateOptions{MaxTokens: 32, Sample: &sample.Options{}}) {
				if err != nil {
					t.Fatal(err)
				}
				text += token.Text
			}
			return text
		}
		if want := answer(s.Documents); s.Answer != want {
			t.Errorf("sample %d is answered by %q, want %q", s.Index, s.Answer, want)
		}
		if answer(nil) != s.Answer {
			others++
		}
	}
	if others == 0 {
		t.Error("documents change no answer: the test shows nothing")
	}
}

func TestRunRefuses(t *testing.T) {
	v, options := variants(t)
	for want, change := range map[string]func(*evaluation.Plan){
		"no task":                         func(p *evaluation.Plan) { p.Tasks = nil },
		"unknown task \"passky\"":         func(p *evaluation.Plan) { p.Tasks = []string{"passky"} },
		"samples: expected numbers above": func(p *evaluation.Plan) { p.SamplesAt = map[int]int{400: 0} },
		"lengths:":                        func(p *evaluation.Plan) { p.Lengths = []int{0} },
		"depths:":                         func(p *evaluation.Plan) { p.Depths = []float64{1.5} },
		"samples and windows":             func(p *evaluation.Plan) { p.Samples = 0 },
		"a text, and none is given":       func(p *evaluation.Plan) { p.Text = "" },
		"the text has 7 tokens":           func(p *evaluation.Plan) { p.Tasks, p.Text = []string{evaluation.Perplexity}, "A text." },
		"100 tokens are too few":          func(p *evaluation.Plan) { p.Lengths = []int{100} },
		"caches may take 0.0 MB":          func(p *evaluation.Plan) { p.Memory = 1000 },
		"haystack: expected a text":       func(p *evaluation.Plan) { p.Forms = map[string]task.Form{"passkey": {Needle: "{key}"}} },
	} {
		p := plan()
		change(&p)
		if _, err := run(t, p, v[:1], evaluation.Options{Model: options}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
	}
	stop := errors.New("full")
	err := evaluation.Run(context.Background(), plan(), v[:1], evaluation.Options{Model: options, Sample: func(evaluation.Sample) error { return stop }})
	if !errors.Is(err, stop) {
		t.Errorf("%v, want %v", err, stop)
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if err := evaluation.Run(ctx, plan(), v, evaluation.Options{Model: options}); !errors.Is(err, context.Canceled) {
		t.Errorf("%v, want %v", err, context.Canceled)
	}
}

// A text gives as many windows as stand beside each other in it, and what is missing is said.
func TestWindowsDoNotOverlap(t *testing.T) {
	v, options := variants(t)
	p := evaluation.Plan{Tasks: []string{evaluation.Perplexity}, Lengths: []int{400}, Depths: []float64{0}, Samples: 1, Windows: 8}
	for windows, note := range map[int]string{1: "long enough for 1 of the 8 windows. One window gives no interval", 2: "long enough for 2 of the 8"} {
		p.Text = strings.Repeat("abcdefghi ", 40*windows+20)
		samples, err := run(t, p, v[:1], evaluation.Options{Model: options})
		if err != nil {
			t.Fatal(err)
		}
		s := evaluation.Summarise(samples, p.Lengths)
		notes := strings.Join(p.Notes(s), " ")
		if len(samples) != windows || s.Readings[0].Windows != windows || (s.Readings[0].High > 0) != (windows > 1) || !strings.Contains(notes, note) {
			t.Errorf("%d windows, %+v, %q; want %d and %q", len(samples), s.Readings, notes, windows, note)
		}
	}
}
