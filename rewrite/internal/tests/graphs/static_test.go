package graphs_test

import (
	"context"
	"math"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/rope-rewrite/rope-rewrite/internal/engine"
	"github.com/rope-rewrite/rope-rewrite/internal/testruntime"
	"github.com/rope-rewrite/rope-rewrite/internal/testsample"
	"github.com/rope-rewrite/rope-rewrite/onnx"
	"github.com/rope-rewrite/rope-rewrite/rewrite"
	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/dim"
	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/eval"
	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/ir"
	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/tests/kit"
)

// declare gives the graph's inputs fixed sizes, as onnxruntime.tools'
// make_dynamic_shape_fixed does; a size of 0 stays open.
func (p *patient) declare(fixed dim.Point) {
	p.Graph.ValueInfo = nil
	for _, v := range p.Graph.Outputs {
		v.Shape, v.HasShape = nil, false
	}
	set := func(d *onnx.Dim, n int64) {
		if n > 0 {
			*d = onnx.Dim{Value: n}
		}
	}
	cached := slices.ContainsFunc(p.Graph.Inputs, func(v *onnx.ValueInfo) bool { return ir.IsFloat(v.Type) })
	for _, v := range p.Graph.Inputs {
		set(&v.Shape[0], fixed.B)
		switch {
		case ir.IsFloat(v.Type):
			set(&v.Shape[2], fixed.P)
			if !v.Shape[3].Known() {
				set(&v.Shape[3], 16) // GenAI's builder leaves the head size open
			}
		case strings.Contains(v.Name, "mask") && cached && fixed.P == 0:
		case strings.Contains(v.Name, "mask"):
			set(&v.Shape[1], fixed.L+fixed.P)
		default:
			set(&v.Shape[1], fixed.L)
		}
	}
}

// eachRow writes what is expanded over the rows of the batch, such as the
// frequencies of a rotation, once for each of them: as a constant, as simplifiers
// do, or expanded still, to a shape that is computed from constants.
func (p *patient) eachRow(batch int, folded bool) {
	constants := map[string]*onnx.Tensor{}
	for _, t := range p.Graph.Initializers {
		constants[t.Name] = t
	}
	for _, n := range p.Graph.Nodes {
		if t := ir.ConstantValue(n); t != nil {
			constants[n.Outputs[0]] = t
		}
	}
	found := 0
	for _, n := range p.All("Expand") {
		t := constants[n.Inputs[0]]
		if t == nil || len(t.Dims) != 3 || t.Dims[0] != 1 || t.Dims[2] != 1 {
			continue
		}
		found++
		if !folded {
			list := p.Node("Concat", []string{p.Ints(int64(batch)), p.Ints(-1), p.Ints(1)}, onnx.IntAttr("axis", 0))
			ones := p.Node("ConstantOfShape", []string{p.Op("Shape", list)}, onnx.TensorAttr("value", ir.Int64Tensor("", []int64{1}, 1)))
			n.Inputs[1] = p.Op("Where", p.Op("Equal", list, p.Op("Mul", ones, p.Int(-1))), ones, list) // as TorchScript has it
			continue
		}
		values, err := t.Float64s()
		if err != nil {
			p.TB.Fatal(err)
		}
		all := make([]float32, 0, batch*len(values))
		for range batch {
			for _, v := range values {
				all = append(all, float32(v))
			}
		}
		rows := p.Floats([]int64{int64(batch), t.Dims[1], 1}, all...)
		p.After(n.Outputs[0], func(string) string { return rows })
	}
	if found == 0 {
		p.TB.Fatal("nothing is expanded over the rows of the batch")
	}
}

// fixedFeeds makes inputs of a model at some sizes.
func fixedFeeds(t *testing.T, m *onnx.Model, pt dim.Point, kind int) map[string]engine.Tensor {
	t.Helper()
	rng := rand.New(rand.NewPCG(5, uint64(kind)))
	feeds := map[string]engine.Tensor{}
	mask := eval.Padding(rng, pt, eval.PaddingKind(kind))
	for _, v := range m.Graph.Inputs {
		if ir.IsFloat(v.Type) {
			dims := []int64{pt.B, v.Shape[1].Value, pt.P, v.Shape[3].Value}
			x := make([]float32, engine.Elements(dims))
			for i := range x {
				x[i] = float32(rng.NormFloat64())
			}
			feeds[v.Name] = engine.Float32s(x, dims...)
			continue
		}
		dims := []int64{pt.B, pt.L}
		values := make([]int64, pt.B*pt.L)
		for i := range values {
			values[i] = rng.Int64N(120)
		}
		if strings.Contains(v.Name, "mask") {
			dims, values = []int64{pt.B, pt.L + pt.P}, mask
		}
		x, err := engine.Integers(v.Type, values, dims...)
		if err != nil {
			t.Fatal(err)
		}
		feeds[v.Name] = x
	}
	return feeds
}

// TestFixedSizes rewrites models of fixed sizes. What is proven must compute what
// the original does at these sizes; look-alikes are kept or mean what they do.
func TestFixedSizes(t *testing.T) {
	t.Parallel()
	testruntime.Require(t)
	eng, err := engine.NewLocal(engine.Config{Threads: 1})
	if err != nil {
		t.Fatal(err)
	}
	defer eng.Close()
	// table changes a row of the folded cosines or sines of every layer.
	table := func(p *patient, place int, change func(rows [][]float32)) {
		const rows, width = 48, 16
		found := 0
		for _, n := range p.Graph.Nodes {
			c := ir.ConstantValue(n)
			if c == nil || !slices.Equal(c.Dims, []int64{1, 1, rows, width}) {
				continue
			}
			if found++; found != place {
				continue
			}
			values, err := c.Float64s()
			if err != nil {
				t.Fatal(err)
			}
			all := make([]float32, len(values))
			for i, v := range values {
				all[i] = float32(v)
			}
			change(slices.Collect(slices.Chunk(all, width)))
			n.SetAttribute(onnx.TensorAttr("value", ir.Float32Tensor("", c.Dims, all...)))
		}
		if found < place {
			t.Fatalf("%d tables of cosines and sines, 2 were expected", found)
		}
	}
	counted := func(p *patient) {
		p.OwnPositions(func() string { return p.New(p.Filled(p.CountedFrom(0), 1)) })
	}
	for _, c := range testsample.Of(t, []struct {
		name, model string
		fixed       dim.Point
		change      func(p *patient)
		kept        string
		warns       string
		counted     bool // the mask counts tokens: there is no padding on the left
	}{
		{name: "batch", model: "llama__optimum", fixed: dim.Point{B: 1}, warns: "only for batch 1"},
		{name: "batch without a cache", model: "gpt_neox__ts17", fixed: dim.Point{B: 2}, warns: "only for batch 2"},
		{name: "one token", model: "llama__dynamo18", fixed: dim.Point{B: 1, L: 1}, warns: "only for batch 1 and length 1"},
		{name: "all sizes", model: "qwen3__optimum", fixed: dim.Point{B: 2, L: 3, P: 9}, warns: "only for batch 2, length 3 and past 9"},
		{name: "as many tokens as heads", model: "llama__ts17", fixed: dim.Point{B: 2, L: 4}, warns: "only for batch 2 and length 4"},
		{name: "exported so", model: "llama__ts17-fixed", fixed: dim.Point{B: 2, L: 8, P: 24}, warns: "only for batch 2, length 8 and past 24"},
		{name: "frequencies for each row, cohere", model: "cohere__dynamo18", fixed: dim.Point{B: 2, L: 1, P: 31}, change: func(p *patient) { p.eachRow(2, true) }},
		{name: "frequencies for each row, gemma3", model: "gemma3_text__dynamo18", fixed: dim.Point{B: 3, L: 4, P: 7}, change: func(p *patient) { p.eachRow(3, true) }},
		{name: "frequencies for each row, gpt_neox", model: "gpt_neox__dynamo18", fixed: dim.Point{B: 2, L: 8, P: 24}, change: func(p *patient) { p.eachRow(2, true) }},
		{name: "frequencies for each row, qwen3", model: "qwen3__dynamo18", fixed: dim.Point{B: 2, L: 8, P: 24}, change: func(p *patient) { p.eachRow(2, true) }},
		{name: "frequencies for each row, fused op", model: "llama__dynamo23", fixed: dim.Point{B: 2, L: 8, P: 24}, change: func(p *patient) { p.eachRow(2, true) }},
		{name: "frequencies expanded by constants", model: "qwen3__dynamo18", fixed: dim.Point{B: 1, L: 8, P: 24}, change: func(p *patient) { p.eachRow(1, false) }},
		{
			name: "frequencies for each row, one of them other", model: "qwen3__dynamo18", fixed: dim.Point{B: 2, L: 8, P: 24}, kept: "rotat",
			change: func(p *patient) {
				p.eachRow(2, true)
				p.Angles(func(old string) string { return p.Op("Mul", old, p.Floats([]int64{2, 1, 1}, 1, 1.1)) })
			},
		},
		{
			name: "frequencies for each row, of a size that is not known", model: "qwen3__dynamo18", fixed: dim.Point{B: 2, L: 8, P: 24}, kept: "is rotated by position at",
			change: func(p *patient) {
				p.eachRow(2, true)
				cos, _ := p.Tables()
				p.Into(p.Up(cos.Inputs[0], "MatMul"), 0, func(old string) string { return p.Op("Slice", old, p.Ints(0), p.Ints(1000), p.Ints(1)) })
			},
		},
		{name: "positions counted by the mask", model: "llama__dynamo18", fixed: dim.Point{B: 2, L: 8, P: 24}, change: counted},
		{name: "positions counted by the mask, of one token", model: "llama__dynamo18", fixed: dim.Point{B: 1, L: 1, P: 31}, change: counted},
		{name: "positions counted by the mask, batch", model: "llama__dynamo18", fixed: dim.Point{B: 1}, change: counted},
		{name: "positions counted by the mask, exported so", model: "llama__ts17-fixed", fixed: dim.Point{B: 2, L: 8, P: 24}, change: counted},
		{
			name: "positions counted by the mask, of the query one more", model: "llama__dynamo18", fixed: dim.Point{B: 2, L: 8, P: 24}, kept: "which are not the same",
			change: func(p *patient) {
				counted(p)
				angles := p.Op("Unsqueeze", p.Cast(p.New(p.Counted()), onnx.Float), p.Ints(2))
				turned := p.Op("Mul", angles, p.PerPair(func(f []float32) {
					for i := range f {
						f[i] = float32(math.Pow(10_000, -float64(i)/8))
					}
				}))
				for _, s := range p.Sites {
					p.OtherTables(s.Query.Operand, func(string) string { return turned })
				}
			},
		},
		{name: "fused op", model: "llama__dynamo23", fixed: dim.Point{B: 1, L: 5}},
		{name: "counted cache", model: "llama__genai-fp32", fixed: dim.Point{B: 2, L: 1}, warns: "only for batch 2 and length 1", counted: true},
		{name: "folded", model: "qwen3__ts17-static", fixed: dim.Point{B: 2, L: 48}},
		{
			name: "folded, one wrong cosine", model: "qwen3__ts17-static", fixed: dim.Point{B: 2, L: 48}, kept: "at position 17",
			change: func(p *patient) { table(p, 1, func(rows [][]float32) { rows[17][3] += 1e-3 }) },
		},
		{
			name: "folded, positions that stop", model: "qwen3__ts17-static", fixed: dim.Point{B: 2, L: 48}, kept: "at position 41",
			change: func(p *patient) {
				for place := 1; place <= 2; place++ {
					table(p, place, func(rows [][]float32) {
						for i := 41; i < 48; i++ {
							copy(rows[i], rows[40])
						}
					})
				}
			},
		},
		{
			name: "folded, another channel's sines", model: "qwen3__ts17-static", fixed: dim.Point{B: 2, L: 48}, kept: "rotation",
			change: func(p *patient) {
				table(p, 1, func(rows [][]float32) {
					for _, row := range rows {
						row[2] = row[3]
					}
				})
			},
		},
	}, 6) {
		t.Run(c.name, func(t *testing.T) {
			p := newPatient(t, c.model)
			p.declare(c.fixed)
			if c.change != nil {
				c.change(p)
			}
			path := p.Saved()
			m := kit.OpenModel(t, path)
			report, err := kit.Rewrite(context.Background(), m, rewrite.Options{AllowUnchanged: true})
			if err != nil {
				t.Fatal(err)
			}
			for _, s := range report.Sites {
				switch {
				case c.kept == "" && (s.Status != rewrite.Rewritten || s.ScoresOnly):
					t.Errorf("layer %d is unchanged: %s", s.Layer, s.Reason)
				case c.kept != "" && (s.Status != rewrite.Unchanged && !s.ScoresOnly || !strings.Contains(s.Reason, c.kept)):
					t.Errorf("layer %d is %s, its reason %q lacks %q", s.Layer, s.Status, s.Reason, c.kept)
				}
			}
			if c.warns != "" && !strings.Contains(strings.Join(report.Warnings, "\n"), c.warns) {
				t.Errorf("warnings %q lack %q", report.Warnings, c.warns)
			}
			if c.kept != "" {
				return
			}
			patched := filepath.Join(t.TempDir(), "patched.onnx")
			if err := m.Save(patched, onnx.SaveOptions{}); err != nil {
				t.Fatal(err)
			}
			pt := c.fixed
			if pt.B == 0 {
				pt.B = 3
			}
			if pt.L == 0 {
				pt.L = 6
			}
			if pt.P == 0 && len(m.Graph.Inputs) > 3 {
				pt.P = 12
			}
			kinds := 2
			if c.counted {
				kinds = 1
			}
			agree(t, eng, path, patched, pt, kinds)
		})
	}
}

// agree runs a model before and after, on random inputs with the first kinds of
// padding (none, on the left), and compares what carries meaning.
func agree(t *testing.T, eng engine.Engine, original, patched string, pt dim.Point, kinds int) {
	t.Helper()
	m := kit.OpenModel(t, original)
	var outputs []string
	for _, v := range m.Graph.Outputs {
		outputs = append(outputs, v.Name)
	}
	load := func(path string) engine.Session {
		s, err := eng.Load(context.Background(), engine.Model{Path: path, Inputs: eval.InputNames(m), Outputs: outputs, Library: true, Optimize: true})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { s.Close() })
		return s
	}
	before, after := load(original), load(patched)
	for kind := range kinds {
		feeds := fixedFeeds(t, m, pt, kind)
		want, err := before.Run(context.Background(), feeds)
		if err != nil {
			t.Fatal(err)
		}
		got, err := after.Run(context.Background(), feeds)
		if err != nil {
			t.Fatal(err)
		}
		mask := feeds["attention_mask"]
		for _, name := range outputs {
			x, y := want[name].Values(), got[name].Values()
			if len(x) != len(y) || len(x) == 0 {
				t.Fatalf("%s has %d elements, %d were expected", name, len(y), len(x))
			}
			for i := range x {
				if row := int64(i) / want[name].Dims[2]; name == "logits" && mask.Values()[row/pt.L*mask.Dims[1]+pt.P+row%pt.L] == 0 {
					continue
				}
				if !(math.Abs(x[i]-y[i]) <= 1e-4) {
					t.Fatalf("padding %d: %s is off by %.2g at %d", kind, name, math.Abs(x[i]-y[i]), i)
				}
			}
		}
	}
}
