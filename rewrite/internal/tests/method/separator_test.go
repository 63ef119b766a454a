package method_test

import (
	"context"
	"strings"
	"testing"

	"github.com/rope-rewrite/rope-rewrite/internal/testruntime"
	"github.com/rope-rewrite/rope-rewrite/internal/testsample"
	"github.com/rope-rewrite/rope-rewrite/onnx"
	"github.com/rope-rewrite/rope-rewrite/rewrite"
	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/tests/kit"
)

// Documents that the model counts by itself are those that are counted by hand,
// for both targets.
func TestSeparator(t *testing.T) {
	t.Parallel()
	testruntime.Require(t)
	const export = "llama__dynamo18-nocache"
	for _, c := range testsample.Of(t, []struct {
		mask string
		ends bool
	}{{"intra-document", false}, {"intra-document", true}, {"anchor", false}, {"anchor", true}, {"intra-document-reset", false}}, 2) {
		masks := kit.Edits(t, []string{"mask " + c.mask})
		byHand, _ := kit.Patch(t, kit.Model(export), rewrite.Options{Edits: masks, Documents: rewrite.Documents{Input: rewrite.DocumentsInput}})
		want := kit.Open(t, byHand)
		for _, target := range []rewrite.Target{rewrite.Ops, rewrite.PlainONNX} {
			for _, padded := range []bool{false, true} {
				g := kit.ReadGolden(t, "llama", "plain", padded)
				s := g.Sequence
				separator := s.IDs[s.Length+20]
				path, report := kit.Patch(t, kit.Model(export), rewrite.Options{Edits: masks, Target: target, Documents: rewrite.Documents{Separator: &rewrite.Separator{Token: separator, Ends: c.ends}}})
				if edits := strings.Join(report.Edits, " "); !strings.Contains(edits, "documents separator:") {
					t.Errorf("the report has the edits %q", edits)
				}
				changes := 0
				for b := range s.Batch {
					id, real := int64(1), 0
					for i := b * s.Length; i < (b+1)*s.Length; i++ {
						is := s.IDs[i] == separator
						if is && !c.ends {
							id++
						}
						here := id
						if s.Mask[i] != 0 {
							real++
							if real == 1 && c.mask == "anchor" {
								here = 0
							}
						}
						s.Documents = append(s.Documents, here)
						if is && c.ends {
							id++
						}
						if is {
							changes++
						}
					}
				}
				if changes == 0 {
					t.Fatal("no separator in the text")
				}
				got := kit.Chunked(t, kit.Open(t, path), g.Sequence, []int64{48})
				if off := kit.Largest(kit.Real(g, got), kit.Real(g, kit.Chunked(t, want, s, []int64{48}))); !(off <= 1e-4) {
					t.Errorf("%s, ends %v, target %v, padded %v: off by %.2g", c.mask, c.ends, target, padded, off)
				}
			}
		}
	}
}

func TestSeparatorRefused(t *testing.T) {
	t.Parallel()
	testruntime.Require(t)
	for want, c := range map[string]struct {
		export string
		opts   rewrite.Options
	}{
		"a model with a cache cannot count documents": {"llama__optimum", rewrite.Options{Edits: kit.Edits(t, []string{"mask anchor"})}},
		"no mask uses the document":                   {"llama__dynamo18-nocache", rewrite.Options{}},
		"give only one":                               {"llama__dynamo18-nocache", rewrite.Options{Documents: rewrite.Documents{Input: "ids"}}},
	} {
		m, err := onnx.Open(kit.Model(c.export))
		if err != nil {
			t.Fatal(err)
		}
		c.opts.Documents.Separator = &rewrite.Separator{Token: 2}
		_, err = kit.Rewrite(context.Background(), m, c.opts)
		m.Close()
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error %v lacks %q", err, want)
		}
	}
}
