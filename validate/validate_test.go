package validate_test

import (
	"context"
	"encoding/binary"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/rope-rewrite/rope-rewrite/internal/testruntime"
	"github.com/rope-rewrite/rope-rewrite/internal/testsample"
	"github.com/rope-rewrite/rope-rewrite/onnx"
	"github.com/rope-rewrite/rope-rewrite/rewrite"
	"github.com/rope-rewrite/rope-rewrite/rope"
	"github.com/rope-rewrite/rope-rewrite/validate"
)

func TestMain(m *testing.M) {
	rewrite.ServeIfWorker()
	testruntime.Examples()
	os.Exit(m.Run())
}

func path(name string) string { return filepath.Join("../testdata/models", name, "model.onnx") }

// run compares two models in a worker.
func run(t *testing.T, original, patched string, o validate.Options) (*validate.Report, error) {
	t.Helper()
	o.Rewrite.Evaluation.Runtime, o.Rewrite.Evaluation.Library = testruntime.Paths(t)
	o.Rewrite.Evaluation.Worker = []string{os.Args[0]}
	return validate.Run(context.Background(), original, patched, o)
}

// edited saves a model after a change and returns the new file.
func edited(t *testing.T, from string, change func(*onnx.Model) error) string {
	t.Helper()
	m, err := onnx.Open(from)
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close()
	if err := change(m); err != nil {
		t.Fatal(err)
	}
	out := filepath.Join(t.TempDir(), "model.onnx")
	if err := m.Save(out, onnx.SaveOptions{}); err != nil {
		t.Fatal(err)
	}
	return out
}

func TestRun(t *testing.T) {
	runtime, library := testruntime.Paths(t)
	patch := func(edits ...rope.Spec) func(*onnx.Model) error {
		return func(m *onnx.Model) error {
			_, err := rewrite.Rewrite(context.Background(), m, rewrite.Options{
				Evaluation: rewrite.Evaluation{Runtime: runtime, Library: library, Worker: []string{os.Args[0]}},
				Edits:      edits,
			})
			return err
		}
	}
	linear, err := rope.ParseSpec(rope.ScalingAxis, "linear:factor=2")
	if err != nil {
		t.Fatal(err)
	}
	original := path("llama__optimum")
	patched := edited(t, original, patch())
	for _, c := range testsample.Of(t, []struct {
		name    string
		patched string
		same    bool
	}{
		{"the original itself", original, true},
		{"verified equal", patched, true},
		{"another method", edited(t, original, patch(linear)), false},
		{"scores scaled by 1.01", edited(t, patched, each(func(n *onnx.Node) {
			n.SetAttribute(onnx.FloatAttr("scale", n.Float("scale", 0)*1.01))
		})), false},
		{"one frequency off by a thousandth", edited(t, patched, each(func(n *onnx.Node) {
			f := n.Floats("frequencies")
			f[1] *= 1.001
			n.SetAttribute(onnx.FloatsAttr("frequencies", f...))
		})), false},
		{"blind to padding", edited(t, patched, each(func(n *onnx.Node) { n.Inputs[6] = "" })), false},
	}, 3) {
		result, err := run(t, original, c.patched, validate.Options{})
		if err != nil {
			t.Errorf("%s: %v", c.name, err)
			continue
		}
		if len(result.Cases) != 3 {
			t.Errorf("%s: %d cases", c.name, len(result.Cases))
		}
		if result.Same != c.same {
			t.Errorf("%s: same is %v, of %+v", c.name, result.Same, result.Cases)
		}
		for _, k := range result.Cases {
			if k.Share() > 2*result.Rounding == c.same {
				t.Errorf("%s, %s: %.1e of the range, rounding %.1e", c.name, k.Name, k.Share(), result.Rounding)
			}
		}
	}
}

// TestRunShort: of a model in 16 bits the yardstick is its own arithmetic.
func TestRunShort(t *testing.T) {
	runtime, library := testruntime.Paths(t)
	for _, name := range []string{"llama__dynamo18-fp16", "llama__genai-fp16"} {
		original := path(name)
		patched := edited(t, original, func(m *onnx.Model) error {
			_, err := rewrite.Rewrite(context.Background(), m, rewrite.Options{Evaluation: rewrite.Evaluation{Runtime: runtime, Library: library, Worker: []string{os.Args[0]}}})
			return err
		})
		for _, c := range []struct {
			name    string
			patched string
			same    bool
		}{
			{"verified equal", patched, true},
			{"scores scaled by 1.05", edited(t, patched, each(func(n *onnx.Node) {
				n.SetAttribute(onnx.FloatAttr("scale", n.Float("scale", 0)*1.05))
			})), false},
		} {
			result, err := run(t, original, c.patched, validate.Options{Length: 48})
			if err != nil {
				t.Fatal(err)
			}
			if result.Same != c.same || !result.Short {
				t.Errorf("%s, %s: same is %v, of %+v", name, c.name, result.Same, result.Cases)
			}
			for _, k := range result.Cases {
				if k.OriginalError == 0 || k.PatchedError == 0 {
					t.Errorf("%s, %s: no errors were measured: %+v", name, c.name, k)
				}
			}
		}
	}
}

// each changes every node of ours.
func each(change func(*onnx.Node)) func(*onnx.Model) error {
	return func(m *onnx.Model) error {
		for _, n := range m.Graph.Nodes {
			if n.OpType == "RotaryAttention" {
				change(n)
			}
		}
		return nil
	}
}

func TestRunRefuses(t *testing.T) {
	llama := path("llama__optimum")
	for _, c := range []struct {
		name, patched string
		length        int64
		want          string
	}{
		{"short", llama, 7, "a length of 7 is too short"},
		{"missing", filepath.Join(t.TempDir(), "none.onnx"), 0, "none.onnx"},
		{"another vocabulary", edited(t, llama, func(m *onnx.Model) error {
			logits := m.Graph.Outputs[0]
			logits.Shape[len(logits.Shape)-1] = onnx.Dim{Value: 100}
			return nil
		}), 0, "vocabularies of 128 and 100 tokens"},
		{"a logit that is NaN", edited(t, llama, func(m *onnx.Model) error {
			last := m.Graph.Nodes[len(m.Graph.Nodes)-1]
			for _, n := range m.Graph.Nodes {
				if n.Outputs[0] == "logits" {
					last = n
				}
			}
			last.Outputs[0] = "finite"
			m.Graph.InsertNode(nil, onnx.NewNode("Log", []string{"negative"}, []string{"logits"}))
			m.Graph.InsertNode(m.Graph.Nodes[len(m.Graph.Nodes)-1], onnx.NewNode("Neg", []string{"finite"}, []string{"negative"}))
			return nil
		}), 0, "NaN"},
	} {
		_, err := run(t, llama, c.patched, validate.Options{Length: c.length})
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %q", c.name, err, c.want)
		}
	}
}

// TestRunRowByRow: an original that ONNX Runtime runs at batch 1 only.
func TestRunRowByRow(t *testing.T) {
	original := path("llama__dynamo23-nocache")
	twoRuns(t, original, func(result *validate.Report) {
		if len(result.Notes) != 1 || !strings.Contains(result.Notes[0], "only one row at a time") {
			t.Errorf("the notes are %q", result.Notes)
		}
	})
}

// twoRuns compares an original with its rewrite, which is the same, and with one of another scale,
// which is not. look looks at each result.
func twoRuns(t *testing.T, original string, look func(result *validate.Report)) {
	t.Helper()
	runtime, library := testruntime.Paths(t)
	patched := edited(t, original, func(m *onnx.Model) error {
		_, err := rewrite.Rewrite(context.Background(), m, rewrite.Options{Evaluation: rewrite.Evaluation{Runtime: runtime, Library: library, Worker: []string{os.Args[0]}}})
		return err
	})
	for _, c := range []struct {
		patched string
		same    bool
	}{
		{patched, true},
		{edited(t, patched, each(func(n *onnx.Node) { n.SetAttribute(onnx.FloatAttr("scale", n.Float("scale", 0)*1.01)) })), false},
	} {
		result, err := run(t, original, c.patched, validate.Options{})
		if err != nil {
			t.Fatal(err)
		}
		if result.Same != c.same {
			t.Errorf("same is %v, of %+v", result.Same, result.Cases)
		}
		look(result)
	}
}

// TestRunOtherwise: an original that runs no single tokens, as one whose experts were written down
// for the tokens of an example. What it runs is compared, and the rest is said.
func TestRunOtherwise(t *testing.T) {
	original := edited(t, path("llama__optimum"), func(m *onnx.Model) error {
		// The second token of each call, which there must be, times zero is added to the logits.
		m.Graph.Initializers = append(m.Graph.Initializers, int64s("second", 1), int64s("nothing", 0), int64s("last", 2))
		for _, n := range m.Graph.Nodes {
			if i := slices.Index(n.Outputs, "logits"); i >= 0 {
				n.Outputs[i] = "all_logits"
			}
		}
		m.Graph.Nodes = append(m.Graph.Nodes,
			onnx.NewNode("Gather", []string{"input_ids", "second"}, []string{"second_ids"}, onnx.IntAttr("axis", 1)),
			onnx.NewNode("Mul", []string{"second_ids", "nothing"}, []string{"no_ids"}),
			onnx.NewNode("Cast", []string{"no_ids"}, []string{"zeros"}, onnx.IntAttr("to", int64(onnx.Float))),
			onnx.NewNode("Unsqueeze", []string{"zeros", "last"}, []string{"zero_logits"}),
			onnx.NewNode("Add", []string{"all_logits", "zero_logits"}, []string{"logits"}))
		return nil
	})
	twoRuns(t, original, func(result *validate.Report) {
		if len(result.Cases) != 2 {
			t.Errorf("compared in %d ways: %+v", len(result.Cases), result.Cases)
		}
		if len(result.Notes) != 1 || !strings.Contains(result.Notes[0], "prefill, then 16 single tokens: not compared, because the original does not run this way (") {
			t.Errorf("the notes are %q", result.Notes)
		}
		// A patched model that does not run what the original runs is no such case.
		if _, err := run(t, path("llama__optimum"), original, validate.Options{}); err == nil || !strings.Contains(err.Error(), "single tokens") {
			t.Errorf("a patched model that runs no single tokens: %v", err)
		}
	})
}

func int64s(name string, v int64) *onnx.Tensor {
	return onnx.NewTensor(name, onnx.Int64, []int64{1}, binary.LittleEndian.AppendUint64(nil, uint64(v)))
}
