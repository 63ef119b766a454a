package audit_test

import (
	"errors"
	"testing"

	"github.com/rope-rewrite/rope-rewrite/audit"
	"github.com/rope-rewrite/rope-rewrite/rewrite"
)

// The gravest of a folder's models counts.
func TestOutcome(t *testing.T) {
	agrees := &audit.Report{Lines: []audit.Line{{Verdict: audit.Agrees}}}
	differs := &audit.Report{Lines: []audit.Line{{Verdict: audit.Agrees}, {Verdict: audit.Differs}}}
	unmeasured := &audit.Report{Unmeasured: 1}
	uncompared := &audit.Report{Lines: []audit.Line{{Layers: "0-1", Verdict: audit.NotMeasured}}}
	endless := &audit.Report{Lines: []audit.Line{{What: "max_position_embeddings", Verdict: audit.NotMeasured}}} // computed angles
	repaired := &audit.Report{Lines: differs.Lines, Repaired: []string{"scaling"}}
	encoder := audit.Skipped{Err: rewrite.ErrNoAttention}
	unclaimed := audit.Skipped{Err: &audit.NoConfigError{}}
	broken := audit.Skipped{Err: errors.New("it is damaged")}
	for want, folders := range map[audit.Outcome][]audit.FolderReport{
		audit.AllAgree:       {{Models: []*audit.Report{agrees}}, {Models: []*audit.Report{endless}}, {Models: []*audit.Report{agrees, repaired}, Skipped: []audit.Skipped{encoder, unclaimed}}},
		audit.SomeUnmeasured: {{Models: []*audit.Report{agrees, unmeasured}}, {Models: []*audit.Report{uncompared}}},
		audit.SomeDiffer:     {{Models: []*audit.Report{unmeasured, differs}}},
		audit.Nothing:        {{}, {Skipped: []audit.Skipped{encoder, unclaimed}}},
		audit.SomeFailed:     {{Models: []*audit.Report{differs}, Skipped: []audit.Skipped{broken}}},
	} {
		for _, f := range folders {
			if got := f.Outcome(); got != want {
				t.Errorf("%s, want %s of %+v", got, want, f)
			}
		}
	}
}
