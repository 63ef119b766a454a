package ref_test

import (
	"encoding/json"
	"math"
	"os"
	"slices"
	"testing"

	"github.com/rope-rewrite/rope-rewrite/rope"
	"github.com/rope-rewrite/rope-rewrite/rope/ref"
)

// distancesCase is an attention with a bias by distance that make_distances.py computed in float64.
type distancesCase struct {
	Model, Name                       string
	Heads, Size, Batch, Length, Past  int
	Causal                            bool
	Query, Key, Value, Output, Slopes []float64
	Real                              []bool
	Shown                             bool // distances count the keys that are real
	Starts                            []int64
	Biases                            [][]float64
}

// TestDistancesOfModels: ALiBi of BLOOM and MPT and T5's buckets, with padding on the left, holes and
// a cache, are what transformers and NumPy compute.
func TestDistancesOfModels(t *testing.T) {
	data, err := os.ReadFile("../testdata/distances.json")
	if err != nil {
		t.Fatal(err)
	}
	var cases []distancesCase
	if err := json.Unmarshal(data, &cases); err != nil {
		t.Fatal(err)
	}
	if len(cases) < 20 {
		t.Fatalf("distances.json has %d cases", len(cases))
	}
	for _, c := range cases {
		t.Run(c.Model+"/"+c.Name, func(t *testing.T) {
			p := c.problem()
			got := mustRun(t, p)
			if d, bound := distance(got.Output, c.Output), c.bound(); !(d <= bound) {
				t.Errorf("off by %.2g, at most %.2g was expected", d, bound)
			}
		})
	}
}

func (c distancesCase) problem() ref.Problem {
	p := ref.Problem{
		Attention: rope.Attention{
			Heads: c.Heads, KVHeads: c.Heads, HeadSize: c.Size,
			Mask:     rope.Mask{Causal: c.Causal, Padding: true},
			Distance: rope.Distance{Slopes: c.Slopes, Starts: c.Starts, Biases: c.Biases, Shown: c.Shown},
		},
		Batch: c.Batch, Length: c.Length, Past: c.Past, Query: c.Query, KeyMask: c.Real,
	}
	if c.Slopes == nil {
		p.Attention.Scale = 1 // T5 does not divide
	}
	p.PastKey, p.Key = c.parted(c.Key)
	p.PastValue, p.Value = c.parted(c.Value)
	return p
}

// parted cuts keys or values of all tokens into those of the cache and the new ones.
func (c distancesCase) parted(all []float64) (past, present []float64) {
	total := (c.Past + c.Length) * c.Size
	for head := range c.Batch * c.Heads {
		rows := all[head*total:][:total]
		past = append(past, rows[:c.Past*c.Size]...)
		present = append(present, rows[c.Past*c.Size:]...)
	}
	return past, present
}

// bound is by how much two float64 computations may differ: a score is a sum of Size products and a
// bias, an output is a mean of values.
func (c distancesCase) bound() float64 {
	largest := func(list []float64) (most float64) {
		for _, x := range list {
			most = max(most, math.Abs(x))
		}
		return most
	}
	score := float64(c.Size)*largest(c.Query)*largest(c.Key) + largest(c.Slopes)*float64(c.Past+c.Length) + largest(slices.Concat(c.Biases...))
	const unit = 1.0 / (1 << 53)
	return 2 * unit * float64(c.Size+c.Past+c.Length) * (1 + score) * largest(c.Value)
}
