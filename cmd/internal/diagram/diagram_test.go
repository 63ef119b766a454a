package diagram_test

import (
	"bytes"
	"fmt"
	"math"
	"slices"
	"testing"

	"github.com/rope-rewrite/rope-rewrite/cmd/internal/diagram"
	"github.com/rope-rewrite/rope-rewrite/cmd/internal/figure"
	"github.com/rope-rewrite/rope-rewrite/rope"
	"github.com/rope-rewrite/rope-rewrite/rope/encoding"
	"github.com/rope-rewrite/rope-rewrite/rope/ref"
)

// attention is a causal one whose pairs turn once in 8 and in 64 tokens.
func attention() rope.Attention {
	return rope.Attention{
		Heads: 2, KVHeads: 1, HeadSize: 4, Mask: rope.Mask{Causal: true},
		Encoding: rope.Encoding{Frequencies: []float64{2 * math.Pi / 8, -2 * math.Pi / 64}},
	}
}

func edited(t *testing.T, axis rope.Axis, spec string) rope.Attention {
	t.Helper()
	s, err := rope.ParseSpec(axis, spec)
	if err != nil {
		t.Fatal(err)
	}
	a, _, err := s.Apply(attention(), rope.Context{Original: 64, Length: 128})
	if err != nil {
		t.Fatal(err)
	}
	return a
}

func TestWavelengths(t *testing.T) {
	f, err := diagram.Wavelengths([]diagram.Named{{Name: "before", Attention: attention()}, {Name: "after", Attention: edited(t, rope.ScalingAxis, "linear:factor=2")}}, 64, 128)
	if err != nil {
		t.Fatal(err)
	}
	for i, want := range [][]float64{{8, 64}, {16, 128}} {
		if got := f.Series[i].Y; !slices.EqualFunc(got, want, func(a, b float64) bool { return math.Abs(a-b) < 1e-5*b }) {
			t.Errorf("%s: %v, want %v", f.Series[i].Name, got, want)
		}
	}
	if len(f.Marks) != 1 || f.Marks[0].Y != 64 {
		t.Errorf("the trained length is %+v", f.Marks)
	}
	if _, err := diagram.Wavelengths([]diagram.Named{{Name: "nope", Attention: rope.Attention{}}}, 0, 0); err == nil {
		t.Error("an attention without a rotation was drawn")
	}
}

// STRING of shift 4 and window 2, written by hand from the paper's rule.
func TestPositions(t *testing.T) {
	m, err := diagram.Positions(edited(t, rope.PositionsAxis, "string:shift=4,window=2"), 7)
	if err != nil {
		t.Fatal(err)
	}
	n := math.NaN()
	want := [][]float64{
		{0, n, n, n, n, n, n},
		{1, 0, n, n, n, n, n},
		{2, 1, 0, n, n, n, n},
		{3, 2, 1, 0, n, n, n},
		{2, 3, 2, 1, 0, n, n},
		{3, 2, 3, 2, 1, 0, n},
		{4, 3, 2, 3, 2, 1, 0},
	}
	same := func(a, b float64) bool { return a == b || math.IsNaN(a) && math.IsNaN(b) }
	for i, row := range m.Values {
		if !slices.EqualFunc(row, want[i], same) {
			t.Errorf("query %d: %v, want %v", i, row, want[i])
		}
	}
	if m, err = diagram.Positions(attention(), 10000); err != nil || len(m.Values) != 256 || m.Values[255][0] != 9980-19 {
		t.Errorf("of 10,000 tokens %d rows are drawn, the farthest at %g, %v", len(m.Values), m.Values[255][0], err)
	}
}

func TestVisibility(t *testing.T) {
	m, err := diagram.Visibility(edited(t, rope.MaskAxis, "anchor"), []int64{0, 1, 1, 2, 2, -1}, 6)
	if err != nil {
		t.Fatal(err)
	}
	text := ""
	for _, row := range m.Values {
		for _, v := range row {
			if math.IsNaN(v) {
				text += "."
				continue
			}
			text += fmt.Sprint(v)
		}
		text += "\n"
	}
	if want := "1.....\n10....\n100...\n1..0..\n1..00.\n122223\n"; text != want {
		t.Errorf("who sees whom:\n%s\nwant\n%s", text, want)
	}
	if _, err := diagram.Visibility(edited(t, rope.MaskAxis, "anchor"), []int64{0, 1}, 3); err == nil {
		t.Error("two document ids for three tokens were accepted")
	}
}

// By hand: at distance 4 of the 8 and 64 of a turn the first pair is turned by half a turn, the
// second by a sixteenth backwards.
func TestDecay(t *testing.T) {
	f, err := diagram.Decay([]diagram.Named{{Name: "plain", Attention: attention()}}, 8)
	if err != nil {
		t.Fatal(err)
	}
	sum := math.Hypot(-1+math.Cos(math.Pi/8), -math.Sin(math.Pi/8))
	want := (1 + sum) / 2 / 1.5
	i := slices.Index(f.Series[0].X, 4)
	if i < 0 || math.Abs(f.Series[0].Y[i]-want) > 1e-12 {
		t.Errorf("at distance 4: %v %v, want %g", f.Series[0].X, f.Series[0].Y, want)
	}
}

// xPos multiplies the term of pair 0 by ζ^(4/512), ζ = 0.4/1.4, and of pair 1 with ζ = 0.9/1.4.
func TestDecayXPos(t *testing.T) {
	f, err := diagram.Decay([]diagram.Named{{Name: "xPos", Attention: attention(), XPos: encoding.XPos{Pairs: 2}}}, 8)
	if err != nil {
		t.Fatal(err)
	}
	first, second := math.Pow(0.4/1.4, 4./512), math.Pow(0.9/1.4, 4./512)
	sum := math.Hypot(-first+second*math.Cos(math.Pi/8), -second*math.Sin(math.Pi/8))
	want := (first + sum) / 2 / 1.5
	if i := slices.Index(f.Series[0].X, 4); math.Abs(f.Series[0].Y[i]-want) > 1e-12 {
		t.Errorf("at distance 4: %g, want %g", f.Series[0].Y[i], want)
	}
}

// By hand, at distance 4, with two pairs of base 10,000 that turn by 1 and 0.01 per token.
func TestDecayOf(t *testing.T) {
	cosines := (math.Cos(4) + math.Cos(0.04)) / 2
	hypot := func(x, y float64) float64 { // two pairs, turned by x and y
		return (1 + math.Hypot(math.Cos(x)+math.Cos(y), math.Sin(x)+math.Sin(y))) / 3
	}
	sandwich := 0.0
	for i := range 64 {
		sandwich += math.Cos(4*math.Pow(10000, -float64(i)/64)) / 64
	}
	first, second := math.Pow(0.4/1.4, 4./512), math.Pow(0.9/1.4, 4./512)
	decayed := (first + math.Hypot(first*math.Cos(4)+second*math.Cos(0.04), first*math.Sin(4)+second*math.Sin(0.04))) / 3
	rope := hypot(4, 0.04)
	want := map[string][]float64{
		"rope": {rope}, "none": {1}, "rope-bias": {cosines}, "linear-attention": {cosines}, "sinusoidal": {cosines},
		"sandwich": {sandwich}, "xpos": {rope, decayed},
		"rotation-2d": {rope, hypot(0, 4), hypot(4, 4)}, // each axis has one pair, which turns by 1
		"randomized":  {rope, -1, -1},                   // below
	}
	for _, name := range diagram.Decays {
		f, err := diagram.DecayOf(name, 4, 10000, 8)
		if err != nil || len(f.Series) != len(want[name]) {
			t.Fatalf("%s: %d lines, %v", name, len(f.Series), err)
		}
		for line, w := range want[name] {
			s := f.Series[line]
			if i := slices.Index(s.X, 4); i < 0 || w >= 0 && math.Abs(s.Y[i]-w) > 1e-12 {
				t.Errorf("%s, line %d, at distance 4: %v %v, want %g", name, line, s.X, s.Y, w)
			}
		}
	}
	if _, err := diagram.DecayOf("alibi", 4, 10000, 8); err == nil {
		t.Error("the decay of alibi was drawn")
	}
}

// Drawn positions: the mean, over 16 queries, of what lies four tokens before them.
func TestDecayOfDrawnPositions(t *testing.T) {
	a := attention()
	a.Drawn = rope.Drawn{Range: 64}
	f, err := diagram.Decay([]diagram.Named{{Name: "drawn", Attention: a}}, 20)
	if err != nil {
		t.Fatal(err)
	}
	p, want := a.Drawn.Positions(20), 0.0
	for query := 4; query < 20; query++ { // all that have such a key
		d := float64(p[query] - p[query-4])
		x, y := d*2*math.Pi/8, -d*2*math.Pi/64
		want += (1 + math.Hypot(math.Cos(x)+math.Cos(y), math.Sin(x)+math.Sin(y))) / 3 / 16
	}
	if i := slices.Index(f.Series[0].X, 4); math.Abs(f.Series[0].Y[i]-want) > 1e-12 {
		t.Errorf("at distance 4: %g, want %g", f.Series[0].Y[i], want)
	}
	if _, err := diagram.Decay([]diagram.Named{{Name: "drawn", Attention: a}}, 65); err == nil {
		t.Error("65 tokens were given 64 positions")
	}
}

// By hand, at distance 10 of 20 tokens.
func TestBias(t *testing.T) {
	for _, c := range []struct {
		name  string
		lines int
		first float64
	}{
		{"alibi", 4, -2.5},
		{"t5", 3, 10},
		{"kerple-log", 3, -math.Log(2)},
		{"kerple-power", 3, -math.Pow(10, 0.1)},
		{"sandwich", 4, 0},
	} {
		f, err := diagram.Bias(c.name, 4, 20)
		if err != nil {
			t.Fatal(err)
		}
		if len(f.Series) != c.lines || len(f.Series[0].X) != 20 || f.Series[0].X[10] != 10 {
			t.Errorf("%s: %d lines of %d points", c.name, len(f.Series), len(f.Series[0].X))
		}
		want := c.first
		for i := 0; c.name == "sandwich" && i < 64; i++ {
			want += math.Cos(10*math.Pow(10000, -float64(i)/64)) / 2
		}
		if got := f.Series[0].Y[10]; math.Abs(got-want) > 1e-12 {
			t.Errorf("%s: %g, want %g", c.name, got, want)
		}
	}
	f, err := diagram.Bias("alibi", 32, 100000)
	if err != nil || len(f.Series) != 8 || f.Series[7].Name != "head 31, slope 0.00391" || len(f.Series[0].X) > 1024 {
		t.Errorf("of 32 heads and 100,000 tokens: %d lines, %v", len(f.Series), err)
	}
	if len(diagram.Biases) != 5 {
		t.Errorf("only five of %q are tested", diagram.Biases)
	}
	if _, err := diagram.Bias("rope", 4, 20); err == nil {
		t.Error("a bias of rope was drawn")
	}
}

// The bias of a model's layer: slopes, and ranges of distances to both sides.
func TestModelBias(t *testing.T) {
	a := attention()
	a.Distance.Slopes = []float64{0.5, 0.25}
	f, err := diagram.ModelBias(3, a, 11)
	if err != nil || len(f.Series) != 2 || f.Series[1].Name != "head 1, slope 0.25" || f.Series[1].X[0] != 0 || f.Series[1].Y[10] != -2.5 {
		t.Errorf("slopes: %+v, %v", f, err)
	}
	a.Distance = rope.Distance{Starts: []int64{-2, 0, 3}, Biases: [][]float64{{7, 1}, {8, 2}, {9, 3}}}
	a.Mask.Causal = false
	f, err = diagram.ModelBias(0, a, 5)
	if err != nil || !slices.Equal(f.Series[0].X, []float64{-4, -3, -2, -1, 0, 1, 2, 3, 4}) || !slices.Equal(f.Series[1].Y, []float64{1, 1, 1, 1, 2, 2, 2, 3, 3}) {
		t.Errorf("ranges: %+v, %v", f, err)
	}
	if _, err := diagram.ModelBias(0, attention(), 5); err == nil {
		t.Error("a layer without a bias was drawn")
	}
}

// Keys that are all alike get the same weight: a query at place i gives 1/(i + 1) to each.
func TestAttended(t *testing.T) {
	a := attention()
	a.Encoding.Frequencies = []float64{0, 0}
	const n = 6
	p := ref.Problem{Attention: a, Batch: 1, Length: n, Query: make([]float64, 2*n*4), Key: make([]float64, n*4), Value: make([]float64, n*4)}
	f, err := diagram.Attended(3, p, -1)
	if err != nil {
		t.Fatal(err)
	}
	for i, x := range f.Series[0].X {
		want, count := 0.0, 0.0
		for q := int(x) - 1; q < n; q++ {
			want, count = want+1/float64(q+1), count+1
		}
		if got := f.Series[0].Y[i]; math.Abs(got-want/count) > 1e-12 {
			t.Errorf("at distance %g: %g, want %g", x-1, got, want/count)
		}
	}
	if _, err := diagram.Attended(3, p, 2); err == nil {
		t.Error("a head that the layer has not was drawn")
	}
}

func Example() {
	s, err := rope.ParseSpec(rope.PositionsAxis, "string:shift=4,window=2")
	if err != nil {
		fmt.Println(err)
		return
	}
	a, _, err := s.Apply(attention(), rope.Context{})
	if err != nil {
		fmt.Println(err)
		return
	}
	m, err := diagram.Positions(a, 8)
	if err != nil {
		fmt.Println(err)
		return
	}
	var b bytes.Buffer
	if err := m.Write(&b, "png", figure.Light); err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println("the last query sees the first key at", m.Values[7][0], "and the picture is a PNG:", bytes.HasPrefix(b.Bytes(), []byte("\x89PNG")))
	// Output: the last query sees the first key at 5 and the picture is a PNG: true
}

// By hand: one head of two channels that see nothing but the first key's 1, which the first query channel
// multiplies by 3, and a head that gives all keys the same weight.
func TestFirstToken(t *testing.T) {
	a := attention()
	a.Encoding.Frequencies, a.HeadSize, a.Scale = nil, 2, 1
	const n = 4
	p := ref.Problem{Attention: a, Batch: 1, Length: n, Query: make([]float64, 2*n*2), Key: make([]float64, n*2), Value: make([]float64, n*2)}
	p.Key[0] = 1
	for i := range n {
		p.Query[i*2] = 3 // of the first head
	}
	f, err := diagram.FirstToken([]diagram.LayerProblem{{Layer: 0, Problem: p}, {Layer: 5, Problem: p}})
	if err != nil {
		t.Fatal(err)
	}
	high, low := 0.0, 0.0
	for keys := 2; keys <= n; keys++ {
		high += math.Exp(3) / (math.Exp(3) + float64(keys-1)) / (n - 1)
		low += 1 / float64(keys) / (n - 1)
	}
	for i, want := range []float64{(high + low) / 2, high, low} {
		s := f.Series[i]
		if !slices.Equal(s.X, []float64{0, 5}) || math.Abs(s.Y[1]-want) > 1e-12 || s.Y[0] != s.Y[1] {
			t.Errorf("%s: %v at %v, want %g", s.Name, s.Y, s.X, want)
		}
	}
	p.Length = 1
	if _, err := diagram.FirstToken([]diagram.LayerProblem{{Problem: p}}); err == nil {
		t.Error("one token was drawn")
	}
	if _, err := diagram.FirstToken(nil); err == nil {
		t.Error("no layer was drawn")
	}
}
