package graphs_test

import (
	"context"
	"strings"
	"testing"

	"github.com/rope-rewrite/rope-rewrite/internal/testruntime"
	"github.com/rope-rewrite/rope-rewrite/rewrite"
	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/tests/kit"
)

// TestSharedProofs: equal layers are proven once, layers of other frequencies
// by themselves.
func TestSharedProofs(t *testing.T) {
	t.Parallel()
	testruntime.Require(t)
	for _, c := range []struct {
		name   string
		change func(p *patient)
		proofs int
	}{
		{"equal layers", func(*patient) {}, 1},
		{"other frequencies in the second layer", func(p *patient) {
			for _, v := range []string{p.Sites[1].Query.Operand, p.Sites[1].Key.Cached()} {
				p.OtherTables(v, func(old string) string {
					return p.Op("Mul", old, p.PerPair(func(f []float32) { f[3] = 0.5 }))
				})
			}
		}, 2},
	} {
		p := newPatient(t, "llama__dynamo18")
		c.change(p)
		proofs := 0
		report, err := kit.Rewrite(context.Background(), kit.OpenModel(t, p.Saved()), rewrite.Options{Progress: func(what string) {
			if strings.HasPrefix(what, "verifying attention") {
				proofs++
			}
		}})
		if err != nil {
			t.Fatal(err)
		}
		if proofs != c.proofs || report.Rewritten() != 2 {
			t.Errorf("%s: %d proofs of %d rewritten sites, %d proofs of 2 were expected", c.name, proofs, report.Rewritten(), c.proofs)
		}
	}
}
