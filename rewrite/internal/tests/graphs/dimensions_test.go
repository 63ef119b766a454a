package graphs_test

import (
	"testing"

	"github.com/rope-rewrite/rope-rewrite/internal/testruntime"
	"github.com/rope-rewrite/rope-rewrite/rewrite"
	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/tests/kit"
)

// A model of texts and pictures takes four positions for each token, [4, batch, length]: where an input's first open
// dimension is the batch follows from another input. Its embeddings come from outside, or an input that no node reads
// has a length of 1.
func TestDimensionsOfSeveralInputs(t *testing.T) {
	testruntime.Require(t)
	for _, name := range []string{"language_model", "decode"} {
		_, report := kit.Patch(t, kit.Model("qwen2_5_vl__transformers/"+name), rewrite.Options{})
		if len(report.Sites) != 2 || report.Reach().AnyLength != 2 || len(report.Warnings) > 0 {
			t.Errorf("%s: %d layers, %d of them known for any number of tokens, and the warnings %q", name, len(report.Sites), report.Reach().AnyLength, report.Warnings)
		}
	}
}
