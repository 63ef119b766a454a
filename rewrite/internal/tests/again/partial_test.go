package again_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/rope-rewrite/rope-rewrite/customop"
	"github.com/rope-rewrite/rope-rewrite/internal/testruntime"
	"github.com/rope-rewrite/rope-rewrite/onnx"
	"github.com/rope-rewrite/rope-rewrite/rewrite"
	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/tests/kit"
	"github.com/rope-rewrite/rope-rewrite/rope"
)

// Without a library nothing is rewritten, and that is an error: a model saved
// after it would lack what was asked for.
func TestRewriteWithoutLibrary(t *testing.T) {
	testruntime.Require(t)
	runtime, library := testruntime.Paths(t)
	absent := filepath.Join(t.TempDir(), "absent.so")
	for _, c := range []struct {
		name             string
		runtime, library string
		missing          []string
	}{
		{"op library", runtime, absent, []string{"the op library"}},
		{"ONNX Runtime", absent, library, []string{"ONNX Runtime"}},
		{"both", absent, absent, []string{"ONNX Runtime", "the op library"}},
	} {
		for _, way := range []string{"options", "environment"} {
			t.Run(c.name+"/"+way, func(t *testing.T) {
				opts := rewrite.Options{Edits: []rope.Spec{kit.Spec(t, rope.ScalingAxis, "yarn:factor=4,original_max_position_embeddings=16")}, Evaluation: rewrite.Evaluation{Worker: []string{os.Args[0]}}, AllowUnchanged: true}
				if way == "options" {
					opts.Evaluation.Runtime, opts.Evaluation.Library = c.runtime, c.library
				} else {
					t.Setenv(customop.RuntimeVariable, c.runtime)
					t.Setenv(customop.LibraryVariable, c.library)
				}
				m, err := onnx.Open(kit.Model("llama__optimum"))
				if err != nil {
					t.Fatal(err)
				}
				defer m.Close()
				report, err := kit.Rewrite(context.Background(), m, opts)
				if err == nil {
					t.Fatalf("no error; %d of %d sites are rewritten", report.Rewritten(), len(report.Sites))
				}
				for _, what := range []string{"ONNX Runtime: ", "the op library librope_ops.so: "} {
					said := strings.Contains(err.Error(), what)
					wanted := false
					for _, missing := range c.missing {
						wanted = wanted || strings.HasPrefix(what, missing)
					}
					if said != wanted {
						t.Errorf("%q in %q: %v, expected %v", what, err, said, wanted)
					}
				}
				if strings.Contains(err.Error(), "\n") {
					t.Errorf("more than one line: %q", err)
				}
				if report == nil || len(report.Sites) != 0 {
					t.Errorf("the graph was looked into: %+v", report)
				}
			})
		}
	}
}

// In one process ONNX Runtime may be loaded from wherever the program found it.
func TestRewriteWithLoadedRuntime(t *testing.T) {
	testruntime.Require(t)
	t.Setenv(customop.RuntimeVariable, filepath.Join(t.TempDir(), "absent.so"))
	m, err := onnx.Open(kit.Model("llama__optimum"))
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close()
	opts := rewrite.Options{}
	if report, err := kit.Rewrite(context.Background(), m, opts); err != nil || report.Rewritten() != 2 {
		t.Errorf("%d sites are rewritten, %v", report.Rewritten(), err)
	}
}

// A site that was asked for and is kept is an error in Go, as exit code 3 is on
// the command line, unless the caller allows it.
func TestKeptSitesAreAnError(t *testing.T) {
	t.Parallel()
	testruntime.Require(t)
	spoiled := filepath.Join(t.TempDir(), "model.onnx")
	m, err := onnx.Open(kit.Model("llama__optimum"))
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close()
	softmaxes := 0
	for _, n := range m.Graph.Nodes {
		if n.OpType == "Softmax" {
			if softmaxes++; softmaxes == 2 {
				n.SetAttribute(onnx.IntAttr("axis", 1)) // over the heads
			}
		}
	}
	if err := m.Save(spoiled, onnx.SaveOptions{}); err != nil {
		t.Fatal(err)
	}
	only := func(layer int) func(int) bool { return func(i int) bool { return i == layer } }
	yarn := []rope.Spec{kit.Spec(t, rope.ScalingAxis, "yarn:factor=4,original_max_position_embeddings=16")}
	for _, c := range []struct {
		name      string
		opts      rewrite.Options
		rewritten int
		want      string // of the error
	}{
		{"unchanged", rewrite.Options{Edits: yarn}, 1, "not every attention layer could be rewritten: 1 of 2 are unchanged, first layer 1 ("},
		{"of which no method is asked", rewrite.Options{}, 1, "1 of 2 are unchanged"},
		{"allowed", rewrite.Options{Edits: yarn, AllowUnchanged: true}, 1, ""},
		{"not asked for", rewrite.Options{Edits: yarn, Layers: only(0)}, 1, ""},
		{"asked for alone", rewrite.Options{Layers: only(1)}, 0, "1 of 2 are unchanged"},
		{"a cache of fixed capacity", rewrite.Options{Cache: rewrite.Cache{Capacity: 8}}, 1, "for a cache of fixed capacity every attention layer must be rewritten, and layer 1 is unchanged: "},
		{"a cache of fixed capacity, allowed", rewrite.Options{Cache: rewrite.Cache{Capacity: 8}, AllowUnchanged: true}, 1, "every attention layer must be rewritten"},
		{"of which the rotation is changed", rewrite.Options{Target: rewrite.PlainONNX, Edits: yarn}, 2, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			m, err := onnx.Open(spoiled)
			if err != nil {
				t.Fatal(err)
			}
			defer m.Close()
			report, err := kit.Rewrite(context.Background(), m, c.opts)
			if errors.Is(err, rewrite.ErrPartial) != (c.want != "") || err != nil && !strings.Contains(err.Error(), c.want) {
				t.Errorf("error %v lacks %q", err, c.want)
			}
			if len(report.Sites) != 2 || report.Rewritten() != c.rewritten {
				t.Errorf("%d of %d sites are rewritten", report.Rewritten(), len(report.Sites))
			}
			if err != nil && !strings.Contains(err.Error(), report.Sites[1].Reason) {
				t.Errorf("error %v does not say that %s", err, report.Sites[1].Reason)
			}
		})
	}
}
