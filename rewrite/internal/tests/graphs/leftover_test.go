package graphs_test

import (
	"context"
	"strings"
	"testing"

	"github.com/rope-rewrite/rope-rewrite/internal/testruntime"
	"github.com/rope-rewrite/rope-rewrite/rewrite"
	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/tests/kit"
	"github.com/rope-rewrite/rope-rewrite/rope"
)

// TestLeftovers: what is read beside an edited attention stays as it was, and the
// report says so; without an edit there is nothing to say.
func TestLeftovers(t *testing.T) {
	testruntime.Require(t)
	yarn, err := rope.ParseSpec(rope.ScalingAxis, "yarn:factor=4,original_max_position_embeddings=64")
	if err != nil {
		t.Fatal(err)
	}
	beside := func(p *patient) {
		p.Output(p.Sites[0].Softmax.Outputs[0])
		p.Output(p.Op("Mul", p.Sites[1].Key.Cached(), p.Float(3)))
		p.Output(p.Op("Shape", p.Sites[1].Scores()))           // a size alone
		p.Output(p.Op("Mul", p.Sites[0].Output(), p.Float(2))) // what the op makes
		p.Output(p.Op("Neg", p.Sites[1].Key.Boundary))         // what enters it
	}
	for _, c := range []struct {
		name   string
		change func(*patient)
		edits  []rope.Spec
		want   []string
	}{
		{"edited", beside, []rope.Spec{yarn}, []string{"is also an output of the graph", "is also read by node op"}},
		{"identity", beside, nil, nil},
		{"nothing beside", func(*patient) {}, []rope.Spec{yarn}, nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			p := newPatient(t, "llama__optimum")
			c.change(p)
			m := kit.OpenModel(t, p.Saved())
			report, err := kit.Rewrite(context.Background(), m, rewrite.Options{Edits: c.edits})
			if err != nil {
				t.Fatal(err)
			}
			if report.Rewritten() != 2 {
				t.Fatalf("%d sites are rewritten: %+v", report.Rewritten(), report.Sites)
			}
			var got []string
			for _, w := range report.Warnings {
				if strings.Contains(w, "that use still gets the original") {
					got = append(got, w)
				}
			}
			if len(got) != len(c.want) {
				t.Fatalf("warnings %q, %d were expected", got, len(c.want))
			}
			for i, want := range c.want {
				if !strings.Contains(strings.Join(got, "\n"), want) {
					t.Errorf("%d: warnings %q lack %q", i, got, want)
				}
			}
		})
	}
}
