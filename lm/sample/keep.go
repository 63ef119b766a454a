package sample

import (
	"cmp"
	"container/heap"
	"math"
	"slices"
)

// candidate is a token that may be drawn.
type candidate struct {
	token int
	score float32 // over the temperature
	p     float64 // not divided by their sum
}

// candidates are a heap whose first is the best one.
type candidates []candidate

func (c candidates) Len() int { return len(c) }

func (c candidates) Less(i, j int) bool { return better(c[i], c[j]) < 0 }

func (c candidates) Swap(i, j int) { c[i], c[j] = c[j], c[i] }

func (c *candidates) Push(x any) { *c = append(*c, x.(candidate)) }

func (c *candidates) Pop() any {
	last := (*c)[len(*c)-1]
	*c = (*c)[:len(*c)-1]
	return last
}

// better orders candidates, the best first, and of equal ones the first token.
func better(a, b candidate) int {
	return cmp.Or(cmp.Compare(b.score, a.score), cmp.Compare(a.token, b.token))
}

// keep fills the candidates from scores, whose largest is best.
func (s *Sampler) keep(scores []float32, best float32) {
	o := s.options
	temperature := float32(o.Temperature)
	s.kept = s.kept[:0]
	top := best / temperature
	if math.IsInf(float64(top), 0) || math.IsNaN(float64(top)) { // a temperature so small that only the best is left
		for i, x := range scores {
			if x == best {
				s.kept = append(s.kept, candidate{i, x, 1})
			}
		}
		return
	}
	floor := float32(math.Inf(-1))
	if o.TopK > 0 && o.TopK < len(scores) {
		floor = s.kth(scores, o.TopK) / temperature
	}
	for i, x := range scores {
		if x /= temperature; x >= floor && !math.IsInf(float64(x), -1) {
			s.kept = append(s.kept, candidate{token: i, score: x, p: math.Exp(float64(x) - float64(top))})
		}
	}
	if o.TopP > 0 && o.TopP < 1 {
		s.keepTopP(o.TopP)
	}
	if o.MinP > 0 { // the best one has p = 1 here
		s.kept = slices.DeleteFunc(s.kept, func(c candidate) bool { return c.p < o.MinP })
	}
}

// kth is the k-th largest score.
func (s *Sampler) kth(scores []float32, k int) float32 {
	// The worst of the best k so far is the first of a heap by the opposite order.
	worst := s.kept[:0]
	for i, x := range scores {
		switch {
		case len(worst) < k:
			worst = append(worst, candidate{token: i, score: -x})
			if len(worst) == k {
				heap.Init(&worst)
			}
		case -x < worst[0].score:
			worst[0].score = -x
			heap.Fix(&worst, 0)
		}
	}
	s.kept = worst[:0]
	return -worst[0].score
}

// keepTopP keeps the best candidates up to the one with which their sum reaches p.
func (s *Sampler) keepTopP(p float64) {
	total := 0.0
	for _, c := range s.kept {
		total += c.p
	}
	rest := s.kept
	heap.Init(&rest)
	// The best ones are moved behind the heap, from its end on, and put in order then.
	sum := 0.0
	for len(rest) > 0 && sum < p*total {
		last := len(rest) - 1
		rest.Swap(0, last)
		sum += rest[last].p
		rest = rest[:last]
		if last > 0 {
			heap.Fix(&rest, 0)
		}
	}
	chosen := s.kept[len(rest):]
	slices.SortFunc(chosen, better)
	s.kept = append(s.kept[:0], chosen...)
}

// draw returns a candidate by chance, and the logarithm of its probability.
func (s *Sampler) draw() (token int, logProb float64) {
	total := 0.0
	for _, c := range s.kept {
		total += c.p
	}
	at := s.rng.Float64() * total
	last := s.kept[len(s.kept)-1]
	for _, c := range s.kept {
		if at -= c.p; at < 0 {
			last = c
			break
		}
	}
	return last.token, math.Log(last.p / total)
}
