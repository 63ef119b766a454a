package audit

import "slices"

// Outcome is the result of an audit.
type Outcome string

// The outcomes, the most serious first.
const (
	SomeDiffer     Outcome = "differs"      // a claim differs from the graph
	SomeUnmeasured Outcome = "not measured" // a claim of an attention layer could not be compared; what was compared agrees
	AllAgree       Outcome = "agrees"       // nothing differs, or it was repaired
)

// Outcome is the result of an audit or a repair.
func (r *Report) Outcome() Outcome {
	switch {
	case len(r.Repaired) > 0:
		return AllAgree
	case r.Count(Differs) > 0:
		return SomeDiffer
	case r.Unmeasured > 0 || r.uncompared():
		return SomeUnmeasured
	}
	return AllAgree
}

// uncompared says whether something that is claimed of a layer was not compared. What is claimed of the
// whole model, its positions, is not among it: computed angles have no end.
func (r *Report) uncompared() bool {
	return slices.ContainsFunc(r.Lines, func(l Line) bool { return l.Where != "" && l.Verdict == NotMeasured })
}
