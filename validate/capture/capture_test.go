package capture_test

import (
	"context"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/rope-rewrite/rope-rewrite/internal/testruntime"
	"github.com/rope-rewrite/rope-rewrite/internal/testsample"
	"github.com/rope-rewrite/rope-rewrite/onnx"
	"github.com/rope-rewrite/rope-rewrite/provenance"
	"github.com/rope-rewrite/rope-rewrite/rewrite"
	"github.com/rope-rewrite/rope-rewrite/rope"
	"github.com/rope-rewrite/rope-rewrite/rope/ref"
	"github.com/rope-rewrite/rope-rewrite/validate/capture"
)

func TestMain(m *testing.M) {
	rewrite.ServeIfWorker()
	testruntime.Examples()
	os.Exit(m.Run())
}

func model(name string) string {
	return filepath.Join("../../testdata/models", name, "model.onnx")
}

func open(t *testing.T, path string, options rewrite.Options) *capture.Model {
	t.Helper()
	runtime, library := testruntime.Paths(t)
	options.Evaluation.Runtime, options.Evaluation.Library, options.Evaluation.Worker = runtime, library, []string{os.Args[0]}
	m, err := capture.Open(context.Background(), path, capture.Options{Rewrite: options})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { m.Close() })
	return m
}

func spec(t *testing.T, axis rope.Axis, text string) rope.Spec {
	t.Helper()
	s, err := rope.ParseSpec(axis, text)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// check compares what was captured with the reference: of all calls together, the output of a layer may be off by
// twice what a plain implementation in float32 is off whose output is rounded to the model's type. One token
// alone has too few numbers to tell luck from error.
func check(t *testing.T, layers []capture.Layer, precision rope.Precision) {
	t.Helper()
	type squares struct{ got, plain float64 }
	of := map[int]squares{}
	for _, l := range layers {
		exact, err := ref.Run(l.Problem)
		if err != nil {
			t.Fatalf("layer %d: %v", l.Layer, err)
		}
		plain, err := ref.RunFloat32(l.Problem)
		if err != nil {
			t.Fatal(err)
		}
		for i, x := range plain.Output {
			plain.Output[i] = precision.Round(x)
		}
		if len(l.Output) != len(exact.Output) {
			t.Fatalf("layer %d: %d numbers of output, the reference has %d", l.Layer, len(l.Output), len(exact.Output))
		}
		sum := of[l.Layer]
		sum.got += distance(l.Output, exact.Output)
		sum.plain += distance(plain.Output, exact.Output)
		of[l.Layer] = sum
	}
	for layer, sum := range of {
		if got, plain := math.Sqrt(sum.got), math.Sqrt(sum.plain); !(got <= 2*plain) {
			t.Errorf("layer %d: off by %.3g from the reference; plain float32 is off by %.3g", layer, got, plain)
		}
	}
}

// distance is the mean of the squared differences.
func distance(a, b []float64) float64 {
	var sum float64
	for i := range a {
		sum += (a[i] - b[i]) * (a[i] - b[i])
	}
	return sum / float64(len(a))
}

// The reference, run on what was captured, gives what was captured: with grouped heads,
// partial rotation, interleaved pairs, windows, norms, 16 bits, and padding on the left or right.
func TestReferenceAgrees(t *testing.T) {
	for _, c := range testsample.Of(t, []struct {
		name      string
		layers    int
		precision rope.Precision
	}{
		{"llama__optimum", 2, rope.Float32},        // grouped heads
		{"gpt_neox__dynamo18", 2, rope.Float32},    // partial rotation
		{"gptj__ts17", 2, rope.Float32},            // interleaved pairs
		{"gemma3_text__dynamo18", 0, rope.Float32}, // windows
		{"llama__dynamo18-fp16", 2, rope.Float16},
		{"llama__genai-fp32", 2, rope.Float32}, // GroupQueryAttention, padding on the right
	}, 3) {
		t.Run(c.name, func(t *testing.T) {
			m := open(t, model(c.name), rewrite.Options{})
			run, err := m.Run(context.Background(), m.Random(20, 1))
			if err != nil {
				t.Fatal(err)
			}
			if n := len(run.Layers); n == 0 || c.layers > 0 && n != c.layers {
				t.Errorf("%d layers were captured, want %d; not captured: %v", n, c.layers, m.Skipped)
			}
			check(t, run.Layers, c.precision)
		})
	}
}

// A model that has methods is captured with what they make of it, and a cache is read too.
func TestPatchedAndCached(t *testing.T) {
	for _, c := range []struct {
		name    string
		options rewrite.Options
	}{
		{"string", rewrite.Options{Edits: []rope.Spec{spec(t, rope.PositionsAxis, "string:shift=10,window=4")}}},
		{"raw", rewrite.Options{Cache: rewrite.Cache{Raw: true}}},
		{"fixed", rewrite.Options{Cache: rewrite.Cache{Capacity: 32}}},
	} {
		t.Run(c.name, func(t *testing.T) {
			m := open(t, patched(t, c.options), rewrite.Options{})
			ctx := context.Background()
			in := capture.Tokens(make([]int64, 19)...)
			for i := range in.IDs {
				in.IDs[i] = int64(i) * 7 % 100
			}
			first, err := m.Run(ctx, in)
			if err != nil {
				t.Fatal(err)
			}
			check(t, first.Layers, rope.Float32)
			var decoded []capture.Layer
			for id := range int64(12) {
				next, err := m.Run(ctx, capture.Input{Batch: 1, Length: 1, IDs: []int64{5 + 7*id}, Mask: ones(20), Positions: []int64{19}, Cache: first.Cache})
				if err != nil {
					t.Fatal(err)
				}
				for _, l := range next.Layers {
					if l.Past < 19 || l.Length != 1 {
						t.Errorf("layer %d: a past of %d and %d tokens, want 19 and one", l.Layer, l.Past, l.Length)
					}
				}
				decoded = append(decoded, next.Layers...)
			}
			check(t, decoded, rope.Float32)
		})
	}
}

// The ops of a model that lost its record are captured by what stands at their nodes.
func TestWithoutRecord(t *testing.T) {
	path := patched(t, rewrite.Options{})
	m, err := onnx.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close()
	m.RemoveMetadata(provenance.Key)
	bare := filepath.Join(t.TempDir(), "bare.onnx")
	if err := m.Save(bare, onnx.SaveOptions{}); err != nil {
		t.Fatal(err)
	}
	c := open(t, bare, rewrite.Options{})
	run, err := c.Run(context.Background(), c.Random(20, 1))
	if err != nil {
		t.Fatal(err)
	}
	if len(run.Layers) != 2 {
		t.Errorf("%d layers were captured, want 2", len(run.Layers))
	}
	check(t, run.Layers, rope.Float32)
}

// patched rewrites the small Llama and returns the file.
func patched(t *testing.T, options rewrite.Options) string {
	t.Helper()
	runtime, library := testruntime.Paths(t)
	options.Evaluation.Runtime, options.Evaluation.Library, options.Evaluation.Worker = runtime, library, []string{os.Args[0]}
	m, err := onnx.Open(model("llama__optimum"))
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close()
	if _, err := rewrite.Rewrite(context.Background(), m, options); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "patched.onnx")
	if err := m.Save(path, onnx.SaveOptions{}); err != nil {
		t.Fatal(err)
	}
	return path
}

func ones(n int) []int64 {
	list := make([]int64, n)
	for i := range list {
		list[i] = 1
	}
	return list
}

// What is not captured is said: attention inside the branches of an If.
func TestKeptIsSaid(t *testing.T) {
	runtime, library := testruntime.Paths(t)
	_, err := capture.Open(context.Background(), model("gpt_neox__dynamo18-merged"),
		capture.Options{Rewrite: rewrite.Options{Evaluation: rewrite.Evaluation{Runtime: runtime, Library: library, Worker: []string{os.Args[0]}}}})
	if err == nil || !strings.Contains(err.Error(), "outside the model's own graph") {
		t.Errorf("got %v, want that its attention layers are in branches", err)
	}
}
