package evaluation

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	"github.com/rope-rewrite/rope-rewrite/cmd/internal/evaluation/task"
)

// Cell is what the samples of one variant, task, length and depth show.
type Cell struct {
	Variant string  `json:"variant"`
	Task    string  `json:"task"`
	Length  int     `json:"length"`
	Depth   float64 `json:"depth"`
	Right   int     `json:"right"`
	Samples int     `json:"samples"`
	Texts   int     `json:"texts"` // that the samples are about
	Rate    float64 `json:"rate"`  // the share of samples that are right
	Score   float64 `json:"score"` // the mean score; where a sample is right or wrong, the same
	Low     float64 `json:"low"`   // of the interval of 95 % of the mean score (interval.go)
	High    float64 `json:"high"`
	Seconds float64 `json:"seconds"` // that its samples took

	groups []group
}

// Reading is what the windows of a text show up to one length.
type Reading struct {
	Variant    string  `json:"variant"`
	Length     int     `json:"length"`
	Windows    int     `json:"windows"`    // which do not overlap
	Perplexity float64 `json:"perplexity"` // of all tokens of the windows up to the length
	Low        float64 `json:"low"`        // of the interval of 95 % (Student's t, of the windows' means); 0 and 0 for one window
	High       float64 `json:"high"`
	Last       float64 `json:"last"` // perplexity of the last 512 tokens before the length alone

	// Loss is how many nats a token the variant loses beside the first one on the same windows; nil for the
	// first, and where the two have other windows.
	Loss *Loss `json:"loss,omitempty"`
}

// Loss is a mean difference of negative log-probabilities, in nats a token, of pairs of windows: how hard a
// text is to predict takes no part in it.
type Loss struct {
	Mean float64 `json:"mean"`
	Low  float64 `json:"low"` // of the interval of 95 % (Student's t, of the windows' means); 0 and 0 for one window
	High float64 `json:"high"`
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
	Means    []Mean    `json:"means,omitempty"`
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
		c.add(x)
	}
	for i := range s.Cells {
		s.Cells[i].finish()
	}
	s.Means = means(s.Cells)
	for _, windows := range variants {
		slices.SortStableFunc(windows, func(a, b Sample) int { return cmp.Compare(a.Index, b.Index) })
	}
	for _, name := range order {
		for _, length := range lengths {
			r, all, ok := reading(variants[name], length)
			if !ok {
				continue
			}
			if name != order[0] {
				_, first, _ := reading(variants[order[0]], length)
				r.Loss = lossBeside(first, all)
			}
			s.Readings = append(s.Readings, r)
		}
		s.Curves = append(s.Curves, curve(variants[name]))
	}
	return s
}

// add takes a sample to those of its text.
func (c *Cell) add(s Sample) {
	asked := 1
	if t, err := task.Of(s.Task); err == nil {
		asked = t.Asked(s.Wanted)
	}
	i := slices.IndexFunc(c.groups, func(g group) bool { return s.Text > 0 && g.text == s.Text })
	if i < 0 {
		i, c.groups = len(c.groups), append(c.groups, group{text: s.Text})
	}
	if s.Right {
		s.Score = 1 // which journals of older versions do not say
	}
	g := &c.groups[i]
	g.score, g.samples, g.asked = g.score+s.Score, g.samples+1, g.asked+asked
}

// finish works out what follows from the samples.
func (c *Cell) finish() {
	c.Rate, c.Texts = float64(c.Right)/float64(c.Samples), len(c.groups)
	c.Score, c.Low, c.High = interval(c.groups)
}

// What says what a cell's number is.
func (c Cell) What() string {
	if t, err := task.Of(c.Task); err == nil && t.Ruler {
		return "mean score"
	}
	return "share found"
}

// lossBeside compares the means of the same windows; nil where they are not as many.
func lossBeside(first, other []float64) *Loss {
	if len(first) != len(other) {
		return nil
	}
	more := make([]float64, len(other))
	for i := range more {
		more[i] = other[i] - first[i]
	}
	l := &Loss{Mean: mean(more)}
	if len(more) > 1 {
		half := halfInterval(more)
		l.Low, l.High = l.Mean-half, l.Mean+half
	}
	return l
}

// reading is what windows show up to a length: those of that length, or the next longer ones. It also
// returns the mean of each window, in their order.
func reading(windows []Sample, length int) (r Reading, all []float64, ok bool) {
	fits := 0
	for _, w := range windows {
		if w.Length >= length && (fits == 0 || w.Length < fits) {
			fits = w.Length
		}
	}
	var end []float64
	for _, w := range windows {
		i := slices.IndexFunc(w.UpTo, func(u UpTo) bool { return u.Length == length })
		if w.Length == fits && i >= 0 {
			all, end = append(all, w.UpTo[i].All), append(end, w.UpTo[i].Last)
			r.Variant = w.Variant
		}
	}
	if len(all) == 0 {
		return r, nil, false
	}
	middle := mean(all)
	r.Length, r.Windows, r.Perplexity, r.Last = length, len(all), perplexity(middle), perplexity(mean(end))
	if len(all) > 1 {
		half := halfInterval(all)
		r.Low, r.High = perplexity(middle-half), perplexity(middle+half)
	}
	return r, all, true
}

// Notes says what a plan asked for and did not get, of a run that ended well.
func (p Plan) Notes(s Summary) (notes []string) {
	for _, r := range s.Readings {
		if r.Windows >= p.Windows {
			continue
		}
		note := fmt.Sprintf("Perplexity: the text is long enough for %d of the %d windows.", r.Windows, p.Windows)
		if r.Windows == 1 {
			note += " One window gives no interval; give a longer text or shorter lengths."
		}
		return append(notes, note)
	}
	return notes
}

// perplexity is that of a mean negative log-probability. JSON has no infinity, which the interval of two
// windows that differ a lot would reach.
func perplexity(logLoss float64) float64 { return min(math.Exp(logLoss), math.MaxFloat64) }

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
		c.Perplexity[i] = perplexity(x / n)
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
		o.groups = append(o.groups, c.groups...)
	}
	for i := range list {
		list[i].finish()
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
