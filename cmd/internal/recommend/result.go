package recommend

import (
	"strings"

	"github.com/rope-rewrite/rope-rewrite/cmd/internal/evaluation"
)

// Verdict says what a search ended with.
type Verdict string

const (
	NothingNeeded Verdict = "nothing needed"       // the unchanged model does as well at the context as below it
	Method        Verdict = "method"               // Best is better there than the unchanged model
	NothingHelps  Verdict = "nothing helps"        // no method that was measured is better
	NotUnderstood Verdict = "questions not solved" // the unchanged model fails at short questions, so nothing can be told
)

// Result is what a search found. Shares of it have intervals of 95 %.
type Result struct {
	Verdict   Verdict              `json:"verdict"`
	Task      string               `json:"task"`
	Trained   int64                `json:"trained"`   // tokens, by the model's configuration; 0 where it does not say
	Context   int64                `json:"context"`   // tokens that were asked for
	Effective int64                `json:"effective"` // the largest measured length at which the unchanged model does as well as with short texts; 0 if none
	Best      string               `json:"best,omitempty"`
	Measured  []evaluation.Cell    `json:"measured"` // by method and length, over all depths
	Readings  []evaluation.Reading `json:"readings,omitempty"`
	Left      []Left               `json:"left,omitempty"`
}

// Left is a method that was not measured.
type Left struct {
	Method string `json:"method"`
	Reason string `json:"reason"`
}

// Unchanged is the name of the unchanged model among methods.
const Unchanged = "none"

// Share is what was measured of a method at a length.
func (r *Result) Share(method string, length int) (c evaluation.Cell, measured bool) {
	for _, c := range r.Measured {
		if c.Variant == method && c.Length == length {
			return c, true
		}
	}
	return c, false
}

// Flags are those of the command that applies a method.
func Flags(method string) string {
	var flags []string
	for part := range strings.SplitSeq(method, ";") {
		axis, spec, _ := strings.Cut(strings.TrimSpace(part), " ")
		flags = append(flags, "--"+axis+" "+spec)
	}
	return strings.Join(flags, " ")
}
