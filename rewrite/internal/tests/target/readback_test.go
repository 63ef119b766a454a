package target_test

import (
	"context"
	"fmt"
	"math"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/rope-rewrite/rope-rewrite/internal/testruntime"
	"github.com/rope-rewrite/rope-rewrite/internal/testsample"
	"github.com/rope-rewrite/rope-rewrite/onnx"
	"github.com/rope-rewrite/rope-rewrite/provenance"
	"github.com/rope-rewrite/rope-rewrite/rewrite"
	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/rotation"
	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/tests/kit"
	"github.com/rope-rewrite/rope-rewrite/rope"
)

// every method of a kind that changes what a layer computes, with the parameters that it needs.
var written = map[rope.Axis][]string{
	rope.ScalingAxis: {
		"proportional:partial_rotary_factor=0.5", "theta:rope_theta=500000", "linear:factor=2", "ntk:alpha=4", "dynamic:factor=2", "dynamic:factor=2,length=run", "dynamic-linear", "partial-ntk:factor=4", "ntk-by-parts:factor=4",
		"yarn:factor=4", "llama3:factor=8,low_freq_factor=1,high_freq_factor=4", "beta-ary:factor=4", "resonance", "nope", "log-n", "temperature", "proportional:partial_rotary_factor=0.25,factor=2",
	},
	rope.PositionsAxis: {"string:shift=16,window=4", "rerope:window=8", "leaky-rerope:window=8,factor=4", "self-extend:window=8,group=4", "dual-chunk:chunk_size=24,local_size=8"},
	rope.MaskAxis:      {"sliding-window:window=8", "first-keys:count=2,window=8", "causal"},
}

// Whatever a target writes, inspect reads, as what was wanted. Own nodes are measured: without their
// record too.
func TestWhatIsWrittenIsRead(t *testing.T) {
	testruntime.Require(t)
	type given struct {
		axis        rope.Axis
		spec, model string
		target      rewrite.Target
	}
	var cases []given
	for _, model := range []string{"llama__optimum", "cohere__dynamo18", "gpt_neox__optimum", "llama__genai-fp32", "llama__dynamo23"} {
		for _, target := range []rewrite.Target{rewrite.PlainONNX, rewrite.Ops, rewrite.Contrib} {
			for _, axis := range []rope.Axis{rope.ScalingAxis, rope.PositionsAxis, rope.MaskAxis} {
				for _, spec := range written[axis] {
					cases = append(cases, given{axis, spec, model, target})
				}
			}
		}
	}
	known := rope.Context{Original: 32, Length: 64}
	read, refused := 0, map[string]int{}
	for _, c := range testsample.Of(t, cases, 10) {
		name := fmt.Sprintf("%s %s, target %s", c.model, c.spec, c.target)
		spec := kit.Spec(t, c.axis, c.spec)
		path := kit.Beside(t, kit.Model(c.model), "")
		m := kit.OpenModel(t, path)
		report, err := kit.Rewrite(context.Background(), m, rewrite.Options{Target: c.target, Edits: []rope.Spec{spec}, Context: known})
		if err != nil {
			refused[err.Error()]++
			continue
		}
		out := filepath.Join(t.TempDir(), "model.onnx")
		if err := m.Save(out, onnx.SaveOptions{}); err != nil {
			t.Fatal(err)
		}
		readings := map[string]*onnx.Model{"": kit.OpenModel(t, out)}
		told := c.spec != "nope" && !strings.Contains(c.spec, "length=run") // of these the record tells
		if told && !slices.ContainsFunc(report.Sites, func(s rewrite.Site) bool { return s.Form != rewrite.OwnNodes }) {
			unrecorded := kit.OpenModel(t, out)
			unrecorded.RemoveMetadata(provenance.Key)
			readings[", without its record"] = unrecorded
		}
		for how, m := range readings {
			got, err := rewrite.Inspect(context.Background(), m, rewrite.Options{Target: c.target})
			if err != nil {
				t.Errorf("%s%s is not read: %v", name, how, err)
				continue
			}
			for i, s := range got.Sites {
				want, _, err := spec.Apply(*report.Sites[i].Attention, known)
				if err != nil {
					t.Fatal(err)
				}
				if c.target == rewrite.Contrib { // rows have lengths in place of padding
					want.Mask.Padding = s.Attention != nil && s.Attention.Mask.Padding
				}
				if s.Status != rewrite.Rewritten || s.Attention == nil {
					t.Errorf("%s%s: layer %d is not read: %s", name, how, i, s.Reason)
				} else if off := differ(*s.Attention, want); off != "" {
					t.Errorf("%s%s: layer %d is read with %s", name, how, i, off)
				}
			}
		}
		read++
	}
	t.Logf("%d read", read)
	for why, n := range refused {
		t.Logf("%d refused: %s", n, strings.SplitN(why, "\n", 2)[0])
	}
	if read == 0 {
		t.Error("nothing was written")
	}
}

// differ says in what two attentions differ; "" is nothing. A gain of all channels is measured as a part
// of the scale where there is no cache, and pairs that do not turn are none.
func differ(got, want rope.Attention) string {
	turned := func(a rope.Attention) map[[2]int]float64 {
		list := map[[2]int]float64{}
		for x, omega := range a.Encoding.Frequencies {
			if first, second := rotation.PairAt(a.Encoding, x); omega != 0 {
				list[[2]int{first, second}] = omega
			}
		}
		return list
	}
	x, y := turned(got), turned(want)
	if len(x) != len(y) {
		return fmt.Sprintf("%d pairs that turn, %d were expected", len(x), len(y))
	}
	for channels, omega := range y {
		if !(math.Abs(x[channels]-omega) <= 2e-6*math.Abs(omega)) {
			return fmt.Sprintf("the frequency %g of channels %v, %g was expected", x[channels], channels, omega)
		}
	}
	score := func(a rope.Attention) float64 {
		if len(turned(a)) == 0 {
			return a.EffectiveScale()
		}
		return a.EffectiveScale() * a.Encoding.EffectiveGain() * a.Encoding.EffectiveGain()
	}
	if a, b := score(got), score(want); math.Abs(a-b) > 2e-5*b {
		return fmt.Sprintf("the scale %g, %g was expected", a, b)
	}
	if got.Mask != want.Mask && !got.Mask.Bias { // a mask beside padding may be read as the model's own bias
		return fmt.Sprintf("the mask %v, %v was expected", got.Mask, want.Mask)
	}
	positions := func(a rope.Attention) string { // as the op has them
		text := fmt.Sprint(a.Chunk)
		for _, b := range a.Bands {
			b.Group = max(b.Group, 1)
			text += fmt.Sprintf(" %v", b)
		}
		t := a.Temperature
		return text + fmt.Sprint(float32(t.Offset), float32(t.Slope), float32(t.Start), max(t.Group, 1))
	}
	if a, b := positions(got), positions(want); a != b {
		return fmt.Sprintf("the positions %s, %s were expected", a, b)
	}
	a, b := got.Encoding.LengthDependent, want.Encoding.LengthDependent
	if a.Trained != b.Trained || a.NTK != b.NTK || a.Linear != b.Linear {
		return fmt.Sprintf("frequencies %+v by the length, %+v were expected", a, b)
	}
	return ""
}
