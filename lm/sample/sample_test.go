package sample

import (
	"encoding/json"
	"math"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"testing"
)

type golden struct {
	Name    string
	Options struct {
		Temperature float64
		TopK        int     `json:"top_k"`
		TopP        float64 `json:"top_p"`
		MinP        float64 `json:"min_p"`
		Repetition  float64 `json:"repetition_penalty"`
	}
	Past   []int64
	Logits []*float32 // nil hides
	Kept   []int
	P      []float64
	Error  float64
	Log    []float64
}

func readGoldens(t *testing.T) (list []golden) {
	t.Helper()
	b, err := os.ReadFile("testdata/choices.json")
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(b, &list); err != nil {
		t.Fatal(err)
	}
	if len(list) < 50 {
		t.Fatalf("there are %d cases", len(list))
	}
	return list
}

func (g golden) logits() []float32 {
	var list []float32
	for _, x := range g.Logits {
		if x == nil {
			list = append(list, float32(math.Inf(-1)))
		} else {
			list = append(list, *x)
		}
	}
	return list
}

// The tokens that are left, and their probabilities, are those of transformers' logits
// processors (testdata/make.py), with at most twice the error that these have in float32.
func TestEqualsTransformers(t *testing.T) {
	for _, g := range readGoldens(t) {
		logits, o := g.logits(), g.Options
		temperature := o.Temperature
		if temperature == 0 {
			temperature = 1 // no options: all tokens
		}
		s, err := New(Options{Temperature: temperature, TopK: o.TopK, TopP: o.TopP, MinP: o.MinP, RepetitionPenalty: o.Repetition, LogProbs: true, Seed: 1})
		if err != nil {
			t.Fatal(err)
		}
		choice, err := s.Next(logits, g.Past)
		if err != nil {
			t.Fatalf("%s: %v", g.Name, err)
		}
		total, p := 0.0, map[int]float64{}
		for _, c := range s.kept {
			total += c.p
		}
		for _, c := range s.kept {
			if c.p > 0 {
				p[c.token] = c.p / total
			}
		}
		if len(p) != len(g.Kept) {
			t.Errorf("%s: %d tokens are left, want %d", g.Name, len(p), len(g.Kept))
		}
		for i, token := range g.Kept {
			if off := math.Abs(p[token] - g.P[i]); !(off <= 2*g.Error+1e-12) {
				t.Errorf("%s: token %d has probability %g, want %g (the error in float32 is %.1g)", g.Name, token, p[token], g.P[i], g.Error)
			}
		}
		if want := math.Log(p[int(choice.Token)]); !(math.Abs(choice.Drawn-want) <= 1e-9) {
			t.Errorf("%s: token %d was drawn with %g, want %g", g.Name, choice.Token, choice.Drawn, want)
		}
		all, err := LogSoftmax(nil, logits)
		if err != nil || choice.LogProb != all[choice.Token] {
			t.Errorf("%s: LogProb %g, want %g, %v", g.Name, choice.LogProb, all[choice.Token], err)
		}
		for i, want := range g.Log {
			if !(math.Abs(all[i]-want) <= 1e-12*math.Max(1, math.Abs(want))) {
				t.Errorf("%s: ln p of token %d is %g, want %g", g.Name, i, all[i], want)
			}
		}
	}
}

// Tokens come as often as their probabilities say: χ² over 6 tokens stays below its 99.9 %
// value of 20.5, with a seed that is fixed.
func TestDrawsByProbability(t *testing.T) {
	logits := []float32{0, 1, 2, -1, 0.5, 1.5}
	s, err := New(Options{Temperature: 1, Seed: 11})
	if err != nil {
		t.Fatal(err)
	}
	const draws = 200_000
	counts := make([]float64, len(logits))
	for range draws {
		c, err := s.Next(logits, nil)
		if err != nil {
			t.Fatal(err)
		}
		counts[c.Token]++
	}
	logs, _ := LogSoftmax(nil, logits)
	chi := 0.0
	for i, n := range counts {
		want := draws * math.Exp(logs[i])
		chi += (n - want) * (n - want) / want
	}
	if chi > 20.5 {
		t.Errorf("χ² = %g: %v", chi, counts)
	}
}

func TestGreedy(t *testing.T) {
	s, err := New(Options{})
	if err != nil {
		t.Fatal(err)
	}
	if c, err := s.Next([]float32{1, 3, 3, 2}, []int64{1}); err != nil || c.Token != 1 || c.Drawn != 0 {
		t.Errorf("%+v, %v: the first of the best was expected", c, err)
	}
	if s, err = New(Options{RepetitionPenalty: 2}); err != nil {
		t.Fatal(err)
	}
	if c, err := s.Next([]float32{1, 3, 2, -1}, []int64{1, 1, 99, -4}); err != nil || c.Token != 2 {
		t.Errorf("%+v, %v: a repeated token is less likely", c, err)
	}
}

func TestSameSeedSameTokens(t *testing.T) {
	logits := make([]float32, 100)
	draw := func(seed uint64) (tokens []int64) {
		s, err := New(Options{Temperature: 1, Seed: seed})
		if err != nil {
			t.Fatal(err)
		}
		for range 50 {
			c, _ := s.Next(logits, nil)
			tokens = append(tokens, c.Token)
		}
		return tokens
	}
	if !slices.Equal(draw(5), draw(5)) || slices.Equal(draw(5), draw(6)) || slices.Equal(draw(0), draw(0)) {
		t.Error("a seed names the tokens, and 0 draws one")
	}
}

func TestRefuses(t *testing.T) {
	nan, inf := math.NaN(), math.Inf(1)
	for want, o := range map[string]Options{
		"Temperature":       {Temperature: -1},
		"TopK":              {TopK: -1},
		"TopP 1.5":          {TopP: 1.5},
		"MinP":              {MinP: nan},
		"RepetitionPenalty": {RepetitionPenalty: inf},
	} {
		if _, err := New(o); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%+v: %v", o, err)
		}
	}
	s, err := New(Options{Temperature: 1})
	if err != nil {
		t.Fatal(err)
	}
	for want, logits := range map[string][]float32{
		"token 1 is not a number": {1, float32(nan)},
		"no token has a finite":   {float32(-inf), float32(-inf)},
		"no token":                {},
		"infinite values":         {0, float32(inf)},
	} {
		if _, err := s.Next(logits, nil); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v: %v", logits, err)
		}
	}
}

func FuzzNext(f *testing.F) {
	f.Add(uint64(1), 1.0, 5, 0.9, 0.1, 1.2)
	f.Fuzz(func(t *testing.T, seed uint64, temperature float64, k int, p, least, penalty float64) {
		s, err := New(Options{Temperature: temperature, TopK: k, TopP: p, MinP: least, RepetitionPenalty: penalty, LogProbs: true, Seed: seed})
		if err != nil {
			return
		}
		rng := rand.New(rand.NewPCG(seed, 1))
		logits := make([]float32, 1+rng.IntN(40))
		for i := range logits {
			logits[i] = float32(rng.NormFloat64() * math.Pow(10, float64(rng.IntN(40))-3))
		}
		c, err := s.Next(logits, []int64{0, 3, 3})
		if err == nil && (c.Token < 0 || c.Token >= int64(len(logits)) || math.IsNaN(c.LogProb) || c.LogProb > 1e-9) {
			t.Errorf("%+v of %v", c, logits)
		}
	})
}

func BenchmarkNext(b *testing.B) {
	logits := make([]float32, 128_000)
	rng := rand.New(rand.NewPCG(1, 1))
	for i := range logits {
		logits[i] = float32(3 * rng.NormFloat64())
	}
	for name, o := range map[string]Options{"greedy": {}, "greedy with log probabilities": {LogProbs: true}, "all": {Temperature: 0.8, TopK: 50, TopP: 0.95, MinP: 0.01, RepetitionPenalty: 1.1}, "top-p": {Temperature: 1, TopP: 0.9}} {
		b.Run(name, func(b *testing.B) {
			s, _ := New(o)
			b.ReportAllocs()
			for b.Loop() {
				if _, err := s.Next(logits, []int64{5, 6, 7}); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
