package graphs_test

import (
	"context"
	"fmt"
	"math"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/rope-rewrite/rope-rewrite/internal/engine"
	"github.com/rope-rewrite/rope-rewrite/internal/npz"
	"github.com/rope-rewrite/rope-rewrite/internal/testruntime"
	"github.com/rope-rewrite/rope-rewrite/onnx"
	"github.com/rope-rewrite/rope-rewrite/rewrite"
	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/dim"
	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/ir"
	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/tests/kit"
	"github.com/rope-rewrite/rope-rewrite/rope"
)

// TestMergedDecoder holds a decoder of two branches, one without past and one
// with, against transformers: the first call takes one, the others the other.
func TestMergedDecoder(t *testing.T) {
	t.Parallel()
	testruntime.Require(t)
	yarn, err := rope.ParseSpec(rope.ScalingAxis, "yarn:factor=4,original_max_position_embeddings=16")
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		golden string
		edits  []rope.Spec
		target rewrite.Target
		form   rewrite.Form
		angles string
	}{
		{"plain", nil, rewrite.Ops, "", ""}, {"yarn4", []rope.Spec{yarn}, rewrite.Ops, "", ""},
		{"yarn4", []rope.Spec{yarn}, rewrite.PlainONNX, rewrite.OwnNodes, ""}, {"plain", nil, rewrite.PlainONNX, rewrite.Inlined, "exact"},
	} {
		golden := c.golden
		m := kit.OpenModel(t, "../../../../testdata/models/gpt_neox__dynamo18-merged/model.onnx")
		report, err := kit.Rewrite(context.Background(), m, rewrite.Options{Edits: c.edits, Target: c.target, Numerics: rewrite.Numerics{Angles: c.angles}})
		if err != nil {
			t.Fatal(err)
		}
		if ours := kit.OpNodes(m); (ours == 0) != (c.target == rewrite.PlainONNX) {
			t.Errorf("target %v: %d nodes are the op", c.target, ours)
		}
		for i, s := range report.Sites {
			if want := []string{"else_branch of branches", "then_branch of branches"}[i/2]; s.Status != rewrite.Rewritten || s.Scope != want || s.Form != c.form {
				t.Fatalf("site %d in %q is %s as %q: %s", i, s.Scope, s.Status, s.Form, s.Reason)
			}
		}
		patched := filepath.Join(t.TempDir(), "patched.onnx")
		if err := m.Save(patched, onnx.SaveOptions{}); err != nil {
			t.Fatal(err)
		}
		if off := mergedDistance(t, patched, m, golden); !(off <= 1e-4) {
			t.Errorf("%s: off by %.2g", golden, off)
		} else {
			t.Logf("%s: off by %.2g", golden, off)
		}
	}
}

// mergedDistance decodes 16 tokens after a prefill of 32 and compares the logits
// with a golden.
func mergedDistance(t *testing.T, path string, m *onnx.Model, golden string) float64 {
	t.Helper()
	f, err := npz.Open("../../../../testdata/goldens/gpt_neox.npz")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	rows := map[string][]int64{}
	for input, name := range map[string]string{"input_ids": "ids", "attention_mask": "mask", "position_ids": "pos"} {
		if rows[input], _, err = f.Int64(name); err != nil {
			t.Fatal(err)
		}
	}
	want, shape, err := f.Float32(golden)
	if err != nil {
		t.Fatal(err)
	}
	eng, err := engine.NewLocal(engine.Config{Threads: 1})
	if err != nil {
		t.Fatal(err)
	}
	model := engine.Model{Path: path, Library: true}
	for _, v := range m.Graph.Inputs {
		model.Inputs = append(model.Inputs, v.Name)
	}
	for _, v := range m.Graph.Outputs {
		model.Outputs = append(model.Outputs, v.Name)
	}
	session, err := eng.Load(context.Background(), model)
	if err != nil {
		t.Fatal(err)
	}
	defer session.Close()
	batch, length, vocabulary := int64(shape[0]), int64(shape[1]), int64(shape[2])
	column := func(name string, from, to int64) engine.Tensor {
		var v []int64
		for b := range batch {
			v = append(v, rows[name][b*length+from:b*length+to]...)
		}
		return engine.Int64s(v, batch, to-from)
	}
	cache := map[string]engine.Tensor{}
	for _, name := range model.Inputs {
		if strings.HasPrefix(name, "past_key_values") {
			cache[name] = engine.Float32s(nil, batch, 4, 0, 16)
		}
	}
	worst, start := 0.0, int64(0)
	for _, end := range append([]int64{32}, slices.Collect(func(yield func(int64) bool) {
		for i := int64(33); i <= length && yield(i); i++ {
		}
	})...) {
		feeds := map[string]engine.Tensor{"input_ids": column("input_ids", start, end), "attention_mask": column("attention_mask", 0, end)}
		if slices.Contains(model.Inputs, "position_ids") {
			feeds["position_ids"] = column("position_ids", start, end)
		}
		feeds["use_cache_branch"], _ = engine.Integers(onnx.Bool, []int64{dim.OneIf(start > 0)}, 1)
		for name, x := range cache {
			feeds[name] = x
		}
		out, err := session.Run(context.Background(), feeds)
		if err != nil {
			t.Fatal(err)
		}
		for name := range cache {
			cache[name] = out[strings.Replace(name, "past_key_values", "present", 1)]
		}
		logits := out["logits"].Values()
		for b := range batch {
			for i := start; i < end; i++ {
				for v := range vocabulary {
					x := logits[(b*(end-start)+i-start)*vocabulary+v]
					worst = math.Max(worst, math.Abs(x-float64(want[(b*length+i)*vocabulary+v])))
				}
			}
		}
		start = end
	}
	return worst
}

// TestLoopBody: an attention that runs any number of times is kept, with the reason.
func TestLoopBody(t *testing.T) {
	testruntime.Require(t)
	p := newPatient(t, "llama__dynamo18-nocache")
	g := p.Graph
	body := &onnx.Graph{Name: "body", Nodes: g.Nodes, Inputs: []*onnx.ValueInfo{onnx.NewValueInfo("turn", onnx.Int64), onnx.NewValueInfo("go", onnx.Bool)}}
	body.Nodes = append(body.Nodes, onnx.NewNode("Identity", []string{"go"}, []string{"on"}))
	body.Outputs = append([]*onnx.ValueInfo{onnx.NewValueInfo("on", onnx.Bool)}, g.Outputs...)
	loop := onnx.NewNode("Loop", []string{p.Int(2), ""}, []string{"turns"}, onnx.GraphAttr("body", body))
	loop.Name = "turns"
	g.Nodes, g.Outputs = []*onnx.Node{loop}, []*onnx.ValueInfo{onnx.NewValueInfo("turns", onnx.Float)}
	report, err := kit.Rewrite(context.Background(), kit.OpenModel(t, p.Saved()), rewrite.Options{AllowUnchanged: true})
	if err != nil {
		t.Fatal(err)
	}
	if len(report.Sites) != 2 {
		t.Fatalf("%d sites", len(report.Sites))
	}
	for _, s := range report.Sites {
		if s.Status != rewrite.Unchanged || !strings.Contains(s.Reason, "the iterations of a Loop are not evaluated") {
			t.Errorf("the site is %s: %s", s.Status, s.Reason)
		}
	}
}

// TestHalfInsideABranch: an attention whose scores are made outside a branch is
// kept, and the one that stands in it alone is rewritten there; outputs stay.
func TestHalfInsideABranch(t *testing.T) {
	testruntime.Require(t)
	p := newPatient(t, "gpt_neox__dynamo18")
	g := p.Graph
	at := slices.Index(g.Nodes, p.Sites[0].ValueMatMul)
	branch := &onnx.Graph{Name: "branch", Nodes: slices.Clone(g.Nodes[at:])}
	g.Nodes = slices.Clone(g.Nodes[:at])
	var outputs []string
	for _, o := range g.Outputs {
		if slices.ContainsFunc(branch.Nodes, func(n *onnx.Node) bool { return slices.Contains(n.Outputs, o.Name) }) {
			branch.Outputs = append(branch.Outputs, o)
			outputs = append(outputs, o.Name)
		}
	}
	other := branch.Clone()
	other.Name = "other"
	choose := onnx.NewNode("If", []string{p.Op("Equal", p.Int(1), p.Int(1))}, outputs, onnx.GraphAttr("then_branch", branch), onnx.GraphAttr("else_branch", other))
	choose.Name = "choose"
	g.Nodes = append(g.Nodes, choose)
	original := p.Saved()
	m := kit.OpenModel(t, original)
	report, err := kit.Rewrite(context.Background(), m, rewrite.Options{AllowUnchanged: true})
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, s := range report.Sites {
		got = append(got, fmt.Sprintf("%s %s", s.Status, s.Scope))
	}
	want := []string{"unchanged ", "rewritten then_branch of choose", "rewritten else_branch of choose"}
	if !slices.Equal(got, want) {
		t.Fatalf("the sites are %q, %q was expected", got, want)
	}
	patched := filepath.Join(t.TempDir(), "patched.onnx")
	if err := m.Save(patched, onnx.SaveOptions{}); err != nil {
		t.Fatal(err)
	}
	eng, err := engine.NewLocal(engine.Config{Threads: 1})
	if err != nil {
		t.Fatal(err)
	}
	s := kit.NewSequence(12, 0)
	caches := map[string][]int64{}
	for _, v := range m.Graph.Inputs {
		caches[v.Name] = []int64{0, 4, 0, 16}
	}
	a := kit.Load(t, eng, kit.OpenModel(t, original), original, false, caches).Run(t, s, []int64{12})
	b := kit.Load(t, eng, m, patched, false, caches).Run(t, s, []int64{12})
	x, y := a[0]["logits"].Values(), b[0]["logits"].Values()
	for i := range x {
		if s.Mask[i*int(s.Length*s.Batch)/len(x)] != 0 && !(math.Abs(x[i]-y[i]) <= 1e-4) {
			t.Fatalf("logit %d is %g, %g was expected", i, y[i], x[i])
		}
	}
}

// TestAttentionAloneInside: an If around no more than the attention, whose rotation is before it. The reason names what is outside.
func TestAttentionAloneInside(t *testing.T) {
	testruntime.Require(t)
	p := kit.NewPatient(t, "llama__dynamo23")
	attention := p.First("Attention")
	outputs := slices.Clone(attention.Outputs[:1])
	branch := func(name string) *onnx.Graph {
		n := onnx.NewNode("Attention", attention.Inputs[:4], []string{name}, attention.Attributes...)
		return &onnx.Graph{Name: name, Nodes: []*onnx.Node{n}, Outputs: []*onnx.ValueInfo{{Name: name, Type: onnx.Float}}}
	}
	choose := onnx.NewNode("If", []string{p.Op("Equal", p.Int(1), p.Int(1))}, outputs, onnx.GraphAttr("then_branch", branch("then")), onnx.GraphAttr("else_branch", branch("else")))
	choose.Name = "the choice"
	p.Graph.InsertNode(attention, choose)
	p.Graph.RemoveNodes(func(n *onnx.Node) bool { return n == attention })
	report, err := kit.Rewrite(t.Context(), kit.OpenModel(t, p.Saved()), rewrite.Options{AllowUnchanged: true})
	if err != nil {
		t.Fatal(err)
	}
	if len(report.Sites) != 3 {
		t.Fatalf("%d sites", len(report.Sites))
	}
	for _, s := range report.Sites[1:] { // those of the main graph come first
		if want := " is outside " + s.Scope + ", which contains the rest of this attention layer"; s.Status != rewrite.Unchanged || !strings.Contains(s.Reason, want) {
			t.Errorf("layer %d is %s: %s", s.Layer, s.Status, s.Reason)
		}
	}
}

// TestNameInsideAndAround: a branch whose constant has the name of one around it reads its own, as ONNX Runtime
// does. Where it depends on both, one flat view of it cannot tell them apart, and the model is refused.
func TestNameInsideAndAround(t *testing.T) {
	testruntime.Require(t)
	// merged moves the frequencies into both branches, and puts other numbers of that name around them.
	merged := func() (m *onnx.Model, own []*onnx.Tensor) {
		m = kit.OpenModel(t, kit.Model("gpt_neox__dynamo18-merged"))
		i := slices.IndexFunc(m.Graph.Initializers, func(c *onnx.Tensor) bool { return c.Type == onnx.Float && len(c.Dims) == 3 })
		frequencies := m.Graph.Initializers[i]
		m.Graph.Initializers[i] = ir.Float32Tensor(frequencies.Name, []int64{1}, 7)
		for branch := range m.Graph.Nodes[0].Subgraphs() {
			own = append(own, frequencies.Clone())
			branch.AddInitializer(own[len(own)-1])
		}
		return m, own
	}
	m, _ := merged()
	report, err := kit.Rewrite(context.Background(), m, rewrite.Options{})
	if err != nil || report.Rewritten() != 4 {
		t.Fatalf("%d layers are rewritten; %v", report.Rewritten(), err)
	}
	path := filepath.Join(t.TempDir(), "patched.onnx")
	if err := m.Save(path, onnx.SaveOptions{}); err != nil {
		t.Fatal(err)
	}
	if off := mergedDistance(t, path, m, "plain"); !(off <= 1e-4) {
		t.Errorf("off by %.2g", off)
	}
	m, own := merged()
	m.Graph.AddInitializer(ir.Int64Tensor("both", []int64{1}, 0))
	m.Graph.InsertNode(m.Graph.Nodes[0], onnx.NewNode("Add", []string{"input_ids", "both"}, []string{"tokens"}))
	for n := range m.Graph.AllNodes() {
		for i, v := range n.Inputs {
			switch {
			case v == own[0].Name:
				n.Inputs[i] = "both"
			case v == "input_ids" && n != m.Graph.Nodes[0]:
				n.Inputs[i] = "tokens"
			}
		}
	}
	own[0].Name, own[1].Name = "both", "both"
	if _, err := kit.Rewrite(context.Background(), m, rewrite.Options{AllowUnchanged: true}); err == nil || !strings.Contains(err.Error(), `have the name "both"`) {
		t.Errorf("the error is %v", err)
	}
}

// TestSparse: a model with a sparse constant is refused, since none would be looked at.
func TestSparse(t *testing.T) {
	testruntime.Require(t)
	m := kit.OpenModel(t, kit.Model("llama__dynamo18"))
	dense := m.Graph.Initializers[0]
	m.Graph.Initializers = m.Graph.Initializers[1:]
	m.Graph.SparseInitializers = []*onnx.SparseTensor{{Values: dense, Indices: ir.Int64Tensor("", []int64{1}, 0), Dims: dense.Dims}}
	if _, err := kit.Rewrite(context.Background(), m, rewrite.Options{AllowUnchanged: true}); err == nil || !strings.Contains(err.Error(), "is sparse, and sparse initializers are not read here") {
		t.Errorf("the error is %v", err)
	}
}
