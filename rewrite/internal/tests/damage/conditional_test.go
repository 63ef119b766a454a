package damage_test

import (
	"context"
	"math"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/rope-rewrite/rope-rewrite/internal/testruntime"
	"github.com/rope-rewrite/rope-rewrite/internal/testsample"
	"github.com/rope-rewrite/rope-rewrite/onnx"
	"github.com/rope-rewrite/rope-rewrite/rewrite"
	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/ir"
	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/tests/kit"
	"github.com/rope-rewrite/rope-rewrite/rope"
)

// longRoPE is an export with two sets of frequencies, the first for 16 tokens.
const longRoPE = "../coverage/phi3_longrope__genai-fp32"

// twoTables is that export with handles on what chooses its tables.
type twoTables struct {
	*onnx.Model
	choice, compare *onnx.Node
}

func openTwoTables(t *testing.T) twoTables {
	t.Helper()
	m, err := onnx.Open("../../../../testdata/models/" + longRoPE + "/model.onnx")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { m.Close() })
	two := twoTables{Model: m}
	for n := range m.Graph.AllNodes() {
		switch n.OpType {
		case "If":
			two.choice = n
		case "Greater":
			two.compare = n
		}
	}
	return two
}

// table changes the values of a branch's table: 0 the cosines, 1 the sines.
func (m twoTables) table(branch string, which int, change func(row, pair int, v float64) float64) {
	n := m.choice.Graph(branch).Nodes[which]
	old := ir.ConstantValue(n)
	values, _ := old.Float64s()
	for i, v := range values {
		values[i] = change(i/int(old.Dims[1]), i%int(old.Dims[1]), v)
	}
	n.SetAttribute(onnx.TensorAttr("value", ir.FloatTensor("", onnx.Float, old.Dims, values...)))
}

// lengthen gives the tables for few tokens as many rows as the others have.
func (m twoTables) lengthen() {
	nodes := m.choice.Graph("else_branch").Nodes
	cos, _ := ir.ConstantValue(nodes[0]).Float64s()
	sin, _ := ir.ConstantValue(nodes[1]).Float64s()
	for which, function := range []func(float64) float64{math.Cos, math.Sin} {
		var values []float64
		for i := range 64 * 8 {
			pair := i % 8
			angle := float32(i/8) * float32(math.Atan2(sin[8+pair], cos[8+pair])) // as exporters round it
			values = append(values, cos[pair]*function(float64(angle)))
		}
		nodes[which].SetAttribute(onnx.TensorAttr("value", ir.FloatTensor("", onnx.Float, []int64{64, 8}, values...)))
	}
}

// A choice of tables by the number of tokens is measured with its meaning, whichever
// way it is written, and any other is kept with the reason.
func TestLookalikeChoices(t *testing.T) {
	t.Parallel()
	testruntime.Require(t)
	times := func(f float64) func(int, int, float64) float64 {
		return func(_, _ int, v float64) float64 { return f * v }
	}
	for _, x := range testsample.Of(t, []struct {
		name    string
		change  func(m twoTables)
		trained int64 // what is measured
		kept    string
	}{
		{"as it is", func(twoTables) {}, 16, ""},
		{"the other way round", func(m twoTables) {
			m.compare.OpType = "LessOrEqual"
			for _, a := range m.choice.Attributes {
				a.Name = map[string]string{"then_branch": "else_branch", "else_branch": "then_branch"}[a.Name]
			}
		}, 16, ""},
		{"from the last token on", func(m twoTables) { m.compare.OpType = "GreaterOrEqual" }, 15, ""},
		{"from the second token on", func(m twoTables) {
			m.Graph.AddInitializer(ir.Int64Tensor("one", []int64{}, 1))
			m.compare.Inputs[1] = "one"
		}, 1, ""},
		{"beyond what sizes are measured with", func(m twoTables) {
			m.lengthen()
			m.Graph.AddInitializer(ir.Int64Tensor("later", []int64{}, 50))
			m.compare.Inputs[1] = "later"
		}, 50, ""},
		{"tables that are equal", func(m twoTables) {
			for which := range 2 {
				table := ir.ConstantValue(m.choice.Graph("then_branch").Nodes[which])
				m.choice.Graph("else_branch").Nodes[which].SetAttribute(onnx.TensorAttr("value", table))
			}
		}, 0, ""},
		{"a factor on both", func(m twoTables) {
			for which := range 2 {
				m.table("then_branch", which, times(0.8))
				m.table("else_branch", which, times(0.8))
			}
		}, 16, ""},
		{"a factor on one", func(m twoTables) {
			for which := range 2 {
				m.table("then_branch", which, times(1.1))
			}
		}, 0, "which the op cannot"},
		{"one wrong entry beyond", func(m twoTables) {
			m.table("then_branch", 0, func(row, pair int, v float64) float64 {
				if row == 37 && pair == 3 {
					return v + 1e-3
				}
				return v
			})
		}, 0, "with more than 16 tokens: at position 37"},
		{"one wrong entry within", func(m twoTables) {
			m.table("else_branch", 1, func(row, pair int, v float64) float64 {
				if row == 11 && pair == 3 {
					return v + 1e-3
				}
				return v
			})
		}, 0, "at position 11"},
		{"by the remainder of a division", func(m twoTables) {
			m.Graph.AddInitializer(ir.Int64Tensor("modulus", []int64{}, 7))
			m.Graph.InsertNode(m.compare, onnx.NewNode("Mod", []string{m.compare.Inputs[0], "modulus"}, []string{"turns"}))
			m.Graph.AddInitializer(ir.Int64Tensor("three", []int64{}, 3))
			m.compare.Inputs = []string{"turns", "three"}
		}, 0, "not chosen only by the number of tokens"},
		{"never", func(m twoTables) {
			m.lengthen()
			m.Graph.AddInitializer(ir.Int64Tensor("much later", []int64{}, 1<<30))
			m.compare.Inputs[1] = "much later"
		}, 0, "does not change up to"},
		{"by what the mask holds", func(m twoTables) {
			m.Graph.InsertNode(m.compare, onnx.NewNode("ReduceSum", []string{"attention_mask"}, []string{"real"}, onnx.IntAttr("keepdims", 0)))
			m.compare.Inputs[0] = "real"
		}, 0, `chosen by the input "attention_mask"`},
		{"by the number of new tokens", func(m twoTables) {
			m.Graph.InsertNode(m.compare, onnx.NewNode("Shape", []string{"input_ids"}, []string{"new"}, onnx.IntAttr("start", 1)))
			m.compare.Inputs[0] = "new"
			m.lengthen()
		}, 0, "the size of its cache"},
		{"cosines by one, sines by another", func(m twoTables) {
			m.Graph.AddInitializer(ir.Int64Tensor("later", []int64{}, 10))
			m.Graph.InsertNode(m.choice, onnx.NewNode("Greater", []string{m.compare.Inputs[0], "later"}, []string{"much"}))
			other := m.choice.Clone()
			other.Name, other.Inputs, other.Outputs = "sines", []string{"much"}, []string{"unused", m.choice.Outputs[1]}
			m.choice.Outputs[1] = "unused too"
			m.Graph.InsertNode(m.choice, other)
		}, 0, "2 conditions"},
		{"a table that ends too early", func(m twoTables) {
			for which := range 2 {
				n := m.choice.Graph("else_branch").Nodes[which]
				values, _ := ir.ConstantValue(n).Float64s()
				n.SetAttribute(onnx.TensorAttr("value", ir.FloatTensor("", onnx.Float, []int64{12, 8}, values[:96]...)))
			}
		}, 0, "end at position 11"},
	}, 5) {
		t.Run(x.name, func(t *testing.T) {
			m := openTwoTables(t)
			x.change(m)
			if err := ir.Order(m.Graph); err != nil {
				t.Fatal(err)
			}
			changed := filepath.Join(t.TempDir(), "changed.onnx")
			if err := m.Save(changed, onnx.SaveOptions{}); err != nil {
				t.Fatal(err)
			}
			report, err := kit.Rewrite(context.Background(), m.Model, rewrite.Options{AllowUnchanged: true})
			if err != nil {
				t.Fatal(err)
			}
			for i, s := range report.Sites {
				switch {
				case x.kept != "":
					if s.Status == rewrite.Rewritten || !strings.Contains(s.Reason, x.kept) {
						t.Errorf("layer %d is %s: %s; kept for %q was expected", i, s.Status, s.Reason, x.kept)
					}
				case s.Status != rewrite.Rewritten:
					t.Errorf("layer %d is unchanged: %s", i, s.Reason)
				case s.Attention.Encoding.LengthDependent.Trained != x.trained || s.Attention.Cache != rope.Rotated:
					t.Errorf("layer %d is measured as %+v", i, *s.Attention)
				}
			}
			if report.Rewritten() == 0 {
				return
			}
			kit.SamePatched(t, changed, m.Model, 40)
		})
	}
}

// TestProofRefusesDamagedChoice spoils what was measured of frequencies that change.
func TestProofRefusesDamagedChoice(t *testing.T) {
	t.Parallel()
	m := measureSite(t, longRoPE, 0, nil)
	if err := m.prove(m.measured.Attention, nil); err != nil {
		t.Fatalf("the undamaged site is refused: %v", err)
	}
	for what, damage := range testsample.OfMap(t, map[string]func(*rope.Encoding){
		"first frequency by 1e-3":     func(e *rope.Encoding) { e.Frequencies[0] *= 1.001 },
		"first far frequency by 1e-3": func(e *rope.Encoding) { e.LengthDependent.Long[0] *= 1.001 },
		"last far frequency by 1e-2":  func(e *rope.Encoding) { e.LengthDependent.Long[7] *= 1.01 },
		"a token later":               func(e *rope.Encoding) { e.LengthDependent.Trained++ },
		"a token earlier":             func(e *rope.Encoding) { e.LengthDependent.Trained-- },
		"never":                       func(e *rope.Encoding) { e.LengthDependent = rope.LengthDependent{} },
		"always": func(e *rope.Encoding) {
			e.Frequencies, e.LengthDependent = e.LengthDependent.Long, rope.LengthDependent{}
		},
		"dynamic in its place":           func(e *rope.Encoding) { e.LengthDependent.Long, e.LengthDependent.Linear = nil, true },
		"a gain by 0.1 % on either side": func(e *rope.Encoding) { e.Gain *= 1.001 },
	}, 4) {
		t.Run(what, func(t *testing.T) {
			a := m.measured.Attention.Clone()
			damage(&a.Encoding)
			refused(t, m.prove(a, nil))
		})
	}
	t.Run("keys turned when they are read", func(t *testing.T) {
		a := m.measured.Attention.Clone()
		a.Cache = rope.Raw
		refused(t, m.prove(a, nil))
	})
}

// A rotation outside the attention that turns by positions is not one by the number of tokens.
func TestChoiceBesidePositions(t *testing.T) {
	testruntime.Require(t)
	m := openTwoTables(t)
	for _, n := range slices.Clone(m.Graph.Nodes) {
		if n.OpType == "GroupQueryAttention" {
			part := func(s string) string { return n.Outputs[0] + s }
			m.Graph.AddInitializer(ir.Int64Tensor(part("/sizes"), []int64{3}, 64, 64, 64))
			m.Graph.InsertNode(n, onnx.NewNode("Split", []string{n.Inputs[0], part("/sizes")}, []string{part("/q"), part("/k"), part("/v")}, onnx.IntAttr("axis", -1)))
			for _, x := range []string{"/q", "/k"} {
				r := onnx.NewNode("RotaryEmbedding", []string{part(x), "position_ids", n.Inputs[7], n.Inputs[8]}, []string{part(x + "/turned")})
				r.Domain = "com.microsoft"
				m.Graph.InsertNode(n, r)
			}
			n.Inputs = slices.Concat([]string{part("/q/turned"), part("/k/turned"), part("/v")}, n.Inputs[3:7])
			n.SetAttribute(onnx.IntAttr("do_rotary", 0))
		}
	}
	m.Graph.AddInput(onnx.NewValueInfo("position_ids", onnx.Int64, onnx.Dim{Param: "batch_size"}, onnx.Dim{Param: "sequence_length"}))
	report, err := kit.Rewrite(context.Background(), m.Model, rewrite.Options{AllowUnchanged: true})
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range report.Sites {
		if want := `it rotates by the input "position_ids" and by other frequencies from 17 tokens on`; !strings.Contains(s.Reason, want) {
			t.Errorf("%s: %s; %q was expected", s.Status, s.Reason, want)
		}
	}
}
