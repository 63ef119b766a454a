package mutant_test

import (
	"context"
	"math/rand/v2"
	"os"
	"testing"

	"github.com/rope-rewrite/rope-rewrite/internal/engine"
	"github.com/rope-rewrite/rope-rewrite/internal/mutant"
	"github.com/rope-rewrite/rope-rewrite/internal/testruntime"
	"github.com/rope-rewrite/rope-rewrite/onnx"
	"github.com/rope-rewrite/rope-rewrite/rewrite"
)

func TestMain(m *testing.M) {
	rewrite.ServeIfWorker()
	os.Exit(m.Run())
}

// TestMutants judges a few mutants of each export; make mutants judges thousands.
func TestMutants(t *testing.T) {
	testruntime.Require(t)
	worker := []string{os.Args[0]}
	for _, name := range []string{"llama__optimum", "llama__dynamo18", "gpt_neox__dynamo18", "llama__dynamo23"} {
		t.Run(name, func(t *testing.T) {
			eng, err := engine.NewWorker(engine.Config{Threads: 1}, worker[0])
			if err != nil {
				t.Fatal(err)
			}
			defer eng.Close()
			judged := 0
			for seed := uint64(0); judged < 8; seed++ {
				m, err := onnx.Open("../../testdata/models/" + name + "/model.onnx")
				if err != nil {
					t.Fatal(err)
				}
				what, ok := mutant.Change(m, rand.New(rand.NewPCG(seed, 1)))
				if !ok {
					t.Fatalf("seed %d: nothing could be changed", seed)
				}
				v, why, err := mutant.Judge(context.Background(), eng, m, t.TempDir(), worker)
				m.Close()
				if err != nil {
					t.Fatal(err)
				}
				if v == mutant.Wrong {
					t.Errorf("seed %d: %s: %s", seed, what, why)
				}
				if v.Judged() {
					judged++
				}
			}
		})
	}
}
