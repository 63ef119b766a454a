package validate

import "slices"

// Verdict is the result of a comparison. A model with a method must compute that method, and
// any other model the same as the original.
type Verdict string

const (
	Same         Verdict = "same"
	SameOutputs  Verdict = "same outputs" // on what was fed, where nothing else was asked for
	Different    Verdict = "different"
	AsClaimed    Verdict = "as claimed"
	NotAsClaimed Verdict = "not as claimed"
	NotConfirmed Verdict = "not confirmed" // the outputs are right on what was fed, but the file is not the expected one
	NotShown     Verdict = "not shown"     // it could not be determined whether the model is what it should be
)

// Holds reports whether the patched model is what it should be, as far as was asked.
func (v Verdict) Holds() bool { return v == Same || v == SameOutputs || v == AsClaimed }

// altered reports whether the file was changed after it was written, in what these inputs need not show.
func (r *Report) altered() bool {
	return r.Rebuilt.altered() || r.Fallback != nil && r.Fallback.Differs
}

// verdict is a good one only for a file that was confirmed: every node and weight is the expected one. Of a model with
// methods every layer was also compared with a reference of them.
func (r *Report) verdict(outputsOnly bool) Verdict {
	found := r.found()
	switch f := r.Fallback; {
	case !found.Holds():
		return found
	case outputsOnly && found == Same:
		return SameOutputs
	case f != nil && !f.Agrees:
		return NotShown
	case !r.Rebuilt.confirmed():
		return NotConfirmed
	case found == AsClaimed && !r.Claim.whole():
		return NotShown
	}
	return found
}

// found is the verdict on outputs and layers alone.
func (r *Report) found() Verdict {
	altered := r.altered()
	if r.Claim == nil || !r.Claim.Changes {
		switch {
		case r.Same && !altered:
			return Same
		case !altered && !r.Short && r.Rounding == 0 && r.Tolerance == 0:
			return NotShown // there is nothing to measure the difference by
		}
		return Different
	}
	switch {
	case !r.Claim.Holds || altered || !r.expected():
		return NotAsClaimed
	case r.Same && !r.Rebuilt.confirmed():
		return NotShown // the inputs are too short for its methods to show
	}
	return AsClaimed
}

// expected reports whether the logits are those of the model that the record describes, where they
// were compared.
func (r *Report) expected() bool {
	for _, c := range r.Cases {
		if e := c.Expected; e != nil && !r.within(e.Difference/c.Range, e.ExpectedError, e.PatchedError) {
			return false
		}
	}
	return true
}

// same applies the rule to all cases.
func (r *Report) same() bool {
	for _, c := range r.Cases {
		if !r.within(c.Share(), c.OriginalError, c.PatchedError) {
			return false
		}
	}
	return true
}

// clearlyOther reports whether a difference is far above what rounding was seen to do.
func (r *Report) clearlyOther() bool {
	return r.Rounding > 0 && slices.ContainsFunc(r.Cases, func(c Case) bool { return c.Share() > clear*r.Rounding })
}

// within is the rule: a difference, as a share of the range, of at most twice what rounding alone does
// to the original. Of a model in 16 bits the error may be at most twice the other's own. A tolerance
// that was given counts in place of both.
func (r *Report) within(share, own, patched float64) bool {
	if r.Tolerance > 0 {
		return share <= r.Tolerance
	}
	return share <= 2*r.Rounding || own > 0 && patched <= 2*own
}
