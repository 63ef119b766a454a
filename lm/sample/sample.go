package sample

import (
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
)

// Options says how tokens are chosen. The zero value takes the best token each time.
type Options struct {
	Temperature       float64 // divides the logits; 0 takes the best token
	TopK              int     // only the best k tokens, and those that are as good as the last of them; 0 is all
	TopP              float64 // only the fewest best tokens whose probabilities reach p together; 0 and 1 are all
	MinP              float64 // only tokens with at least this share of the best one's probability; 0 is all
	RepetitionPenalty float64 // above 1 makes tokens that the text has less likely; 0 and 1 change nothing (Keskar et al., CTRL, 2019)
	LogProbs          bool    // fill Choice.LogProb, which takes as long as a small layer of a model
	Top               int     // how many of the likeliest tokens Choice.Top has; above 0 fills LogProb too
	Seed              uint64  // the same seed draws the same tokens; 0 chooses a random seed
}

// Sampler draws tokens. It must not be used by several goroutines at once.
type Sampler struct {
	options Options
	rng     *rand.Rand
	scores  []float32
	seen    map[int64]bool
	kept    candidates
}

// Choice is a token that was chosen.
type Choice struct {
	Token   int64
	LogProb float64 // by the model's own logits: ln softmax(logits)[Token]; 0 unless Options.LogProbs or Top
	Drawn   float64 // the same of the distribution that it was drawn from; 0 where the best token was taken
	Top     []Likelihood
}

// Likelihood is what a token's logits say of it.
type Likelihood struct {
	Token   int64
	LogProb float64 // ln softmax(logits)[Token]
}

// New checks the options. The error names one that is out of range.
func New(o Options) (*Sampler, error) {
	for _, c := range []struct {
		name  string
		value float64
		most  float64
	}{
		{"Temperature", o.Temperature, math.MaxFloat64}, {"TopP", o.TopP, 1}, {"MinP", o.MinP, 1},
		{"RepetitionPenalty", o.RepetitionPenalty, math.MaxFloat64}, {"TopK", float64(o.TopK), math.MaxInt32}, {"Top", float64(o.Top), math.MaxInt32},
	} {
		if !(c.value >= 0 && c.value <= c.most) {
			return nil, fmt.Errorf("%s %g: expected a number from 0 to %g", c.name, c.value, c.most)
		}
	}
	seed := o.Seed
	if seed == 0 {
		seed = rand.Uint64()
	}
	return &Sampler{options: o, rng: rand.New(rand.NewPCG(seed, 0)), seen: map[int64]bool{}}, nil
}

// Next chooses a token. logits are the model's scores of the next token; they are not
// changed. past are the tokens of the text, for the repetition penalty.
func (s *Sampler) Next(logits []float32, past []int64) (Choice, error) {
	best, err := largest(logits)
	if err != nil {
		return Choice{}, err
	}
	o := s.options
	of := func(token int) float64 { return 0 }
	if o.LogProbs || o.Top > 0 {
		sum := logSum(logits, logits[best])
		of = func(token int) float64 { return float64(logits[token]) - sum }
	}
	choice := Choice{Top: s.top(logits, of)}
	scores := logits
	if o.RepetitionPenalty != 0 && o.RepetitionPenalty != 1 {
		scores = s.penalised(logits, past)
		best = slices.Index(scores, slices.Max(scores))
	}
	if o.Temperature == 0 {
		choice.Token, choice.LogProb = int64(best), of(best)
		return choice, nil
	}
	s.keep(scores, scores[best])
	at, drawn := s.draw()
	choice.Token, choice.LogProb, choice.Drawn = int64(at), of(at), drawn
	return choice, nil
}

// top are the likeliest tokens, the best first.
func (s *Sampler) top(logits []float32, of func(int) float64) (list []Likelihood) {
	n := min(s.options.Top, len(logits))
	if n == 0 {
		return nil
	}
	floor := s.kth(logits, n)
	s.kept = s.kept[:0]
	for i, x := range logits {
		if x >= floor {
			s.kept = append(s.kept, candidate{token: i, score: x})
		}
	}
	slices.SortFunc(s.kept, better)
	for _, c := range s.kept[:n] {
		list = append(list, Likelihood{int64(c.token), of(c.token)})
	}
	return list
}

// LogSoftmax appends ln softmax(logits) to into.
func LogSoftmax(into []float64, logits []float32) ([]float64, error) {
	best, err := largest(logits)
	if err != nil {
		return nil, err
	}
	sum := logSum(logits, logits[best])
	for _, x := range logits {
		into = append(into, float64(x)-sum)
	}
	return into, nil
}

// negligible is a difference of logits whose exponential is nothing beside 1, for any
// number of tokens.
const negligible = 60

// largest returns the place of the first of the largest logits.
func largest(logits []float32) (best int, err error) {
	for i, x := range logits {
		if x != x {
			return 0, fmt.Errorf("the score of token %d is not a number: the model computes infinite or undefined values", i)
		}
		if x > logits[best] {
			best = i
		}
	}
	if len(logits) == 0 || math.IsInf(float64(logits[best]), 0) {
		return 0, errors.New("no token has a finite score: the model computes infinite values")
	}
	return best, nil
}

// logSum returns ln Σ exp(logits).
func logSum(logits []float32, largest float32) (sum float64) {
	for _, x := range logits {
		if d := float64(x) - float64(largest); d > -negligible {
			sum += math.Exp(d)
		}
	}
	return float64(largest) + math.Log(sum)
}

// penalised are the scores with those of past tokens made smaller.
func (s *Sampler) penalised(logits []float32, past []int64) []float32 {
	s.scores = append(s.scores[:0], logits...)
	clear(s.seen)
	for _, t := range past {
		if t < 0 || t >= int64(len(logits)) || s.seen[t] {
			continue
		}
		s.seen[t] = true
		if penalty := float32(s.options.RepetitionPenalty); s.scores[t] < 0 {
			s.scores[t] *= penalty
		} else {
			s.scores[t] /= penalty
		}
	}
	return s.scores
}
