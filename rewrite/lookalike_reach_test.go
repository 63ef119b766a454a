package rewrite_test

import (
	"context"
	"path/filepath"
	"strings"
	"testing"

	"github.com/rope-rewrite/rope-rewrite/internal/engine"
	"github.com/rope-rewrite/rope-rewrite/internal/testruntime"
	"github.com/rope-rewrite/rope-rewrite/onnx"
	"github.com/rope-rewrite/rope-rewrite/rewrite"
	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/ir"
	"github.com/rope-rewrite/rope-rewrite/rope"
)

// TestReachLookalikes: exports whose frequencies follow the largest position of a call as those
// of LongRoPE do are lifted; those that follow something else, or otherwise, are kept. What is lifted gives what it gave, on both sides of the trained length.
func TestReachLookalikes(t *testing.T) {
	testruntime.Require(t)
	const ntk, longrope = "llama_dynamic__dynamo18", "phi3_longrope__dynamo18"
	for _, c := range []struct {
		name, export string
		change       func(p *patient)
		is           func(rope.LengthDependent) bool // nil: it is kept
	}{
		{"dynamic NTK, whose frequencies change with every length", ntk, func(*patient) {}, nil},
		{"LongRoPE", longrope, func(*patient) {}, func(l rope.LengthDependent) bool { return l.Trained == 16 && len(l.Long) > 0 }},
		{"frequencies that go on changing", longrope, func(p *patient) {
			p.frequencies(func(old, length string) string { return p.op("Div", old, p.op("Max", length, p.float(16))) })
		}, nil},
		{"other ones for a single length", longrope, func(p *patient) {
			p.frequencies(func(old, length string) string {
				return p.op("Where", p.op("Equal", length, p.float(23)), p.op("Mul", old, p.float(1.5)), old)
			})
		}, nil},
		{"the first position of all, LongRoPE", longrope, func(p *patient) { p.firstPosition() }, nil},
		{"the largest position but one token more", longrope, func(p *patient) {
			p.after(p.first("ReduceMax").Outputs[0], func(old string) string { return p.op("Add", old, p.int(1)) })
		}, func(l rope.LengthDependent) bool { return l.Trained == 15 && len(l.Long) > 0 }},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			p := patientAt(t, filepath.Join(testdata, "coverage", c.export, "model.onnx"))
			c.change(p)
			original := p.save()
			m := openModel(t, original)
			report, err := rewrite.Rewrite(context.Background(), m, rewrite.Options{AllowKept: true})
			if err != nil {
				t.Fatal(err)
			}
			for i, s := range report.Sites {
				switch {
				case c.is == nil && s.Status == rewrite.Rewritten && !s.ScoresOnly:
					t.Errorf("layer %d is lifted: %+v", i, s.Attention.Encoding.LengthDependent)
				case c.is == nil:
					t.Logf("layer %d: %s", i, s.Reason)
				case s.Status != rewrite.Rewritten:
					t.Errorf("layer %d is kept: %s", i, s.Reason)
				case !c.is(s.Attention.Encoding.LengthDependent):
					t.Errorf("layer %d has %+v", i, s.Attention.Encoding.LengthDependent)
				}
			}
			if report.Rewritten() == 0 || t.Failed() {
				return
			}
			patched := filepath.Join(t.TempDir(), "patched.onnx")
			if err := m.Save(patched, onnx.SaveOptions{}); err != nil {
				t.Fatal(err)
			}
			compareModels(t, local(t), original, patched, 60)
		})
	}
}

// frequencies changes the frequencies of an export that chooses them by the length of a call,
// which the change is given as a float.
func (p *patient) frequencies(change func(old, length string) string) {
	length := p.cast(p.first("ReduceMax").Outputs[0], onnx.Float)
	p.after(p.chosen().Outputs[0], func(old string) string { return change(old, length) })
}

// chosen returns the Where by the largest position.
func (p *patient) chosen() *onnx.Node { return p.up(p.first("Cos").Inputs[0], "Where") }

// firstPosition puts the position of a call's first token in the place of the largest one.
func (p *patient) firstPosition() {
	p.after(p.first("ReduceMax").Outputs[0], func(string) string {
		return p.op("Gather", p.op("Reshape", "position_ids", p.ints(-1)), p.int(0))
	})
}

// TestReachOfPadding: a call in which a padded token has the largest position, beyond the
// trained length, ends with that reason: the model takes its frequencies by it.
func TestReachOfPadding(t *testing.T) {
	testruntime.Require(t)
	m := openModel(t, filepath.Join(testdata, "coverage", "phi3_longrope__dynamo18", "model.onnx"))
	if _, err := rewrite.Rewrite(context.Background(), m, rewrite.Options{}); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "model.onnx")
	if err := m.Save(path, onnx.SaveOptions{}); err != nil {
		t.Fatal(err)
	}
	r := load(t, local(t), m, path, false, nil)
	for _, c := range []struct {
		padding, last int64
		fails         bool
	}{{40, 3, true}, {15, 3, false}, {40, 40, false}, {20, 30, false}} {
		feeds := map[string]engine.Tensor{"input_ids": engine.Int64s([]int64{5, 6, 7}, 1, 3), "attention_mask": engine.Int64s([]int64{0, 1, 1}, 1, 3),
			"position_ids": engine.Int64s([]int64{c.padding, c.last - 1, c.last}, 1, 3)}
		for _, v := range r.inputs {
			if ir.IsFloat(v.Type) {
				feeds[v.Name] = engine.Tensor{Type: v.Type, Dims: []int64{1, v.Shape[1].Value, 0, v.Shape[3].Value}, Data: []byte{}}
			}
		}
		_, err := r.session.Run(context.Background(), feeds)
		if failed := err != nil && strings.Contains(err.Error(), "a padded token has the largest position"); failed != c.fails || err != nil && !failed {
			t.Errorf("padding at %d, a token at %d: %v", c.padding, c.last, err)
		}
	}
}
