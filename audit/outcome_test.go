package audit_test

import (
	"testing"

	"github.com/rope-rewrite/rope-rewrite/audit"
	"github.com/rope-rewrite/rope-rewrite/difference"
)

// The gravest of a model's claims counts; what is claimed of the whole model need not be measured.
func TestOutcome(t *testing.T) {
	agrees := &audit.Report{Lines: []audit.Line{{Verdict: audit.Agrees}}}
	differs := &audit.Report{Lines: []audit.Line{{Verdict: audit.Agrees}, {Verdict: audit.Differs}}}
	unmeasured := &audit.Report{Unmeasured: 1}
	uncompared := &audit.Report{Lines: []audit.Line{{Difference: difference.Difference{Where: "0-1"}, Verdict: audit.NotMeasured}}}
	endless := &audit.Report{Lines: []audit.Line{{Difference: difference.Difference{What: "max_position_embeddings"}, Verdict: audit.NotMeasured}}} // computed angles
	repaired := &audit.Report{Lines: differs.Lines, Repaired: []string{"scaling"}}
	for want, reports := range map[audit.Outcome][]*audit.Report{
		audit.AllAgree:       {agrees, endless, repaired},
		audit.SomeUnmeasured: {unmeasured, uncompared},
		audit.SomeDiffer:     {differs},
	} {
		for _, r := range reports {
			if got := r.Outcome(); got != want {
				t.Errorf("%s, want %s of %+v", got, want, r)
			}
		}
	}
}
