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
	repaired := &audit.Report{Lines: differs.Lines, Repaired: []string{"scaling"}}
	encoder := audit.Skipped{Err: rewrite.ErrNoAttention}
	unclaimed := audit.Skipped{Err: &audit.NoConfigError{}}
	broken := audit.Skipped{Err: errors.New("it is damaged")}
	for want, folders := range map[audit.Outcome][]audit.FolderReport{
		audit.AllAgree:       {{Models: []*audit.Report{agrees}}, {Models: []*audit.Report{agrees, repaired}, Skipped: []audit.Skipped{encoder, unclaimed}}},
		audit.SomeUnmeasured: {{Models: []*audit.Report{agrees, unmeasured}}},
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
