package damage_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/rope-rewrite/rope-rewrite/customop"
	"github.com/rope-rewrite/rope-rewrite/onnx"
	"github.com/rope-rewrite/rope-rewrite/rewrite"
	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/lower"
	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/tests/kit"
	"github.com/rope-rewrite/rope-rewrite/rope"
)

// TestScalesDamaged leaves out what query and key are multiplied by, which the
// proof must see.
func TestScalesDamaged(t *testing.T) {
	t.Parallel()
	m, err := onnx.Open("../../../../testdata/coverage/llama4__ts17-cache/model.onnx")
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close()
	site := measureModel(t, m, 0)
	if err := site.prove(site.measured.Attention, nil); err != nil {
		t.Fatalf("the undamaged site is refused: %v", err)
	}
	for what, damage := range map[string]func(*lower.Binding){
		"the query's norm": func(w *lower.Binding) { w.QueryScales = nil },
		"the key's norm":   func(w *lower.Binding) { w.KeyScales = nil },
	} {
		t.Run(what, func(t *testing.T) { refused(t, site.prove(site.measured.Attention, damage)) })
	}
}

// TestGainBehindNorms gives a method with a gain to models that norm what is
// turned: where both are normed, the gain is as good as none and the report says
// so; where one is, it cannot be had.
func TestGainBehindNorms(t *testing.T) {
	t.Parallel()
	yarn, err := rope.ParseSpec(rope.ScalingAxis, "yarn:factor=4,original_max_position_embeddings=16")
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name   string
		model  string
		change func(p *kit.Patient)
		says   string // an error, or a warning where both are normed
		both   bool
	}{
		{"query and key", "llama__dynamo18", (*kit.Patient).NormedBoth, "undoes the method's gain of 1.13863", true},
		{"query", "llama__dynamo18", func(p *kit.Patient) { p.Query(p.Normed) }, "is undone for a part of the channels", false},
		{"query and keys that are given away", "llama__dynamo18-nocache", func(p *kit.Patient) {
			p.Query(p.Normed)
			p.GivenKeys(p.Normed)
		}, "undoes the method's gain of 1.13863", true},
	} {
		t.Run(c.name, func(t *testing.T) {
			p := kit.NewPatient(t, c.model)
			c.change(p)
			m := kit.OpenModel(t, p.Saved())
			report, err := kit.Rewrite(context.Background(), m, rewrite.Options{Edits: []rope.Spec{yarn}})
			if !c.both {
				var refused *rewrite.EditError
				if !errors.As(err, &refused) || !strings.Contains(err.Error(), c.says) {
					t.Fatalf("the error is %v; one that says %q was expected", err, c.says)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if text := strings.Join(report.Warnings, "\n"); !strings.Contains(text, c.says) {
				t.Errorf("the warnings are %q; one that says %q was expected", text, c.says)
			}
			for _, n := range m.Graph.Nodes {
				if a := n.Attribute("gain"); n.Domain == customop.Domain && a != nil && a.Float != 1 {
					t.Errorf("%s has the gain %g, 1 was expected", n.Name, a.Float)
				}
			}
		})
	}
}
