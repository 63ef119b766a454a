package evaluation

import (
	"cmp"
	"fmt"
	"math"
	"slices"
)

// Cell is what the samples of one variant, task, length and depth show.
type Cell struct {
	Variant string  `json:"variant"`
	Task    string  `json:"task"`
	Length  int     `json:"length"`
	Depth   float64 `json:"depth"`
	Right   int     `json:"right"`
	Samples int     `json:"samples"`
	Rate    float64 `json:"rate"`
	Low     float64 `json:"low"` // of the interval of 95 % (Wilson)
	High    float64 `json:"high"`
	Seconds float64 `json:"seconds"` // that its samples took
}

// Reading is what the windows of a text show up to one length.
type Reading struct {
	Variant    string  `json:"variant"`
	Length     int     `json:"length"`
	Windows    int     `json:"windows"`
	Perplexity float64 `json:"perplexity"` // of all tokens of the windows up to the length
	Low        float64 `json:"low"`        // of the interval of 95 % by the windows' means; 0 and 0 for one window
	High       float64 `json:"high"`
	Last       float64 `json:"last"` // perplexity of the last 512 tokens before the length alone
}

// Curve is the perplexity by position, which shows where a model breaks.
type Curve struct {
	Variant    string    `json:"variant"`
	Block      int       `json:"block"` // tokens of each number
	Perplexity []float64 `json:"perplexity"`
}

// Summary is what an evaluation found.
type Summary struct {
	Cells    []Cell    `json:"cells"`
	Readings []Reading `json:"readings"`
	Curves   []Curve   `json:"curves"`
}

// Summarise makes cells and readings of samples, in the order in which variants and tasks first
// come.
func Summarise(samples []Sample, lengths []int) Summary {
	s := Summary{Cells: []Cell{}, Readings: []Reading{}, Curves: []Curve{}}
	type at struct {
		variant, task string
		length        int
		depth         float64
	}
	where := map[at]int{}
	variants := map[string][]Sample{} // windows
	var order []string
	for _, x := range samples {
		if x.Task == Perplexity {
			if variants[x.Variant] == nil {
				order = append(order, x.Variant)
			}
			variants[x.Variant] = append(variants[x.Variant], x)
			continue
		}
		k := at{x.Variant, x.Task, x.Length, x.Depth}
		i, known := where[k]
		if !known {
			i = len(s.Cells)
			where[k] = i
			s.Cells = append(s.Cells, Cell{Variant: x.Variant, Task: x.Task, Length: x.Length, Depth: x.Depth})
		}
		c := &s.Cells[i]
		c.Samples++
		c.Seconds += x.Seconds
		if x.Right {
			c.Right++
		}
	}
	for i := range s.Cells {
		c := &s.Cells[i]
		c.Rate = float64(c.Right) / float64(c.Samples)
		c.Low, c.High = wilson(c.Right, c.Samples)
	}
	for _, name := range order {
		for _, length := range lengths {
			if r, ok := reading(variants[name], length); ok {
				s.Readings = append(s.Readings, r)
			}
		}
		s.Curves = append(s.Curves, curve(variants[name]))
	}
	return s
}

// reading is what windows show up to a length: those of that length, or the next longer ones.
func reading(windows []Sample, length int) (r Reading, ok bool) {
	fits := 0
	for _, w := range windows {
		if w.Length >= length && (fits == 0 || w.Length < fits) {
			fits = w.Length
		}
	}
	if fits == 0 {
		return r, false
	}
	var means, last []float64
	for _, w := range windows {
		if w.Length == fits {
			means = append(means, mean(w.LogLoss, 0, length))
			last = append(last, mean(w.LogLoss, max(length-2*Block, 0), length))
			r.Variant = w.Variant
		}
	}
	middle, half := spread(means)
	r.Length, r.Windows, r.Perplexity = length, len(means), math.Exp(middle)
	if len(means) > 1 {
		r.Low, r.High = math.Exp(middle-half), math.Exp(middle+half)
	}
	middle, _ = spread(last)
	r.Last = math.Exp(middle)
	return r, true
}

// mean is that of the tokens from one to another, of blocks that have means of their own.
func mean(blocks []float64, from, to int) float64 {
	sum, n := 0.0, 0.0
	for i, x := range blocks {
		tokens := min((i+1)*Block, to) - max(i*Block, from, 1)
		if tokens > 0 {
			sum, n = sum+x*float64(tokens), n+float64(tokens)
		}
	}
	return sum / n
}

// spread is the mean of some numbers, and half the interval of 95 % of it (the normal
// distribution's, of the standard error).
func spread(x []float64) (middle, half float64) {
	for _, v := range x {
		middle += v / float64(len(x))
	}
	if len(x) < 2 {
		return middle, 0
	}
	square := 0.0
	for _, v := range x {
		square += (v - middle) * (v - middle)
	}
	return middle, z * math.Sqrt(square/float64(len(x)-1)/float64(len(x)))
}

// curve is the perplexity of the blocks of the longest windows.
func curve(windows []Sample) Curve {
	longest := slices.MaxFunc(windows, func(a, b Sample) int { return cmp.Compare(a.Length, b.Length) }).Length
	c := Curve{Variant: windows[0].Variant, Block: Block}
	var n float64
	for _, w := range windows {
		if w.Length != longest {
			continue
		}
		if c.Perplexity == nil {
			c.Perplexity = make([]float64, len(w.LogLoss))
		}
		for i, x := range w.LogLoss {
			c.Perplexity[i] += x
		}
		n++
	}
	for i, x := range c.Perplexity {
		c.Perplexity[i] = math.Exp(x / n)
	}
	return c
}

// OverDepths puts the cells of all depths together.
func OverDepths(cells []Cell) (list []Cell) {
	for _, c := range cells {
		i := slices.IndexFunc(list, func(o Cell) bool { return o.Variant == c.Variant && o.Task == c.Task && o.Length == c.Length })
		if i < 0 {
			i, list = len(list), append(list, Cell{Variant: c.Variant, Task: c.Task, Length: c.Length})
		}
		o := &list[i]
		o.Right, o.Samples, o.Seconds = o.Right+c.Right, o.Samples+c.Samples, o.Seconds+c.Seconds
		o.Rate = float64(o.Right) / float64(o.Samples)
		o.Low, o.High = wilson(o.Right, o.Samples)
	}
	return list
}

// Tokens writes a number of tokens as the field does: 8192 is 8K.
func Tokens(n int) string {
	if n >= 1024 && n%1024 == 0 {
		return fmt.Sprintf("%dK", n/1024)
	}
	return fmt.Sprint(n)
}
