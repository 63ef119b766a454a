package golden_test

import (
	"context"
	"math"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/rope-rewrite/rope-rewrite/internal/decoder"
	"github.com/rope-rewrite/rope-rewrite/internal/engine"
	"github.com/rope-rewrite/rope-rewrite/internal/npz"
	"github.com/rope-rewrite/rope-rewrite/internal/testruntime"
	"github.com/rope-rewrite/rope-rewrite/internal/testsample"
	"github.com/rope-rewrite/rope-rewrite/rewrite"
	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/tests/kit"
	"github.com/rope-rewrite/rope-rewrite/rope"
)

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
	for _, name := range testsample.Of(t, []string{"llama__optimum", "llama__dynamo18", "llama__dynamo18-eager",
		"qwen3__optimum", "qwen3__dynamo18", "gpt_neox__optimum", "gpt_neox__dynamo18",
		"llama__dynamo23", "qwen3__dynamo23", "gpt_neox__dynamo23",
		"llama__dynamo18-nocache", "llama__dynamo23-nocache", "llama__ts17", "gpt_neox__ts17", "qwen3__ts17-static",
		"llama__dynamo18-fp16", "gpt_neox__dynamo18-fp16",
		"llama__optimum-ort", "gpt_neox__dynamo18-fusions",
		"llama__transformers/decode", "llama__transformers/prefill", "llama__transformers-opset23/decode",
		"llama__transformers-fused/decode", "qwen3__transformers/decode"}, 4) {
		architecture, route, _ := strings.Cut(name, "__")
		// The bound: 1e-4 of what transformers computes, or where the whole
		// model is computed in 16 bits twice what it is off by before it is patched.
		bound := sync.OnceValue(func() float64 {
			if !strings.HasSuffix(route, "-fp16") {
				return 1e-4
			}
			return 2 * worstOf(t, kit.Model(name), architecture)
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
					opts.Evaluation.Worker = []string{os.Args[0]}
				}
				if m.scaling != "" {
					opts.Edits = append(opts.Edits, kit.Spec(t, rope.ScalingAxis, m.scaling))
				}
				if m.positions != "" {
					opts.Edits = append(opts.Edits, kit.Spec(t, rope.PositionsAxis, m.positions))
				}
				patched, _ := kit.Patch(t, kit.Model(name), opts)
				eng := kit.Local(t)
				if m.golden == "plain" {
					eng = worker(t)
				}
				d, err := decoder.Open(context.Background(), eng, patched, decoder.Options{})
				if err != nil {
					t.Fatal(err)
				}
				defer d.Close()
				for _, padded := range []bool{false, true} {
					g := kit.ReadGolden(t, architecture, m.golden, padded)
					for way, chunks := range kit.Ways {
						if len(chunks) > 1 && !d.Cached() {
							continue
						}
						logits, err := d.Chunks(context.Background(), g.Sequence, chunks...)
						if err != nil {
							t.Fatal(err)
						}
						if got := g.Distance(t, logits); !(got <= bound()) {
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
	d, err := decoder.Open(context.Background(), kit.Local(t), path, decoder.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	worst := 0.0
	for _, padded := range []bool{false, true} {
		g := kit.ReadGolden(t, architecture, "plain", padded)
		for _, chunks := range kit.Ways {
			logits, err := d.Chunks(context.Background(), g.Sequence, chunks...)
			if err != nil {
				t.Fatal(err)
			}
			worst = math.Max(worst, g.Distance(t, logits))
		}
	}
	t.Logf("%s as exported: off by %.2g", path, worst)
	return worst
}

func hasGolden(t *testing.T, architecture, key string) bool {
	t.Helper()
	f, err := npz.Open(filepath.Join(kit.Testdata, "goldens", architecture+".npz"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	_, _, err = f.Float32(key)
	return err == nil
}
