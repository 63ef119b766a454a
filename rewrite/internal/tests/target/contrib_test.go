package target_test

import (
	"context"
	"errors"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/rope-rewrite/rope-rewrite/internal/decoder"
	"github.com/rope-rewrite/rope-rewrite/internal/testruntime"
	"github.com/rope-rewrite/rope-rewrite/internal/testsample"
	"github.com/rope-rewrite/rope-rewrite/onnx"
	"github.com/rope-rewrite/rope-rewrite/rewrite"
	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/tests/kit"
	"github.com/rope-rewrite/rope-rewrite/rope"
)

// Models written as GroupQueryAttention give what the op gives, where rows have no padding.
func TestTargetContrib(t *testing.T) {
	t.Parallel()
	testruntime.Require(t)
	for _, c := range testsample.Of(t, []struct {
		export string
		edits  []string
	}{
		{"llama__optimum", nil},
		{"llama__optimum", []string{"scaling yarn:factor=4,original_max_position_embeddings=16"}}, // with a gain
		{"llama__optimum", []string{"mask sliding-window:window=8"}},
		{"llama__dynamo23", []string{"scaling ntk:alpha=3"}},
		{"llama__dynamo18-nocache", nil},
		{"llama__dynamo18-fp16", []string{"scaling linear:factor=2"}},
		{"llama__genai-fp32", []string{"scaling yarn:factor=4,original_max_position_embeddings=16", "mask sliding-window:window=8"}},
		{"qwen3__optimum", nil},        // norms before the rotation
		{"gemma3_text__dynamo18", nil}, // some layers with a window
	}, 3) {
		opts := rewrite.Options{Edits: kit.Edits(t, c.edits), Context: rope.Context{Length: 64}}
		byOp, _ := kit.Patch(t, kit.Model(c.export), opts)
		opts.Target = rewrite.Contrib
		path, report := kit.Patch(t, kit.Model(c.export), opts)
		standardAlone(t, path)
		for _, s := range report.Sites {
			if s.Form != rewrite.GroupQuery {
				t.Errorf("%s: layer %d is written as %q", c.export, s.Layer, s.Form)
			}
		}
		g := kit.ReadGolden(t, "llama", "plain", false) // its tokens; what it says of logits is for llama in 16 bits
		plain, ops := kit.OpenPlainly(t, path), kit.Open(t, byOp)
		ways := [][]int64{{48}, kit.ThenDecode}
		if !ops.Cached() {
			ways = ways[:1]
		}
		for _, way := range ways {
			bound := 1e-4
			if strings.HasSuffix(c.export, "-fp16") { // two computations of the rounding that the model has itself
				bound = 2 * g.Distance(t, kit.Chunked(t, kit.Open(t, kit.Model(c.export)), g.Sequence, way))
			}
			if off := kit.Largest(kit.Chunked(t, plain, g.Sequence, way), kit.Chunked(t, ops, g.Sequence, way)); !(off <= bound) {
				t.Errorf("%s %v, %v: off by %.2g from the op, at most %.2g was expected", c.export, c.edits, way, off, bound)
			}
		}
	}
}

// A row that is padded on the left, and positions that do not count from the past on, end
// the run: GroupQueryAttention would compute something else without a word.
func TestTargetContribRefusesPadding(t *testing.T) {
	t.Parallel()
	testruntime.Require(t)
	path, report := kit.Patch(t, kit.Model("llama__optimum"), rewrite.Options{Target: rewrite.Contrib, Context: rope.Context{Length: 64}})
	if !strings.Contains(strings.Join(report.Warnings, " "), "no padding on the left and at most 64 tokens, and ONNX Runtime must be 1.20 or newer") {
		t.Errorf("the report warns of %q", report.Warnings)
	}
	d := kit.OpenPlainly(t, path)
	run := func(change func(*decoder.Sequence)) error {
		s := decoder.Sequence{Batch: 1, Length: 6, IDs: []int64{4, 5, 6, 7, 8, 9}, Mask: []int64{1, 1, 1, 1, 1, 1}, Positions: []int64{0, 1, 2, 3, 4, 5}}
		change(&s)
		_, err := d.Chunks(context.Background(), s, 6)
		return err
	}
	if err := run(func(*decoder.Sequence) {}); err != nil {
		t.Errorf("without padding: %v", err)
	}
	for want, change := range map[string]func(*decoder.Sequence){
		"the mask hides a token":                    func(s *decoder.Sequence) { s.Mask[0] = 0 },
		"a position is not the index of its token,": func(s *decoder.Sequence) { s.Positions[5] = 9 },
	} {
		if err := run(change); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error %v lacks %q", err, want)
		}
	}
}

// Positions that the graph computes are those of GroupQueryAttention where they are the indices of tokens
// that are not padded; others are refused before a run would end with an error.
func TestTargetContribPositions(t *testing.T) {
	t.Parallel()
	testruntime.Require(t)
	taken := []string{"1 where padded", "0 where padded", "-1 where padded", "times the mask", "clamped", "assigned where padded",
		"of the last tokens, by the sum of the mask", "in float", "from the first real token", "an input, filled by the mask"}
	for _, c := range testsample.Of(t, kit.ComputedPositions, 5) {
		t.Run(c.Name, func(t *testing.T) {
			p := kit.NewPatient(t, "llama__dynamo18")
			p.OwnPositions(func() string { return c.Compute(p) })
			m := kit.OpenModel(t, p.Saved())
			_, err := kit.Rewrite(context.Background(), m, rewrite.Options{Target: rewrite.Contrib, Context: rope.Context{Length: 64}, Edits: kit.Edits(t, []string{"scaling linear:factor=4"})})
			if !slices.Contains(taken, c.Name) {
				if err == nil || !strings.Contains(err.Error(), "the graph computes other positions") {
					t.Errorf("%v", err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			path := filepath.Join(t.TempDir(), "contrib.onnx")
			if err := m.Save(path, onnx.SaveOptions{}); err != nil {
				t.Fatal(err)
			}
			g := kit.ReadGolden(t, "llama", "linear4", false)
			logits, err := kit.OpenPlainly(t, path).Chunks(context.Background(), g.Sequence, 32, 1, 15)
			if err != nil {
				t.Fatal(err)
			}
			if off := g.Distance(t, logits); !(off <= 1e-4) {
				t.Errorf("off by %.2g", off)
			}
		})
	}
}

func TestTargetContribRefuses(t *testing.T) {
	t.Parallel()
	testruntime.Require(t)
	anyLength := rope.Context{Length: 64}
	for _, c := range []struct {
		export string
		opts   rewrite.Options
		want   string
	}{
		{"llama__optimum", rewrite.Options{Context: anyLength, Edits: kit.Edits(t, []string{"positions string:shift=16,window=4"})}, "it has no position maps; use --target ops with the op library, or --target onnx without it"},
		{"llama__optimum", rewrite.Options{Context: anyLength, Edits: kit.Edits(t, []string{"mask first-keys:window=8"})}, "cannot keep first keys visible beside a window"},
		{"llama__optimum", rewrite.Options{Context: anyLength, Edits: kit.Edits(t, []string{"mask intra-document"}), Documents: rewrite.Documents{Input: "ids"}}, "it has no document masks"},
		{"llama__optimum", rewrite.Options{Context: anyLength, Edits: kit.Edits(t, []string{"scaling log-n:original_max_position_embeddings=16"})}, "no temperature by position"},
		{"llama__optimum", rewrite.Options{Context: anyLength, Edits: kit.Edits(t, []string{"scaling dynamic-linear:length=run,original_max_position_embeddings=16"})}, "raw ones"},
		{"llama__optimum", rewrite.Options{Context: anyLength, Cache: rewrite.Cache{Raw: true}}, "raw ones"},
		{"llama__dynamo18-static-cache", rewrite.Options{Context: anyLength}, "a fixed-capacity buffer with its own lengths"},
		{"llama__optimum", rewrite.Options{Context: anyLength, Edits: kit.Edits(t, []string{"mask sliding-window:window=8"}), Target: "contrib:onnxruntime=1.23"}, "it has a window of this size only from ONNX Runtime 1.24 on, and 1.23 was asked for"},
		{"gpt_neox__dynamo18", rewrite.Options{Context: anyLength}, "it rotates only multiples of 16 channels, and here 8 are rotated"},
		{"llama__optimum", rewrite.Options{Target: "contrib:onnxruntime=1.19"}, "is not a version of ONNX Runtime from 1.20 on"},
		{"llama__optimum", rewrite.Options{Target: "contrib:fast"}, "expected contrib:onnxruntime=1.22"},
		{"llama__optimum", rewrite.Options{Target: "contrib:"}, `unknown target "contrib:"`},
		{"llama__optimum", rewrite.Options{Target: "ops:fast"}, "unknown target"},
	} {
		if c.opts.Target == "" {
			c.opts.Target = rewrite.Contrib
		}
		_, err := kit.Rewrite(context.Background(), kit.OpenModel(t, kit.Model(c.export)), c.opts)
		if unfit := (*rewrite.EditError)(nil); !errors.As(err, &unfit) || !strings.Contains(err.Error(), c.want) {
			t.Errorf("error %v lacks %q", err, c.want)
		}
	}
}

// Nothing says how long the tables of a model without config.json are to be.
func TestTargetContribWantsLength(t *testing.T) {
	t.Parallel()
	testruntime.Require(t)
	alone := kit.Beside(t, kit.Model("llama__optimum"), "")
	m, err := onnx.Open(alone)
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close()
	_, err = kit.Rewrite(context.Background(), m, rewrite.Options{Target: rewrite.Contrib})
	if err == nil || !strings.Contains(err.Error(), "give --context") {
		t.Errorf("error %v", err)
	}
}

// What stands in GroupQueryAttention is measured like any model's, and not rewritten again.
func TestTargetContribAgain(t *testing.T) {
	t.Parallel()
	testruntime.Require(t)
	path, _ := kit.Patch(t, kit.Model("llama__optimum"), rewrite.Options{Target: rewrite.Contrib, Context: rope.Context{Length: 64}, Edits: kit.Edits(t, []string{"scaling linear:factor=2"})})
	seen, err := rewrite.Inspect(context.Background(), kit.OpenModel(t, path), rewrite.Options{Context: rope.Context{Original: 64}})
	if err != nil || len(seen.Sites) != 2 || seen.Sites[1].Op != "GroupQueryAttention" || seen.Sites[1].Scaling != "linear:factor=2" {
		t.Errorf("inspect says %+v, %v", seen.Sites, err)
	}
	_, err = kit.Rewrite(context.Background(), kit.OpenModel(t, path), rewrite.Options{Edits: kit.Edits(t, []string{"scaling linear:factor=2"})})
	if err == nil || !strings.Contains(err.Error(), "start from the original file") {
		t.Errorf("rewritten again: %v", err)
	}
}

// A cache that the model casts before it is used, as exports in 16 bits do whose inputs have
// 32: ONNX Runtime must not write the present one into the cast past's memory.
func TestTargetContribCastCache(t *testing.T) {
	testruntime.Require(t)
	m, err := onnx.Open(kit.Model("llama__dynamo18-fp16"))
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close()
	g := m.Graph
	cast := func(from, to string, as onnx.DataType) *onnx.Node {
		return onnx.NewNode("Cast", []string{from}, []string{to}, onnx.IntAttr("to", int64(as)))
	}
	var before, after []*onnx.Node
	for _, list := range [][]*onnx.ValueInfo{g.Inputs, g.Outputs} {
		for i, v := range list {
			if len(v.Shape) != 4 {
				continue
			}
			inner := v.Name + "/short"
			if i < len(g.Inputs) && g.Inputs[i] == v {
				before = append(before, cast(v.Name, inner, onnx.Float16))
			} else {
				after = append(after, cast(inner, v.Name, onnx.Float))
			}
			for _, n := range g.Nodes {
				for _, names := range [][]string{n.Inputs, n.Outputs} {
					for k := range names {
						if names[k] == v.Name {
							names[k] = inner
						}
					}
				}
			}
			list[i] = v.Clone()
			list[i].Type = onnx.Float
		}
	}
	g.Nodes = slices.Concat(before, g.Nodes, after)
	export := filepath.Join(t.TempDir(), "model.onnx")
	if err := m.Save(export, onnx.SaveOptions{}); err != nil {
		t.Fatal(err)
	}
	path, _ := kit.Patch(t, export, rewrite.Options{Target: rewrite.Contrib, Context: rope.Context{Length: 64}})
	// In a model of 30 layers ONNX Runtime 1.31 did so. Two layers run either way: what keeps
	// it from that must be there.
	written, err := onnx.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer written.Close()
	makers := map[string]string{}
	for _, n := range written.Graph.Nodes {
		for _, o := range n.Outputs {
			makers[o] = n.OpType
		}
		if n.OpType == "GroupQueryAttention" && (makers[n.Inputs[3]] != "Reshape" || makers[n.Inputs[4]] != "Reshape") {
			t.Errorf("node %s reads a past that %q makes", n.Name, makers[n.Inputs[3]])
		}
	}
	golden := kit.ReadGolden(t, "llama", "plain", false)
	bound := 2 * golden.Distance(t, kit.Chunked(t, kit.Open(t, export), golden.Sequence, kit.ThenDecode))
	if off := golden.Distance(t, kit.Chunked(t, kit.OpenPlainly(t, path), golden.Sequence, kit.ThenDecode)); !(off <= bound) {
		t.Errorf("off by %.2g, at most %.2g was expected", off, bound)
	}
}
