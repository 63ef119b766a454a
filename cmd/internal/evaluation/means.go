package evaluation

import (
	"math"
	"slices"

	"github.com/rope-rewrite/rope-rewrite/cmd/internal/evaluation/task"
)

// Mean is the mean of the scores of RULER's thirteen tasks, the number that RULER's authors publish of a model and
// a length.
type Mean struct {
	Variant string  `json:"variant"`
	Length  int     `json:"length"`
	Score   float64 `json:"score"`
	Low     float64 `json:"low"` // of the interval of 95 %
	High    float64 `json:"high"`

	tasks int // that are in it
}

// means are those of the variants and lengths that were asked all thirteen tasks. Tasks are independent, so that
// the squares of the distances from their scores to the ends of their intervals are added (Zou and Donner,
// "Construction of Confidence Limits about Effect Measures", 2008).
func means(cells []Cell) (list []Mean) {
	tasks := len(task.Expand([]string{task.Ruler}))
	add := func(c Cell) {
		i := slices.IndexFunc(list, func(m Mean) bool { return m.Variant == c.Variant && m.Length == c.Length })
		if i < 0 {
			i, list = len(list), append(list, Mean{Variant: c.Variant, Length: c.Length})
		}
		m := &list[i]
		m.Score, m.Low, m.High = m.Score+c.Score, m.Low+square(c.Score-c.Low), m.High+square(c.High-c.Score)
		m.tasks++
	}
	for _, c := range OverDepths(cells) {
		if t, err := task.Of(c.Task); err == nil && t.Ruler {
			add(c)
		}
	}
	list = slices.DeleteFunc(list, func(m Mean) bool { return m.tasks < tasks })
	for i := range list {
		m, n := &list[i], float64(tasks)
		m.Score /= n
		m.Low, m.High = m.Score-math.Sqrt(m.Low)/n, m.Score+math.Sqrt(m.High)/n
	}
	return list
}

func square(x float64) float64 { return x * x }
