package evaluation_test

import (
	"encoding/json"
	"math"
	"os"
	"reflect"
	"slices"
	"testing"

	"github.com/rope-rewrite/rope-rewrite/cmd/internal/evaluation"
)

// script is what a script in Python measured without our code (testdata/evaluate.py), on the original
// model, which is rewritten where we measure it.
type script struct {
	Seed     uint64
	Depths   []float64
	Answers  []evaluation.Sample
	Text     string
	Windows  int
	LogLoss  [][]float64 `json:"log_loss"`
	Readings []evaluation.Reading
}

func readScript(t *testing.T) (golden script) {
	t.Helper()
	b, err := os.ReadFile("testdata/samples.json")
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(b, &golden); err != nil {
		t.Fatal(err)
	}
	return golden
}

// Every sample of pass keys and needles at five lengths is the script's: its prompt, and what the model
// answers to the letter.
func TestSamplesOfScript(t *testing.T) {
	v, options := variants(t)
	golden := readScript(t)
	p := evaluation.Plan{Depths: golden.Depths, Samples: 1, Seed: golden.Seed, Windows: 1}
	for _, s := range golden.Answers {
		if !slices.Contains(p.Tasks, s.Task) {
			p.Tasks = append(p.Tasks, s.Task)
		}
		if !slices.Contains(p.Lengths, s.Length) {
			p.Lengths = append(p.Lengths, s.Length)
		}
	}
	if len(p.Tasks) != 2 || len(p.Lengths) != 5 {
		t.Fatalf("the script has %d tasks at %d lengths, want two at five", len(p.Tasks), len(p.Lengths))
	}
	samples, err := run(t, p, v[:1], evaluation.Options{Model: options})
	if err != nil {
		t.Fatal(err)
	}
	if len(samples) != len(golden.Answers) {
		t.Fatalf("%d samples, want %d", len(samples), len(golden.Answers))
	}
	for i, want := range golden.Answers {
		want.Variant = v[0].Name
		want.Prompt = samples[i].Prompt // of which TestTrialsOfScript has the digests
		if want.Right {
			want.Score = 1
		}
		if !reflect.DeepEqual(samples[i], want) {
			t.Errorf("%+v, want %+v", samples[i], want)
		}
	}
}

// Perplexities and their intervals are the script's, by ONNX Runtime's own logits, also at lengths that are no
// multiple of a block.
func TestPerplexity(t *testing.T) {
	v, options := variants(t)
	golden := readScript(t)
	p := evaluation.Plan{Tasks: []string{evaluation.Perplexity}, Depths: []float64{0}, Samples: 1, Windows: 3, Text: golden.Text}
	for _, r := range golden.Readings {
		p.Lengths = append(p.Lengths, r.Length)
	}
	samples, err := run(t, p, v[:1], evaluation.Options{Model: options})
	if err != nil {
		t.Fatal(err)
	}
	if len(samples) != golden.Windows {
		t.Fatalf("%d windows, want %d", len(samples), golden.Windows)
	}
	near := func(a, b float64) bool { return math.Abs(a-b) < 1e-5*math.Abs(b) }
	for i, want := range golden.LogLoss {
		if !slices.EqualFunc(samples[i].LogLoss, want, near) {
			t.Errorf("window %d: %v, want %v", i, samples[i].LogLoss, want)
		}
	}
	s := evaluation.Summarise(samples, p.Lengths)
	if len(s.Readings) != len(golden.Readings) {
		t.Fatalf("%d readings, want %d", len(s.Readings), len(golden.Readings))
	}
	for i, want := range golden.Readings {
		got := s.Readings[i]
		if !near(got.Perplexity, want.Perplexity) || !near(got.Last, want.Last) || !near(got.Low, want.Low) || !near(got.High, want.High) {
			t.Errorf("%d tokens: %+v, want %+v", want.Length, got, want)
		}
	}
}
