package rare

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"testing"

	"github.com/rope-rewrite/rope-rewrite/internal/decoder"
	"github.com/rope-rewrite/rope-rewrite/internal/engine"
	"github.com/rope-rewrite/rope-rewrite/onnx"
	"github.com/rope-rewrite/rope-rewrite/rewrite"
	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/ir"
	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/site"
	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/tests/kit"
)

// models are exports of all routes.
var models = []string{
	"llama__optimum", "llama__dynamo18", "llama__ts17", "llama__dynamo23", "qwen3__dynamo18", "llama__dynamo18-nocache", "gemma3_text__dynamo18",
	"mistral__dynamo18-eager", "gpt_neox__optimum", "llama__genai-fp32",
}

// verdict is what came of a mutant.
type verdict string

const (
	notRun    verdict = "not run"
	unchanged verdict = "left unchanged"
	limited   verdict = "up to some tokens, equal"
	beyond    verdict = "up to some tokens, others beyond"
	own       verdict = "own attention, equal" // the model's own mask and rows
	anyLength verdict = "any number, equal"
	wrong     verdict = "ANY NUMBER, AND DIFFERENT"
)

// trial is a mutant with what came of it.
type trial struct {
	Kind, Model, Text string
	Verdict           verdict
	Bites             bool // the mutant differs from its export in its call
	Off               float64
	Why               string
}

// allowed is the largest difference of logits, as a share of their range, that is rounding.
const allowed = 1e-3

// try makes the mutant of a seed and judges it.
func try(t *testing.T, eng engine.Engine, seed uint64) (out trial) {
	rng := rand.New(rand.NewPCG(seed, 66))
	out.Model = models[rng.IntN(len(models))]
	path := filepath.Join("../../../../testdata/models", out.Model, "model.onnx")
	m := &mutant{Patient: kit.PatientAt(t, path), rng: rng, path: path}
	defer m.Close()
	m.Sites = slices.DeleteFunc(m.Sites, func(s *site.Site) bool { return !slices.Contains(m.Graph.Nodes, s.Softmax) }) // of fused layers
	original := m.Clone()
	d, err := decoder.Open(t.Context(), eng, m.path, decoder.Options{Model: m.Clone(), AsWritten: true})
	if err != nil {
		t.Fatal(err)
	}
	d.Close()
	m.cached = d.Cached()
	m.call = m.drawCall(d.LengthTracked)
	var a act
	for a = pick(m, acts...); !a.needs(m); a = pick(m, acts...) {
	}
	k := pick(m, kinds...)
	about := a.of(m, k)
	out.Kind = k.name
	if about == "" || len(about) < len(k.name) || about[:len(k.name)] != k.name {
		out.Kind = a.name
	}
	out.Text = fmt.Sprintf("%s: %s (%s), %d rows of %d cached and %d new tokens from position %d, %d padded",
		out.Model, a.name, about, m.batch, m.past, m.length, m.first, m.padded)
	if err := ir.Order(m.Graph); err != nil {
		t.Fatalf("%s: %v", out.Text, err)
	}
	want, err := m.logits(t.Context(), eng, m.Model)
	if err != nil {
		out.Verdict, out.Why = notRun, err.Error()
		return out
	}
	if honest, err := m.logits(t.Context(), eng, original); err == nil {
		out.Bites = off(honest, want) > allowed
	}
	patched := m.Clone()
	report, err := kit.Rewrite(t.Context(), patched, rewrite.Options{AllowUnchanged: true})
	if err != nil || report.Replaced() == 0 {
		out.Verdict = unchanged
		return out
	}
	reach := report.Reach()
	got, err := m.logits(t.Context(), eng, patched)
	if err != nil {
		out.Why, out.Off = err.Error(), math.Inf(1)
	} else {
		out.Off = off(want, got)
	}
	switch everywhere, same := len(reach.Limited) == 0, out.Off <= allowed; {
	case everywhere && same && slices.ContainsFunc(report.Sites, func(s rewrite.Site) bool { return s.RotationOnly }):
		out.Verdict = own
	case everywhere && same:
		out.Verdict = anyLength
	case everywhere:
		out.Verdict = wrong
	case same:
		out.Verdict = limited
	default:
		out.Verdict = beyond
	}
	if !math.IsInf(out.Off, 1) && len(reach.Limited) > 0 {
		out.Why = reach.Limited[0].Why
	}
	return out
}

// drawCall draws one that is larger than all small calls.
func (m *mutant) drawCall(tracked bool) (c call) {
	c.batch, c.length = m.draw(1, 7), m.draw(10, 60)
	switch m.rng.IntN(6) {
	case 0:
		c.length = m.draw(100, 400)
	case 1:
		c.batch, c.length = m.draw(1, 2), m.draw(600, 1000)
	}
	if m.cached && m.rng.IntN(2) == 0 && !tracked {
		c.past, c.length = c.length, m.draw(1, 30)
		if m.rng.IntN(2) == 0 {
			c.length = 1
		}
	}
	if c.batch > 1 && m.rng.IntN(2) == 0 && !tracked {
		c.padded = m.draw(1, max(1, (c.total()-c.length)/2+c.length/2-1))
	}
	if tracked {
		c.length = min(c.length, 60)
	} else {
		c.first = pick[int64](m, 0, 0, 0, 1, 4_000, 77_000)
	}
	return c
}

// logits are those of the call's tokens that are no padding, and of an ordinary call.
func (m *mutant) logits(ctx context.Context, eng engine.Engine, model *onnx.Model) ([]float64, error) {
	d, err := decoder.Open(ctx, eng, m.path, decoder.Options{Model: model.Clone(), AsWritten: true})
	if err != nil {
		return nil, err
	}
	defer d.Close()
	var out []float64
	for _, c := range []call{m.call, {batch: 2, length: 7}} {
		s := decoder.Sequence{Batch: c.batch, Length: c.total()}
		rng := rand.New(rand.NewPCG(3, 66))
		for b := range c.batch {
			position := c.first
			for i := range c.total() {
				s.IDs = append(s.IDs, rng.Int64N(d.Vocabulary))
				if b == c.batch-1 && i < c.padded {
					s.Mask, s.Positions = append(s.Mask, 0), append(s.Positions, 1)
					continue
				}
				s.Mask, s.Positions = append(s.Mask, 1), append(s.Positions, position)
				position++
			}
		}
		lengths := []int64{c.length}
		if c.past > 0 {
			lengths = []int64{c.past, c.length}
		}
		all, err := d.Chunks(ctx, s, lengths...)
		if err != nil {
			return nil, err
		}
		width := len(all) / len(s.Mask)
		for i, x := range all {
			if s.Mask[i/width] != 0 {
				out = append(out, x)
			}
		}
	}
	return out, nil
}

// off is the largest difference as a share of the range; NaN and infinity that are so in both are no difference.
func off(want, got []float64) float64 {
	if len(want) != len(got) {
		return math.Inf(1)
	}
	low, high, worst := math.Inf(1), math.Inf(-1), 0.0
	for i, x := range want {
		switch y := got[i]; {
		case x == y || math.IsNaN(x) && math.IsNaN(y):
		case math.IsNaN(x - y):
			return math.Inf(1)
		default:
			worst = max(worst, math.Abs(x-y))
		}
		if !math.IsNaN(x) && !math.IsInf(x, 0) {
			low, high = min(low, x), max(high, x)
		}
	}
	if worst == 0 {
		return 0
	}
	return worst / (high - low)
}
