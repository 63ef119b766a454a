package mutant_test

import (
	"context"
	"math/rand/v2"
	"os"
	"slices"
	"testing"

	"github.com/rope-rewrite/rope-rewrite/cmd/dev/internal/mutant"
	"github.com/rope-rewrite/rope-rewrite/internal/engine"
	"github.com/rope-rewrite/rope-rewrite/internal/testruntime"
	"github.com/rope-rewrite/rope-rewrite/internal/testsample"
	"github.com/rope-rewrite/rope-rewrite/onnx"
	"github.com/rope-rewrite/rope-rewrite/rewrite"
)

func TestMain(m *testing.M) {
	rewrite.ServeIfWorker()
	os.Exit(m.Run())
}

// exports are of ten kinds: exporters, layouts, element types, windows, fused attention.
var exports = []string{
	"cohere__dynamo18", "gemma3_text__dynamo18", "gpt_neox__optimum", "gptj__ts17", "llama__dynamo18-fp16",
	"llama__dynamo23", "llama__genai-fp32", "llama__optimum", "llama__ts17", "qwen3__dynamo18",
}

// TestMutants makes a hundred and fifty mutants; make mutants makes more.
func TestMutants(t *testing.T) {
	testruntime.Require(t)
	worker := []string{os.Args[0]}
	each := testsample.Times(t, 15, 6) // mutants of an export, of which ONNX Runtime runs about a third
	all := 0
	for _, name := range testsample.Of(t, exports, 4) {
		i := slices.Index(exports, name) // the same mutants in every sample
		t.Run(name, func(t *testing.T) {
			eng, err := engine.NewWorker(engine.Config{Threads: 1}, worker[0])
			if err != nil {
				t.Fatal(err)
			}
			defer eng.Close()
			judge := mutant.Judge{Engine: eng, Worker: worker}
			judged := 0
			for seed := range uint64(each) {
				m, err := onnx.Open("../../../../testdata/models/" + name + "/model.onnx")
				if err != nil {
					t.Fatal(err)
				}
				changed, ok := mutant.Change(m, rand.New(rand.NewPCG(seed, uint64(i))))
				if !ok {
					t.Fatalf("seed %d: nothing could be changed", seed)
				}
				v, why, err := judge.Judge(context.Background(), m)
				m.Close()
				if err != nil {
					t.Fatal(err)
				}
				if v == mutant.Wrong {
					t.Errorf("seed %d: %s: %s", seed, changed.What, why)
				}
				if v.Judged() {
					judged++
				}
			}
			if judged == 0 && testsample.EveryCase() { // of a few mutants none may be run
				t.Errorf("%d of %d mutants were judged", judged, each)
			}
			all += judged
		})
	}
	if all == 0 {
		t.Error("no mutant was judged: the test shows nothing")
	}
}

// opened is an engine in this process, and an export.
func opened(t *testing.T, name string) (engine.Engine, *onnx.Model) {
	t.Helper()
	testruntime.Require(t)
	eng, err := engine.NewLocal(engine.Config{Threads: 1})
	if err != nil {
		t.Fatal(err)
	}
	m, err := onnx.Open("../../../../testdata/models/" + name + "/model.onnx")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { m.Close() })
	return eng, m
}

// isSame fails the test if a rewrite of the mutant is not judged the same.
func isSame(t *testing.T, eng engine.Engine, m *onnx.Model) {
	t.Helper()
	judge := mutant.Judge{Engine: eng, Worker: []string{os.Args[0]}}
	if v, why, err := judge.Judge(t.Context(), m); v != mutant.Same || err != nil {
		t.Errorf("%s: %s, %v", v, why, err)
	}
}

// node is the node of a name.
func node(t *testing.T, m *onnx.Model, name string) *onnx.Node {
	t.Helper()
	for n := range m.Graph.AllNodes() {
		if n.Name == name {
			return n
		}
	}
	t.Fatalf("there is no node %s", name)
	return nil
}

// A decoder with an encoder's keys and values as inputs is computed in float64 too.
func TestExactWithMemory(t *testing.T) {
	eng, m := opened(t, "moonshine__dynamo18")
	plain, err := mutant.Run(context.Background(), eng, m, false)
	if err != nil {
		t.Fatal(err)
	}
	exact, err := mutant.Exact(context.Background(), eng, m)
	if err != nil {
		t.Fatal(err)
	}
	if off := plain.Off(exact); off == 0 || off > 1e-5 {
		t.Errorf("float32 is off by %.2g of the range from float64", off)
	}
}

// A value that one branch rounds to 16 bits, and the op does not, is no wrong rewrite. There is no float64 of branches.
func TestRoundedInABranch(t *testing.T) {
	eng, m := opened(t, "gpt_neox__dynamo18-merged")
	if _, err := mutant.Exact(t.Context(), eng, m); err == nil {
		t.Fatal("branches have a float64 now: judges need no other way")
	}
	rounded := false
	for g := range m.Graph.AllGraphs() {
		for i, n := range g.Nodes {
			if n.Name != "node_slice_6" {
				continue
			}
			out := n.Outputs[0]
			n.Outputs[0] = "whole"
			g.Nodes = slices.Insert(g.Nodes, i+1,
				onnx.NewNode("Cast", []string{"whole"}, []string{"half"}, onnx.IntAttr("to", int64(onnx.Float16))),
				onnx.NewNode("Cast", []string{"half"}, []string{out}, onnx.IntAttr("to", int64(onnx.Float))))
			rounded = true
			break
		}
	}
	if !rounded {
		t.Fatal("there is no node_slice_6")
	}
	isSame(t, eng, m)
}

// Where activations are rounded to 8 bits, the last bit of one decides about a whole step: no rewrite is wrong by that.
func TestRoundedActivations(t *testing.T) {
	eng, m := opened(t, "llama__genai-int4")
	for _, n := range m.Graph.Nodes {
		if n.OpType == "MatMulNBits" {
			n.SetAttribute(onnx.IntAttr("accuracy_level", 3))
			break
		}
	}
	isSame(t, eng, m)
}

// A mutant's values have other sizes than its export declares; where buffers are shared by these, a rewrite is not to blame.
func TestDeclaredSizes(t *testing.T) {
	eng, m := opened(t, "qwen3__dynamo18")
	node(t, m, "node_transpose_5").Inputs[0] = "val_300"
	isSame(t, eng, m)
}

// Where activations have 8 bits, their steps are as large as the largest number of all tokens asks for, padded ones included.
func TestStepsOfPaddedTokens(t *testing.T) {
	eng, m := opened(t, "llama__optimum-int8")
	ofNaN := node(t, m, "/model/layers.1/self_attn/Constant_63") // in place of NaN, which queries give that see no key
	ofNaN.SetAttribute(onnx.TensorAttr("value", onnx.NewTensor("", onnx.Float, []int64{1}, []byte{0, 0, 0x80, 0x3f})))
	isSame(t, eng, m)
}
