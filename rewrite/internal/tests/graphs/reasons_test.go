package graphs_test

import (
	"errors"
	"path/filepath"
	"strings"
	"testing"

	"github.com/rope-rewrite/rope-rewrite/internal/testruntime"
	"github.com/rope-rewrite/rope-rewrite/rewrite"
	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/tests/kit"
)

// TestReasons is the table of refusals: of each model what is said, and that nothing else is, which would be
// false. What is true of a model stands in the script that made it, testdata/scripts/export_reasons.py.
func TestReasons(t *testing.T) {
	t.Parallel()
	testruntime.Require(t)
	const length = "the same token is rotated differently in calls of more than "
	// What a reason may say, of which each model is one or none.
	kinds := []string{"sinusoidal", "learned", "this looks like a rotation", "xPos", "log-n", "LongRoPE or dynamic NTK"}
	for _, c := range []struct {
		model string
		says  string   // in the reason or, of a model without rotary attention, in the error
		kind  []string // those of the kinds that are true
	}{
		// Conformers rotate hidden states, in heads, and project them afterwards.
		{"rotated-before", "hidden states are multiplied by sines and cosines of their positions before query and key are projected", kinds[2:3]},
		{"rotated-before-by-tables", "hidden states are multiplied by sines and cosines of their positions before query and key are projected", kinds[2:3]},
		// The positions of Transformers' first encoders, computed or stored, and of BERT.
		{"sines-added", "computed and added to hidden states", kinds[:1]},
		{"sines-added-unless-padded", "computed and added to hidden states", kinds[:1]},
		{"table-of-sines-added", "a table of 64 rows that is added to hidden states", kinds[:1]},
		{"learned-added", "a table of 64 rows that is added to hidden states", kinds[1:2]},
		// γ is (i/4 + 0.4)/1.4 of pair i, and the exponent counts 32 positions from the middle.
		{"xpos", "each pair is also multiplied by γ^(p/32), γ from 0.286 to 0.821 (gamma 0.4), and the keys by its inverse", kinds[3:4]},
		// ln 65/ln 16 is 1.5056.
		{"log-n-by-length", length + "16 tokens (by \"/Clip_output_0\"): channel 0 of the second token is multiplied by 1 in calls of 16 tokens and by 1.50559 in calls of 65", kinds[4:5]},
		// 100^(−1/4) is 0.3162; with α = 15 the base is 100·15^(8/6), and its power −1/4 is 0.1282.
		{"ntk-by-powers-of-two", "in calls of 16 tokens channel 1 turns by 0.316228 per position, in calls of 65 by 0.128224", kinds[5:6]},
	} {
		t.Run(c.model, func(t *testing.T) {
			t.Parallel()
			m := kit.OpenModel(t, filepath.Join("../../../../testdata/reasons", c.model+".onnx"))
			report, err := kit.Rewrite(t.Context(), m, rewrite.Options{AllowUnchanged: true})
			var reasons []string
			switch {
			case errors.Is(err, rewrite.ErrNoAttention):
				reasons = []string{err.Error()}
			case err != nil:
				t.Fatal(err)
			}
			for _, s := range report.Sites {
				if err == nil {
					reasons = append(reasons, s.Reason)
				}
			}
			for _, reason := range reasons {
				if !strings.Contains(reason, c.says) {
					t.Errorf("it says %q; %q was expected", reason, c.says)
				}
				for _, kind := range kinds {
					if is := strings.Contains(reason, kind); is != (len(c.kind) > 0 && c.kind[0] == kind) {
						t.Errorf("it says %q: of %q that is not true", reason, kind)
					}
				}
			}
			if len(reasons) == 0 {
				t.Error("no reason")
			}
		})
	}
}
