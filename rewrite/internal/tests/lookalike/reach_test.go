package lookalike_test

import (
	"context"
	"path/filepath"
	"strings"
	"testing"

	"github.com/rope-rewrite/rope-rewrite/internal/engine"
	"github.com/rope-rewrite/rope-rewrite/internal/testruntime"
	"github.com/rope-rewrite/rope-rewrite/internal/testsample"
	"github.com/rope-rewrite/rope-rewrite/onnx"
	"github.com/rope-rewrite/rope-rewrite/rewrite"
	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/dim"
	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/ir"
	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/tests/kit"
	"github.com/rope-rewrite/rope-rewrite/rope"
)

// TestReachLookalikes: exports whose frequencies follow the largest position of a call as those
// of LongRoPE or dynamic NTK do are lifted; those that follow something else, or otherwise, are
// kept. What is lifted gives what it gave, on both sides of the trained length.
func TestReachLookalikes(t *testing.T) {
	testruntime.Require(t)
	const ntk, longrope = "llama_dynamic__dynamo18", "phi3_longrope__dynamo18"
	const counted, countedNTK, half = longrope + "-nocache", ntk + "-nocache", longrope + "-fp16"
	raised := func(trained int64, factor float64) func(rope.LengthDependent) bool {
		return func(l rope.LengthDependent) bool { return l.Trained == trained && l.NTK == factor }
	}
	lists := func(trained int64) func(rope.LengthDependent) bool {
		return func(l rope.LengthDependent) bool { return l.Trained == trained && len(l.Long) > 0 }
	}
	for _, c := range testsample.Of(t, []struct {
		name, export string
		change       func(p *patient)
		is           func(rope.LengthDependent) bool // nil: it is kept
	}{
		{"dynamic NTK", ntk, func(*patient) {}, raised(16, 4)},
		{"another factor", ntk, func(p *patient) { p.stretch(2.5, 16) }, raised(16, 2.5)},
		{"a factor that float32 rounds", ntk, func(p *patient) { p.stretch(3.7, 16) }, raised(16, float64(float32(3.7)))},
		{"a factor below 1", ntk, func(p *patient) { p.stretch(0.5, 16) }, nil},
		{"a longer trained length", ntk, func(p *patient) { p.trained(1024); p.stretch(2, 1024) }, raised(1024, 2)},
		{"another trained length", ntk, func(p *patient) { p.trained(20); p.stretch(4, 20) }, raised(20, 4)},
		// Up to 20 tokens x is 4·20/16 − 3 = 2, a larger base; beyond, x/2 = 2.5·L/20 − 1.5.
		{"a length that is divided by another one", ntk, func(p *patient) { p.trained(20) }, raised(20, 2.5)},
		{"another base", ntk, func(p *patient) { p.Into(p.base(), 1, func(string) string { return p.Float(500_000) }) }, raised(16, 4)},
		{"another base beyond a length", ntk, func(p *patient) {
			p.base().Inputs[1] = p.Op("Where", p.Op("Greater", p.Cast(p.First("ReduceMax").Outputs[0], onnx.Float), p.Float(40)), p.Float(10_000.2), p.Float(10_000))
		}, nil},
		{"another exponent of the stretch", ntk, func(p *patient) { p.exponent().Inputs[1] = p.Float(1) }, nil},
		{"an exponent that differs by a little more than float32 rounds", ntk, func(p *patient) { p.exponent().Inputs[1] = p.Float(1.333337) }, nil},
		{"a stretch that grows otherwise", ntk, func(p *patient) {
			p.Into(p.exponent(), 0, func(old string) string { return p.Op("Sqrt", old) })
		}, nil},
		{"one pair that turns a little faster in long calls", ntk, func(p *patient) {
			p.computed(func(old, length string) string {
				faster := p.Floats([]int64{4}, 1, 1, 1+3e-6, 1)
				return p.Op("Where", p.Op("Greater", length, p.Float(16)), p.Op("Mul", old, faster), old)
			})
		}, nil},
		{"the first position of all, dynamic NTK", ntk, func(p *patient) { p.firstPosition() }, nil},
		{"the largest position of the first row", ntk, func(p *patient) {
			p.After(p.First("ReduceMax").Outputs[0], func(string) string {
				row := p.Op("Gather", "position_ids", p.Int(0))
				return p.Node("ReduceMax", []string{row}, onnx.IntAttr("keepdims", 0))
			})
		}, nil},
		{"the largest position but one token more, dynamic NTK", ntk, func(p *patient) {
			p.After(p.First("ReduceMax").Outputs[0], func(old string) string { return p.Op("Add", old, p.Int(1)) })
		}, raised(15, 3.75)},
		{"LongRoPE", longrope, func(*patient) {}, lists(16)},
		{"frequencies that go on changing", longrope, func(p *patient) {
			p.frequencies(func(old, length string) string { return p.Op("Div", old, p.Op("Max", length, p.Float(16))) })
		}, nil},
		{"other ones for a single length", longrope, func(p *patient) { p.atLength(23) }, nil},
		{"the first position of all, LongRoPE", longrope, func(p *patient) { p.firstPosition() }, nil},
		{"the largest position but one token more", longrope, func(p *patient) {
			p.After(p.First("ReduceMax").Outputs[0], func(old string) string { return p.Op("Add", old, p.Int(1)) })
		}, lists(15)},
		{"LongRoPE without a cache", counted, func(*patient) {}, lists(16)},
		{"one token more, without a cache", counted, func(p *patient) {
			p.After(p.First("ReduceMax").Outputs[0], func(old string) string { return p.Op("Add", old, p.Int(1)) })
		}, lists(15)},
		{"a trained length of 3", counted, func(p *patient) { p.Up(p.chosen().Inputs[0], "Greater").Inputs[1] = p.Int(3) }, lists(3)},
		{"a trained length of which no proof holds the calls", counted, func(p *patient) { p.Up(p.chosen().Inputs[0], "Greater").Inputs[1] = p.Int(1024) }, nil},
		{"other ones for a single long call", counted, func(p *patient) { p.atLength(23) }, nil},
		{"other ones for a single short call", counted, func(p *patient) { p.atLength(7) }, nil},
		{"frequencies that go on changing, without a cache", counted, func(p *patient) {
			p.frequencies(func(old, length string) string { return p.Op("Div", old, p.Op("Max", length, p.Float(16))) })
		}, nil},
		{"by the tokens of all rows", counted, func(p *patient) {
			p.After(p.First("ReduceMax").Outputs[0], func(string) string { return p.Op("Mul", p.Size("input_ids", 0), p.Size("input_ids", 1)) })
		}, nil},
		{"by the tokens that are no padding", counted, func(p *patient) {
			p.After(p.First("ReduceMax").Outputs[0], func(string) string {
				return p.Node("ReduceMax", []string{p.Node("ReduceSum", []string{"attention_mask", p.Ints(1)})}, onnx.IntAttr("keepdims", 0))
			})
		}, nil},
		{"dynamic NTK without a cache", countedNTK, func(*patient) {}, raised(16, 4)},
		{"another factor, without a cache", countedNTK, func(p *patient) { p.stretch(2.5, 16) }, raised(16, 2.5)},
		{"another exponent, without a cache", countedNTK, func(p *patient) { p.exponent().Inputs[1] = p.Float(1.333337) }, nil},
		{"dynamic NTK, other ones for a single call", countedNTK, func(p *patient) {
			p.computed(func(old, length string) string {
				return p.Op("Where", p.Op("Equal", length, p.Float(23)), p.Op("Mul", old, p.Float(1.5)), old)
			})
		}, nil},
		{"LongRoPE in float16", half, func(*patient) {}, lists(16)},
		{"the first position of all, float16", half, func(p *patient) { p.firstPosition() }, nil},
		{"frequencies that go on changing, float16", half, func(p *patient) {
			p.frequencies(func(old, length string) string { return p.Op("Div", old, p.Op("Max", length, p.Float(16))) })
		}, nil},
		{"other ones for a single length, float16", half, func(p *patient) { p.atLength(23) }, nil},
	}, 7) {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			p := patientAt(t, filepath.Join(kit.Testdata, "coverage", c.export, "model.onnx"))
			c.change(p)
			original := p.Saved()
			m := kit.OpenModel(t, original)
			report, err := kit.Rewrite(context.Background(), m, rewrite.Options{AllowUnchanged: true})
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
					t.Errorf("layer %d is unchanged: %s", i, s.Reason)
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
			kit.CompareModels(t, kit.Local(t), original, patched, 60)
		})
	}
}

// frequencies changes the frequencies of an export that chooses them by the length of a call,
// which the change is given as a float.
func (p *patient) frequencies(change func(old, length string) string) {
	length := p.Cast(p.First("ReduceMax").Outputs[0], onnx.Float)
	p.After(p.chosen().Outputs[0], func(old string) string { return change(old, length) })
}

// atLength makes them others in calls with one largest position.
func (p *patient) atLength(largest float32) {
	p.frequencies(func(old, length string) string {
		return p.Op("Where", p.Op("Equal", length, p.Float(largest)), p.Op("Mul", old, p.Float(1.5)), old)
	})
}

// base returns the Mul of an export of dynamic NTK that raises its base, and exponent the Pow
// of the stretch before it.
func (p *patient) base() *onnx.Node { return p.Up(p.First("Reciprocal").Inputs[0], "Mul") }

func (p *patient) exponent() *onnx.Node { return p.Up(p.base().Inputs[0], "Pow") }

// stretch puts another factor and another length into factor·L/length − (factor − 1).
func (p *patient) stretch(factor float32, length float32) {
	less := p.Up(p.exponent().Inputs[0], "Sub")
	less.Inputs[1] = p.Float(factor - 1)
	p.Up(less.Inputs[0], "Div").Inputs[1] = p.Float(length)
	p.Up(less.Inputs[0], "Mul").Inputs[1] = p.Float(factor)
}

// trained puts another length into the place of the one from which on frequencies change, and
// longer is the node that takes the longer of the two.
func (p *patient) trained(length int64) { p.longer().Inputs[1] = p.Int(length) }

func (p *patient) longer() *onnx.Node { return p.Up(p.exponent().Inputs[0], "Max") }

// computed changes the frequencies of an export that computes them by the length of a call,
// which the change is given as a float.
func (p *patient) computed(change func(old, length string) string) {
	length := p.Cast(p.longer().Outputs[0], onnx.Float)
	p.After(p.First("Reciprocal").Outputs[0], func(old string) string { return change(old, length) })
}

// chosen returns the Where by the largest position.
func (p *patient) chosen() *onnx.Node { return p.Up(p.First("Cos").Inputs[0], "Where") }

// firstPosition puts the position of a call's first token in the place of the largest one.
func (p *patient) firstPosition() {
	p.After(p.First("ReduceMax").Outputs[0], func(string) string {
		return p.Op("Gather", p.Op("Reshape", "position_ids", p.Ints(-1)), p.Int(0))
	})
}

// TestReachOfPadding: a call in which a padded token has the largest position, beyond the
// trained length, ends with that reason: the model takes its frequencies by it.
func TestReachOfPadding(t *testing.T) {
	testruntime.Require(t)
	m := kit.OpenModel(t, filepath.Join(kit.Testdata, "coverage", "phi3_longrope__dynamo18", "model.onnx"))
	if _, err := kit.Rewrite(context.Background(), m, rewrite.Options{}); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "model.onnx")
	if err := m.Save(path, onnx.SaveOptions{}); err != nil {
		t.Fatal(err)
	}
	r := kit.Load(t, kit.Local(t), m, path, false, nil)
	for _, c := range []struct {
		padding, last int64
		fails         bool
	}{{40, 3, true}, {15, 3, false}, {40, 40, false}, {20, 30, false}} {
		feeds := map[string]engine.Tensor{"input_ids": engine.Int64s([]int64{5, 6, 7}, 1, 3), "attention_mask": engine.Int64s([]int64{0, 1, 1}, 1, 3),
			"position_ids": engine.Int64s([]int64{c.padding, c.last - 1, c.last}, 1, 3)}
		for _, v := range r.Inputs {
			if ir.IsFloat(v.Type) {
				feeds[v.Name] = engine.Tensor{Type: v.Type, Dims: []int64{1, v.Shape[1].Value, 0, v.Shape[3].Value}, Data: []byte{}}
			}
		}
		_, err := r.Session.Run(context.Background(), feeds)
		if failed := err != nil && strings.Contains(err.Error(), "a padded token has the largest position"); failed != c.fails || err != nil && !failed {
			t.Errorf("padding at %d, a token at %d: %v", c.padding, c.last, err)
		}
	}
}

// TestReachOfPaddedRows: without a cache a model takes its frequencies by all tokens of a call. One
// whose real tokens would take others ends with that reason.
func TestReachOfPaddedRows(t *testing.T) {
	testruntime.Require(t)
	type call struct {
		length  int
		padding [][2]int // of each row: tokens at its beginning and at its end
		fails   bool
	}
	for export, calls := range map[string][]call{
		"phi3_longrope__dynamo18-nocache": {
			{20, [][2]int{{0, 3}}, false}, // 17 tokens take the long list as well
			{20, [][2]int{{0, 4}}, true},
			{20, [][2]int{{0, 8}, {0, 9}}, true},
			{20, [][2]int{{0, 8}, {12, 0}}, false},
			{16, [][2]int{{0, 8}}, false},
		},
		"llama_dynamic__dynamo18-nocache": {
			{20, [][2]int{{0, 3}}, true}, // each length has its own
			{20, [][2]int{{0, 3}, {3, 0}}, false},
			{16, [][2]int{{0, 3}}, false},
		},
	} {
		t.Run(export, func(t *testing.T) {
			m := kit.OpenModel(t, filepath.Join(kit.Testdata, "coverage", export, "model.onnx"))
			if _, err := kit.Rewrite(context.Background(), m, rewrite.Options{}); err != nil {
				t.Fatal(err)
			}
			path := filepath.Join(t.TempDir(), "model.onnx")
			if err := m.Save(path, onnx.SaveOptions{}); err != nil {
				t.Fatal(err)
			}
			r := kit.Load(t, kit.Local(t), m, path, false, nil)
			for _, c := range calls {
				var ids, mask []int64
				for _, n := range c.padding {
					for i := range c.length {
						ids = append(ids, int64(5+i))
						mask = append(mask, dim.OneIf(i >= n[0] && i < c.length-n[1]))
					}
				}
				dims := []int64{int64(len(c.padding)), int64(c.length)}
				_, err := r.Session.Run(context.Background(), map[string]engine.Tensor{
					"input_ids": engine.Int64s(ids, dims...), "attention_mask": engine.Int64s(mask, dims...)})
				if failed := err != nil && strings.Contains(err.Error(), "a padded token has the largest position"); failed != c.fails || err != nil && !failed {
					t.Errorf("padding %v in %d tokens: %v", c.padding, c.length, err)
				}
			}
		})
	}
}
