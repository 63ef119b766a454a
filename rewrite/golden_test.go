package rewrite_test

import (
	"context"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/rope-rewrite/rope-rewrite/internal/decoder"
	"github.com/rope-rewrite/rope-rewrite/internal/engine"
	"github.com/rope-rewrite/rope-rewrite/internal/npz"
	"github.com/rope-rewrite/rope-rewrite/internal/testruntime"
	"github.com/rope-rewrite/rope-rewrite/onnx"
	"github.com/rope-rewrite/rope-rewrite/rewrite"
	"github.com/rope-rewrite/rope-rewrite/rope"
)

const testdata = "../testdata"

// local evaluates in this process, as most tests do: a worker takes twice the time to
// decode token by token.
func local(t *testing.T) engine.Engine {
	t.Helper()
	eng, err := engine.NewLocal(engine.Config{Threads: 1})
	if err != nil {
		t.Fatal(err)
	}
	return eng
}

// worker evaluates in another process, as the command does.
func worker(t *testing.T) engine.Engine {
	t.Helper()
	eng, err := engine.NewWorker(engine.Config{Threads: 1}, os.Args[0])
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { eng.Close() })
	return eng
}

func model(name string) string { return filepath.Join(testdata, "models", name, "model.onnx") }

// patch rewrites a model into a temporary file and expects every site proven,
// now or in an earlier call.
func patch(t *testing.T, path string, opts rewrite.Options) (string, *rewrite.Report) {
	t.Helper()
	m, err := onnx.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close()
	report, err := rewrite.Rewrite(context.Background(), m, opts.Again(path))
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range report.Sites {
		if s.Status != rewrite.Rewritten {
			t.Fatalf("layer %d is kept: %s", s.Layer, s.Reason)
		}
	}
	out := filepath.Join(t.TempDir(), "model.onnx")
	if err := m.Save(out, onnx.SaveOptions{}); err != nil {
		t.Fatal(err)
	}
	return out, report
}

func spec(t *testing.T, axis rope.Axis, text string) rope.Spec {
	t.Helper()
	s, err := rope.ParseSpec(axis, text)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// golden is the inputs of a file of goldens, plain or left-padded.
type golden struct {
	sequence decoder.Sequence
	want     []float32 // [Batch, Length, vocabulary], or the real rows of the second sequence
	padded   bool
}

func readGolden(t *testing.T, architecture, key string, padded bool) golden {
	t.Helper()
	f, err := npz.Open(filepath.Join(testdata, "goldens", architecture+".npz"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	suffix := ""
	if padded {
		suffix = "_pad"
	}
	g := golden{padded: padded}
	for name, into := range map[string]*[]int64{"ids": &g.sequence.IDs, "mask": &g.sequence.Mask, "pos": &g.sequence.Positions} {
		data, shape, err := f.Int64(name + suffix)
		if err != nil {
			t.Fatal(err)
		}
		*into = data
		g.sequence.Batch, g.sequence.Length = int64(shape[0]), int64(shape[1])
	}
	if g.want, _, err = f.Float32(key + suffix); err != nil {
		t.Fatal(err)
	}
	return g
}

// distance returns the largest difference between logits and the golden.
func (g golden) distance(t *testing.T, logits []float64) float64 {
	t.Helper()
	if g.padded {
		width := len(logits) / int(g.sequence.Batch*g.sequence.Length)
		start := int(g.sequence.Length) // the second row
		for g.sequence.Mask[start] == 0 {
			start++
		}
		logits = logits[start*width : 2*int(g.sequence.Length)*width]
	}
	if len(logits) != len(g.want) {
		t.Fatalf("%d logits, the golden has %d", len(logits), len(g.want))
	}
	worst := 0.0
	for i, x := range logits {
		worst = math.Max(worst, math.Abs(x-float64(g.want[i])))
	}
	return worst
}

// ways of running a sequence of 48 tokens.
var ways = map[string][]int64{
	"prefill":        {48},
	"two chunks":     {17, 31},
	"token by token": slices.Repeat([]int64{1}, 48),
	"then decode":    slices.Concat([]int64{32}, slices.Repeat([]int64{1}, 16)),
}

// TestGoldens compares patched models with transformers and with the eager
// reference of STRING, in prefill, with a cache, in a batch and padded. Those
// whose meaning is kept are run in a worker, as the command runs models.
func TestGoldens(t *testing.T) {
	t.Parallel()
	testruntime.Require(t)
	methods := []struct {
		golden    string
		scaling   string
		positions string
		only      string
	}{
		{golden: "plain"},
		{golden: "linear4", scaling: "linear:factor=4"},
		{golden: "yarn4", scaling: "yarn:factor=4,original_max_position_embeddings=16"},
		{golden: "theta500k", scaling: "theta:rope_theta=500000", only: "llama"},
		{golden: "string", positions: "string:shift=16,window=4"},
	}
	for _, name := range []string{"llama__optimum", "llama__dynamo18", "llama__dynamo18-eager",
		"qwen3__optimum", "qwen3__dynamo18", "gpt_neox__optimum", "gpt_neox__dynamo18",
		"llama__dynamo23", "qwen3__dynamo23", "gpt_neox__dynamo23",
		"llama__dynamo18-nocache", "llama__dynamo23-nocache", "llama__ts17", "gpt_neox__ts17", "qwen3__ts17-static",
		"llama__dynamo18-fp16", "gpt_neox__dynamo18-fp16",
		"llama__optimum-ort", "gpt_neox__dynamo18-fusions"} {
		architecture, route, _ := strings.Cut(name, "__")
		// The bound: 1e-4 of what transformers computes, or where the whole
		// model is computed in 16 bits twice what it is off by before it is patched.
		bound := sync.OnceValue(func() float64 {
			if !strings.HasSuffix(route, "-fp16") {
				return 1e-4
			}
			return 2 * worstOf(t, model(name), architecture)
		})
		for _, m := range methods {
			if m.only != "" && m.only != architecture {
				continue
			}
			t.Run(name+"/"+m.golden, func(t *testing.T) {
				t.Parallel()
				if !hasGolden(t, architecture, m.golden) {
					t.Skipf("testdata has no golden of %s for %s", m.golden, architecture)
				}
				var opts rewrite.Options
				if m.golden == "plain" {
					opts.Worker = []string{os.Args[0]}
				}
				if m.scaling != "" {
					opts.Edits = append(opts.Edits, spec(t, rope.ScalingAxis, m.scaling))
				}
				if m.positions != "" {
					opts.Edits = append(opts.Edits, spec(t, rope.PositionsAxis, m.positions))
				}
				patched, _ := patch(t, model(name), opts)
				eng := local(t)
				if m.golden == "plain" {
					eng = worker(t)
				}
				d, err := decoder.Open(context.Background(), eng, patched, decoder.Options{})
				if err != nil {
					t.Fatal(err)
				}
				defer d.Close()
				for _, padded := range []bool{false, true} {
					g := readGolden(t, architecture, m.golden, padded)
					for way, chunks := range ways {
						if len(chunks) > 1 && !d.Cached() {
							continue
						}
						logits, err := d.Chunks(context.Background(), g.sequence, chunks...)
						if err != nil {
							t.Fatal(err)
						}
						if got := g.distance(t, logits); !(got <= bound()) {
							t.Errorf("%s, padded %v: off by %.2g, at most %.2g was expected", way, padded, got, bound())
						} else {
							t.Logf("%s, padded %v: off by %.2g", way, padded, got)
						}
					}
				}
			})
		}
	}
}

// worstOf returns how far a model is from its plain golden at most.
func worstOf(t *testing.T, path, architecture string) float64 {
	t.Helper()
	d, err := decoder.Open(context.Background(), local(t), path, decoder.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	worst := 0.0
	for _, padded := range []bool{false, true} {
		g := readGolden(t, architecture, "plain", padded)
		for _, chunks := range ways {
			logits, err := d.Chunks(context.Background(), g.sequence, chunks...)
			if err != nil {
				t.Fatal(err)
			}
			worst = math.Max(worst, g.distance(t, logits))
		}
	}
	t.Logf("%s as exported: off by %.2g", path, worst)
	return worst
}

func hasGolden(t *testing.T, architecture, key string) bool {
	t.Helper()
	f, err := npz.Open(filepath.Join(testdata, "goldens", architecture+".npz"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	_, _, err = f.Float32(key)
	return err == nil
}

func ExampleRewrite() {
	ctx := context.Background()
	m, err := onnx.Open("../testdata/models/llama__optimum/model.onnx")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer m.Close()
	yarn, err := rope.ParseSpec(rope.ScalingAxis, "yarn:factor=4,original_max_position_embeddings=64")
	if err != nil {
		fmt.Println(err)
		return
	}
	report, err := rewrite.Rewrite(ctx, m, rewrite.Options{Edits: []rope.Spec{yarn}})
	if err != nil {
		fmt.Println(err) // rewrite.ErrNoAttention: there was nothing to do; ErrPartial: not everything could be done
		return
	}
	for _, s := range report.Sites {
		fmt.Println("layer", s.Layer, s.Status, "heads", s.Heads, "rotary", s.RotaryDim, "theta", s.Theta, s.Mask)
	}
	// m.Save("model.rope.onnx", onnx.SaveOptions{}) writes the patched model.

	// Output:
	// layer 0 rewritten heads 4 rotary 16 theta 10000 causal + padding
	// layer 1 rewritten heads 4 rotary 16 theta 10000 causal + padding
}
