package evaluation

import (
	"fmt"
	"math"
	"regexp"
	"strconv"

	"github.com/rope-rewrite/rope-rewrite/cmd/internal/evaluation/task"
	"github.com/rope-rewrite/rope-rewrite/internal/short"
	"github.com/rope-rewrite/rope-rewrite/rope"
)

// Check is a condition on what an evaluation finds, such as passkey@12K>=0.9.
type Check struct {
	Text   string
	task   string
	length int
	bound  float64
}

var checkForm = regexp.MustCompile(`^([a-z0-9_]+)@([0-9]+[kKmM]?)(>=|<=)([0-9.]+)$`)

// ParseCheck reads TASK@LENGTH>=RATE, or perplexity@LENGTH<=NUMBER.
func ParseCheck(text string) (Check, error) {
	bad := fmt.Errorf("%q: expected a condition such as passkey@12K>=0.9 or perplexity@8K<=15", short.Name(text))
	m := checkForm.FindStringSubmatch(text)
	if m == nil {
		return Check{}, bad
	}
	c := Check{Text: text, task: m[1]}
	length, err := rope.ParseTokens(m[2])
	if err != nil {
		return Check{}, bad
	}
	c.length = int(length)
	if c.bound, err = strconv.ParseFloat(m[4], 64); err != nil {
		return Check{}, bad
	}
	if c.task == Perplexity {
		if m[3] != "<=" || c.bound <= 1 {
			return Check{}, bad
		}
		return c, nil
	}
	if _, err := task.Of(c.task, Perplexity); err != nil {
		return Check{}, err
	}
	if m[3] != ">=" || c.bound > 1 {
		return Check{}, bad
	}
	return c, nil
}

// In reports whether a plan measures what the condition is about.
func (c Check) In(p Plan) error {
	for _, t := range p.Tasks {
		for _, l := range p.Lengths {
			if t == c.task && l == c.length {
				return nil
			}
		}
	}
	return fmt.Errorf("%s needs %s at %d tokens, which is not measured", c.Text, c.task, c.length)
}

// Holds reports whether a variant meets the condition: by the end of the interval of 95 % that is
// the worse, over all depths. found says what was seen.
func (c Check) Holds(s Summary, variant string) (holds bool, found string) {
	if c.task == Perplexity {
		for _, r := range s.Readings {
			if r.Variant == variant && r.Length == c.length {
				worst := max(r.Perplexity, r.High)
				return worst <= c.bound, fmt.Sprintf("%.2f, at most %.2f", r.Perplexity, worst)
			}
		}
		return false, "nothing was measured"
	}
	var groups []group
	right, n := 0, 0
	for _, cell := range s.Cells {
		if cell.Variant == variant && cell.Task == c.task && cell.Length == c.length {
			right, n, groups = right+cell.Right, n+cell.Samples, append(groups, cell.groups...)
		}
	}
	score, low, _ := interval(groups)
	if math.Abs(score*float64(n)-float64(right)) < 1e-6 { // every sample is right or wrong
		return low >= c.bound, fmt.Sprintf("%d of %d, at least %.2f", right, n, low)
	}
	return low >= c.bound, fmt.Sprintf("a mean score of %.2f in %d samples, at least %.2f", score, n, low)
}
