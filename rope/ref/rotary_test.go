package ref_test

import (
	"encoding/json"
	"math"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/rope-rewrite/rope-rewrite/rope"
	"github.com/rope-rewrite/rope-rewrite/rope/ref"
)

// rotaryCase is a case of testdata/make_rotary.py.
type rotaryCase struct {
	Name, By      string
	Shape         []int
	X, Want       []float64
	InvFreq       []float64 `json:"inv_freq"`
	TensorFormat  string    `json:"tensor_format"`
	Interleaved   bool
	Offset        int
	Gain          float64
	Inverse       bool
	Exact         bool
	Axes          []int
	PositionIDs   []int64 `json:"position_ids"`
	CuSeqlens     []int32 `json:"cu_seqlens"`
	SeqlenOffsets []int32 `json:"seqlen_offsets"`
	CPSize        int     `json:"cp_size"`
	CPRank        int     `json:"cp_rank"`
}

func (c rotaryCase) rotary() rope.Rotary {
	r := rope.Rotary{
		Encoding:     rope.Encoding{Frequencies: c.InvFreq, Gain: c.Gain, Axes: c.Axes, Offset: c.Offset, ExactAngles: c.Exact},
		TensorFormat: c.TensorFormat, Inverse: c.Inverse,
		PositionIDs: c.PositionIDs, CuSeqlens: c.CuSeqlens, SeqlenOffsets: c.SeqlenOffsets, CPSize: c.CPSize, CPRank: c.CPRank,
	}
	if c.Interleaved {
		r.Encoding.Layout = rope.Interleaved
	}
	return r
}

func rotaryCases(t *testing.T) (cases []rotaryCase) {
	t.Helper()
	data, err := os.ReadFile("../testdata/rotary.json")
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(data, &cases); err != nil {
		t.Fatal(err)
	}
	for _, c := range cases { // float32 numbers stand there as short as they can
		for _, list := range [][]float64{c.X, c.InvFreq} {
			for i, v := range list {
				list[i] = float64(float32(v))
			}
		}
	}
	return cases
}

func largest(x []float64) (most float64) {
	for _, v := range x {
		most = max(most, math.Abs(v))
	}
	return most
}

func narrowed(x []float64) (list []float32) {
	for _, v := range x {
		list = append(list, float32(v))
	}
	return list
}

func widened(x []float32) (list []float64) {
	for _, v := range x {
		list = append(list, float64(v))
	}
	return list
}

// What transformers and NumPy compute. Between transformers, in float32, and the reference lies no
// more than between a plain computation in float32 and the reference; ApplyRotary is such a one.
func TestRotaryGoldens(t *testing.T) {
	for _, c := range rotaryCases(t) {
		t.Run(c.Name, func(t *testing.T) {
			want, err := ref.Rotary(c.X, c.Shape, c.rotary())
			if err != nil {
				t.Fatal(err)
			}
			plain, err := ref.RotaryFloat32(c.X, c.Shape, c.rotary())
			if err != nil {
				t.Fatal(err)
			}
			allowed := 2 * max(distance(plain, want), largest(want)*0x1p-24)
			if c.By == "numpy" {
				allowed = largest(want) * 1e-9 // angles up to 131,071 in float64
			}
			if off := distance(c.Want, want); !(off <= allowed) {
				t.Errorf("the reference is off by %g, allowed %g", off, allowed)
			}
			applied, err := rope.ApplyRotary(narrowed(c.X), c.Shape, c.rotary())
			if err != nil {
				t.Fatal(err)
			}
			if off, allowed := distance(widened(applied), c.Want), 4*max(distance(plain, want), largest(want)*0x1p-24); !(off <= allowed) {
				t.Errorf("ApplyRotary is off by %g, allowed %g", off, allowed)
			}
		})
	}
}

// In place the argument is rotated, otherwise it stays as it is; the inverse of a rotation
// without gain brings it back.
func TestApplyRotaryInplace(t *testing.T) {
	for _, c := range rotaryCases(t) {
		r := c.rotary()
		r.Encoding.Gain = 0
		x := narrowed(c.X)
		turned, err := rope.ApplyRotary(x, c.Shape, r)
		if err != nil {
			t.Fatal(err)
		}
		if !slices.Equal(x, narrowed(c.X)) {
			t.Errorf("%s: the argument was changed", c.Name)
		}
		r.Inplace = true
		same, err := rope.ApplyRotary(x, c.Shape, r)
		if err != nil {
			t.Fatal(err)
		}
		if &same[0] != &x[0] || !slices.Equal(x, turned) {
			t.Errorf("%s: in place the result differs or is elsewhere", c.Name)
		}
		r.Inverse = !r.Inverse
		back, err := rope.ApplyRotary(x, c.Shape, r)
		if err != nil {
			t.Fatal(err)
		}
		if off := distance(widened(back), c.X); off > 8*largest(c.X)*0x1p-24 {
			t.Errorf("%s: turned and turned back it is off by %g", c.Name, off)
		}
	}
}

// The ranks' parts together are the whole sequence, each token once and where it stands alone.
func TestRanksHoldTheWhole(t *testing.T) {
	const whole, size = 24, 4
	for _, ranks := range []int{2, 3, 4} {
		x := make([]float64, whole*size)
		for i := range x {
			x[i] = float64(1 + i)
		}
		r := rope.Rotary{Encoding: rope.Encoding{Frequencies: []float64{1, 0.25}}, TensorFormat: "thd", CuSeqlens: []int32{0, whole}}
		want, err := ref.Rotary(x, []int{whole, 1, size}, r)
		if err != nil {
			t.Fatal(err)
		}
		chunk := whole / (2 * ranks) * size
		got := make([]float64, len(x))
		for rank := range ranks {
			first, last := rank*chunk, (2*ranks-1-rank)*chunk
			r.CPSize, r.CPRank = ranks, rank
			part, err := ref.Rotary(slices.Concat(x[first:first+chunk], x[last:last+chunk]), []int{whole / ranks, 1, size}, r)
			if err != nil {
				t.Fatal(err)
			}
			copy(got[first:], part[:chunk])
			copy(got[last:], part[chunk:])
		}
		if !slices.Equal(got, want) {
			t.Errorf("%d ranks together differ from the whole", ranks)
		}
	}
}

func TestRotaryRefusals(t *testing.T) {
	good := rope.Rotary{Encoding: rope.Encoding{Frequencies: []float64{1, 0.5}}}
	shape, packed := []int{1, 6, 1, 4}, []int{6, 1, 4}
	for name, c := range map[string]struct {
		shape  []int
		change func(*rope.Rotary)
		want   string
	}{
		"format":          {shape, func(r *rope.Rotary) { r.TensorFormat = "dsbh" }, `"dsbh"`},
		"shape":           {[]int{1, 5, 1, 4}, func(r *rope.Rotary) {}, "24 elements"},
		"rank":            {packed, func(r *rope.Rotary) {}, "4 dimensions"},
		"head size":       {shape, func(r *rope.Rotary) { r.Encoding.Offset = 1 }, "head size 4"},
		"axes":            {shape, func(r *rope.Rotary) { r.Encoding.Axes = []int{0, 1} }, "position ids"},
		"positions":       {shape, func(r *rope.Rotary) { r.PositionIDs = make([]int64, 5) }, "5 position ids"},
		"positions twice": {shape, func(r *rope.Rotary) { r.PositionIDs, r.SeqlenOffsets = make([]int64, 6), []int32{1} }, "say all positions"},
		"offsets":         {shape, func(r *rope.Rotary) { r.SeqlenOffsets = []int32{1, 2} }, "2 SeqlenOffsets for 1"},
		"negative":        {shape, func(r *rope.Rotary) { r.SeqlenOffsets = []int32{-1} }, "must not be negative"},
		"bounds missing":  {packed, func(r *rope.Rotary) { r.TensorFormat = "thd" }, "given together"},
		"bounds descend":  {packed, func(r *rope.Rotary) { r.TensorFormat, r.CuSeqlens = "thd", []int32{0, 4, 2, 6} }, "not descend"},
		"bounds end":      {packed, func(r *rope.Rotary) { r.TensorFormat, r.CuSeqlens = "thd", []int32{0, 4} }, "end with 4"},
		"rank of none":    {shape, func(r *rope.Rotary) { r.CPRank = 1 }, "rank 1 of 1"},
		"odd part":        {[]int{2, 3, 1, 4}, func(r *rope.Rotary) { r.CPSize = 2 }, "3 tokens"},
		"uneven sequence": {packed, func(r *rope.Rotary) { r.TensorFormat, r.CuSeqlens, r.CPSize = "thd", []int32{0, 6, 12}, 2 }, "sequence 0 has 6 tokens"},
	} {
		r := good
		c.change(&r)
		if _, err := rope.ApplyRotary(make([]float32, 24), c.shape, r); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: the error is %v, want one with %q", name, err, c.want)
		}
	}
}
