package recommend_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/rope-rewrite/rope-rewrite/cmd/internal/cli"
	"github.com/rope-rewrite/rope-rewrite/cmd/internal/evaluation"
	"github.com/rope-rewrite/rope-rewrite/cmd/internal/recommend"
	"github.com/rope-rewrite/rope-rewrite/rewrite"
	"github.com/rope-rewrite/rope-rewrite/rope"
)

// solver is a model of which one knows what it can do.
type solver struct {
	solved  func(method string, length int) float64 // share of the questions
	refused string                                  // a method that it does not take
	asked   map[string]int                          // questions of each method and length
}

func (s *solver) measure(_ context.Context, ask recommend.Ask) (list []evaluation.Sample, err error) {
	if ask.Method == s.refused {
		return nil, errors.New("its frequencies are scaled already")
	}
	for _, length := range ask.Lengths {
		s.asked[fmt.Sprintf("%s %d", ask.Method, length)] = ask.Samples
		for _, task := range ask.Tasks {
			for i := range ask.Samples {
				x := evaluation.Sample{Variant: ask.Method, Task: task, Length: length, Index: i, Seconds: 1}
				x.Right = float64(i) < s.solved(ask.Method, length)*float64(ask.Samples)
				if task == evaluation.Perplexity {
					x.UpTo = []evaluation.UpTo{{Length: length, All: 2, Last: 2}}
				}
				list = append(list, x)
			}
		}
	}
	return list, nil
}

func TestSearch(t *testing.T) {
	upTo := func(limits map[string]int) func(string, int) float64 {
		return func(method string, length int) float64 {
			if length <= limits[method] {
				return 1
			}
			return 0
		}
	}
	yarn, selfExtend := "scaling yarn:factor=3", "positions self-extend:window=1024,group=2"
	for _, c := range []struct {
		name    string
		solved  func(string, int) float64
		trained int64
		verdict recommend.Verdict
		best    string
		reaches int64
	}{
		{"fails from its trained length on", upTo(map[string]int{"none": 8192, yarn: 12288}), 8192, recommend.Method, yarn, 8192},
		{"fails before", upTo(map[string]int{"none": 4096, "positions self-extend:window=512,group=4": 12288}), 8192, recommend.Method, "positions self-extend:window=512,group=4", 4096},
		{"an unknown trained length", upTo(map[string]int{"none": 8192, selfExtend: 12288}), 0, recommend.Method, selfExtend, 8192},
		{"fails nowhere", upTo(map[string]int{"none": 12288}), 8192, recommend.NothingNeeded, "", 12288},
		{"nothing helps", upTo(map[string]int{"none": 8192}), 8192, recommend.NothingHelps, "", 8192},
		{"does not understand", upTo(nil), 8192, recommend.NotUnderstood, "", 0},
		{
			"is a little better with a method, by chance perhaps", func(method string, length int) float64 {
				switch {
				case length <= 8192:
					return 1
				case method == yarn:
					return 0.75
				}
				return 0.5
			}, 8192, recommend.NothingHelps, "", 8192,
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			model := &solver{c.solved, "scaling dynamic:factor=2", map[string]int{}}
			r, err := recommend.Search{Task: "kv", Trained: c.trained, Context: 12288, Samples: 20, Measure: model.measure}.Run(context.Background())
			if err != nil {
				t.Fatal(err)
			}
			if r.Verdict != c.verdict || r.Best != c.best || r.Effective != c.reaches {
				t.Errorf("%s, %q, up to %d; want %s, %q, up to %d", r.Verdict, r.Best, r.Effective, c.verdict, c.best, c.reaches)
			}
			if c.best == "" {
				return
			}
			best, _ := r.Share(c.best, 12288)
			plain, _ := r.Share(recommend.Unchanged, 12288)
			if best.Low <= plain.High || best.Samples != 20 {
				t.Errorf("%+v is not better than %+v", best, plain)
			}
			if below, measured := r.Share(c.best, int(c.reaches)); !measured || below.Samples != 20 {
				t.Errorf("below the context %+v was measured", below)
			}
			if c.trained == 8192 && c.reaches == 8192 && (len(r.Left) == 0 || !strings.Contains(r.Left[0].Reason, "scaled already")) {
				t.Errorf("left out: %v", r.Left)
			}
		})
	}
}

// Methods that are worse get few questions.
func TestFewQuestions(t *testing.T) {
	model := &solver{func(method string, length int) float64 {
		if length <= 8192 || strings.Contains(method, "factor=4") {
			return 1
		}
		return 0
	}, "", map[string]int{}}
	r, err := recommend.Search{Task: "kv", Trained: 8192, Context: 16384, Samples: 20, Perplexity: true, Measure: model.measure}.Run(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	few := 0
	for _, n := range model.asked {
		if n == 5 {
			few++
		}
	}
	if r.Best != "scaling yarn:factor=4" || few < 3 {
		t.Errorf("%q is best, %d methods have few questions", r.Best, few)
	}
	if len(r.Readings) == 0 || !slices.ContainsFunc(r.Readings, func(x evaluation.Reading) bool { return x.Loss != nil }) {
		t.Errorf("readings %+v", r.Readings)
	}
}

// Methods that cost more are not tried once three are good, but for those that a user names.
func TestEnough(t *testing.T) {
	for _, named := range []bool{false, true} {
		model := &solver{func(method string, length int) float64 {
			if length <= 8192 || method != recommend.Unchanged {
				return 1
			}
			return 0
		}, "", map[string]int{}}
		s := recommend.Search{Task: "kv", Trained: 8192, Context: 16384, Samples: 20, Measure: model.measure}
		if named {
			s.Candidates = recommend.Candidates(8192, 16384)
		}
		r, err := s.Run(context.Background())
		if err != nil {
			t.Fatal(err)
		}
		if all := recommend.Candidates(8192, 16384); r.Best != all[0] || (len(r.Left) == len(all)-3) == named {
			t.Errorf("%q is best, %v were left out", r.Best, r.Left)
		}
	}
}

// What was measured before an error stands.
func TestSearchFails(t *testing.T) {
	broken := errors.New("no memory left")
	s := recommend.Search{Task: "kv", Context: 4096, Samples: 5, Measure: func(context.Context, recommend.Ask) ([]evaluation.Sample, error) {
		return []evaluation.Sample{{Variant: recommend.Unchanged, Task: "kv", Length: 2048, Right: true}}, broken
	}}
	r, err := s.Run(context.Background())
	if !errors.Is(err, broken) || len(r.Measured) != 1 {
		t.Errorf("%v, %v", err, r.Measured)
	}
}

// Every candidate is a method, and none leaves the trained distances where its parameters decide that.
func TestCandidates(t *testing.T) {
	for _, c := range []struct{ trained, context int64 }{{8192, 8193}, {8192, 12288}, {8192, 16384}, {2048, 131072}, {32768, 1 << 20}, {100, 300}} {
		list := recommend.Candidates(c.trained, c.context)
		if len(list) < 6 {
			t.Errorf("%v: only %v", c, list)
		}
		for _, method := range list {
			checkMethod(t, method, c.trained, c.context)
		}
	}
	if list := recommend.Candidates(8192, 8192); list != nil {
		t.Errorf("%v for a context within the trained one", list)
	}
}

// checkMethod applies a method, whose warnings say where it leaves the trained distances.
func checkMethod(t *testing.T, method string, trained, length int64) {
	t.Helper()
	var options rewrite.Options
	if err := cli.AddMethod(&options, method); err != nil {
		t.Fatalf("%s: %v", method, err)
	}
	a := rope.Attention{Heads: 1, KVHeads: 1, HeadSize: 64, Mask: rope.Mask{Causal: true}, Encoding: rope.Encoding{Frequencies: make([]float64, 32)}}
	for i := range a.Encoding.Frequencies {
		a.Encoding.Frequencies[i] = math.Pow(10000, -float64(i)/32)
	}
	known := rope.Context{Original: trained, Length: length, Theta: 10000}
	known.Reachable = rope.Reachable(options.Edits, known)
	for _, spec := range options.Edits {
		_, warnings, err := spec.Apply(a, known)
		if err != nil || len(warnings) > 0 {
			t.Errorf("%s, trained for %d, at %d: %v, %v", method, trained, length, warnings, err)
		}
	}
}
