package lookalike_test

import (
	"context"
	"flag"
	"fmt"
	"math"
	"path/filepath"
	"strings"
	"testing"

	"github.com/rope-rewrite/rope-rewrite/internal/engine"
	"github.com/rope-rewrite/rope-rewrite/internal/testruntime"
	"github.com/rope-rewrite/rope-rewrite/internal/testsample"
	"github.com/rope-rewrite/rope-rewrite/onnx"
	"github.com/rope-rewrite/rope-rewrite/rewrite"
	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/tests/kit"
	"github.com/rope-rewrite/rope-rewrite/rope"
)

var everyExport = flag.Bool("every-export", false, "operate on every export, not only on those that a case names")

var llamas = []string{"llama__optimum", "llama__dynamo18", "llama__dynamo18-eager"}

// lookalike is a real export with something changed. Every site must either be
// proven, and then the patched model computes what the changed one does, or be
// kept with a reason. Where the reason is the rotation alone, the scores may be proven.
type lookalike struct {
	name     string
	models   []string // the first is operated on, all with -every-export; nil is all exports of llama and gpt_neox
	change   func(p *patient)
	kept     []string                                // per layer what the reason says; "" is rewritten
	is       func(layer int, a rope.Attention) error // checks what was measured of a rewritten site
	farthest int64                                   // largest position that the model knows; 0 is 50,000
}

var exports = []string{"llama__dynamo18", "llama__optimum", "gpt_neox__dynamo18", "llama__dynamo18-eager", "gpt_neox__optimum"}

// both says that both layers are kept for one reason.
func both(reason string) []string { return []string{reason, reason} }

// group is those of one topic.
type group struct {
	topic string
	cases func() []lookalike
}

// lookalikes are all of them, by what is changed.
var lookalikes = []group{
	{"FusedMatMul", fusedMatMuls},
	{"MultiHeadAttention", multiHeadAttentions},
	{"axes of positions", axesOfPositions},
	{"casts like another value", castsLike},
	{"causal masks", causalMasks},
	{"computed positions", computedPositions},
	{"concatenated parts", concatenatedParts},
	{"cross-attention", crossAttentions},
	{"folded scores", foldedScores},
	{"factors behind the rotation", factorsBehind},
	{"factors of tokens", factorsOfTokens},
	{"fused attention", fusedAttentions},
	{"fused rotation", fusedRotations},
	{"graphs", otherGraphs},
	{"half precision", halfPrecision},
	{"hidden states on scores", hiddenStateBiases},
	{"keys given away", givingKeys},
	{"masks", masks},
	{"parts that do not run", partsThatDoNotRun},
	{"picked parts", pickedParts},
	{"raw caches", rawCaches},
	{"readers of padding", paddingReaders},
	{"rotations", rotations},
	{"token ids as masks", tokenMasks},
	{"without a cache", withoutCache},
}

// TestLookalikes rewrites each changed export through the public API.
func TestLookalikes(t *testing.T) {
	testruntime.Require(t)
	eng, err := engine.NewLocal(engine.Config{Threads: 1})
	if err != nil {
		t.Fatal(err)
	}
	for _, group := range lookalikes {
		for _, c := range testsample.Of(t, group.onExports(), 3) {
			t.Run(group.topic+"/"+c.name+"/"+c.export, func(t *testing.T) {
				t.Parallel()
				c.run(t, eng, c.export)
			})
		}
	}
}

// onExport is one case on one export.
type onExport struct {
	lookalike
	export string
}

// onExports returns each case with each export that it is tried on.
func (g group) onExports() (list []onExport) {
	for i, c := range g.cases() {
		for _, name := range c.operatedOn(i) {
			list = append(list, onExport{c, name})
		}
	}
	return list
}

// operatedOn returns the exports that a case is tried on; each route gets its share.
func (c lookalike) operatedOn(i int) []string {
	models := c.models
	if models == nil {
		models = append(exports[i%len(exports):], exports[:i%len(exports)]...)
	}
	if !*everyExport {
		models = models[:1]
	}
	return models
}

func (c lookalike) run(t *testing.T, eng engine.Engine, name string) {
	p := newPatient(t, name)
	c.change(p)
	original := p.Saved()
	m := kit.OpenModel(t, original)
	// The layer that is not changed is evaluated once for all cases of an export.
	report, err := kit.Rewrite(context.Background(), m, rewrite.Options{AllowUnchanged: true})
	if err != nil {
		t.Fatal(err)
	}
	kept := c.kept
	if kept == nil {
		kept = make([]string, 2)
	}
	if len(report.Sites) != len(kept) {
		t.Fatalf("%d sites, %d were expected", len(report.Sites), len(kept))
	}
	for i, s := range report.Sites {
		switch want := kept[i]; {
		case want == "" && s.Status != rewrite.Rewritten:
			t.Errorf("layer %d is unchanged: %s", i, s.Reason)
		case want != "" && s.ScoresOnly && s.Attention.Encoding.Frequencies == nil && strings.Contains(s.Reason, want):
			t.Logf("layer %d is rewritten without its rotation: %s", i, s.Reason)
		case want != "" && s.Status == rewrite.Rewritten:
			t.Errorf("layer %d is rewritten as %s, mask %s, frequencies %v; it should be unchanged (%s)", i, s.Layout, s.Mask, s.Attention.Encoding.Frequencies, s.Reason)
		case want != "" && !strings.Contains(s.Reason, want):
			t.Errorf("layer %d is unchanged for another reason than %q: %s", i, want, s.Reason)
		case want != "":
			t.Logf("layer %d is unchanged: %s", i, s.Reason)
		case c.is != nil:
			if err := c.is(i, *s.Attention); err != nil {
				t.Errorf("layer %d: %v (%s)", i, err, s.Reason)
			}
		}
	}
	if report.Rewritten() == 0 {
		return
	}
	patched := filepath.Join(t.TempDir(), "patched.onnx")
	if err := m.Save(patched, onnx.SaveOptions{}); err != nil {
		t.Fatal(err)
	}
	farthest := c.farthest
	if farthest == 0 {
		farthest = 50_000
	}
	kit.CompareModels(t, eng, original, patched, farthest)
}

// Checks of what was measured.

func near(what string, got, want float64) error {
	if math.Abs(got-want) > 1e-6*math.Abs(want) {
		return fmt.Errorf("%s is %g, %g was expected", what, got, want)
	}
	return nil
}

func hasScale(times float64) func(int, rope.Attention) error {
	return func(_ int, a rope.Attention) error {
		return near("the scale", a.EffectiveScale(), times/math.Sqrt(float64(a.HeadSize)))
	}
}

func hasWindow(w int64) func(int, rope.Attention) error {
	return func(_ int, a rope.Attention) error {
		if a.Mask.Window != w || !a.Mask.Causal {
			return fmt.Errorf("the mask is %s, a causal window of %d was expected", a.Mask.String(), w)
		}
		return nil
	}
}
