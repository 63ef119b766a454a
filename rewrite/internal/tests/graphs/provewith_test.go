package graphs_test

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/rope-rewrite/rope-rewrite/customop"
	"github.com/rope-rewrite/rope-rewrite/internal/engine"
	"github.com/rope-rewrite/rope-rewrite/internal/testruntime"
	"github.com/rope-rewrite/rope-rewrite/onnx"
	"github.com/rope-rewrite/rope-rewrite/provenance"
	"github.com/rope-rewrite/rope-rewrite/rewrite"
	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/tests/kit"
)

// provider is an execution provider that computes something else of Attention, as one of ONNX Runtime's did of a causal
// one with a past (microsoft/onnxruntime#29020).
type provider struct {
	engine.Engine
	wrong  bool
	loaded int
}

func (p *provider) Version() string { return "9.9.9" }

func (p *provider) Load(ctx context.Context, em engine.Model) (engine.Session, error) {
	p.loaded++
	m, err := onnx.Parse(em.Bytes)
	if err != nil {
		return nil, err
	}
	for n := range m.Graph.AllNodes() {
		if p.wrong && n.OpType == "Attention" {
			n.SetAttribute(onnx.FloatAttr("scale", n.Float("scale", 1)*1.25))
		}
	}
	if em.Bytes, err = m.Marshal(); err != nil {
		return nil, err
	}
	return p.Engine.Load(ctx, em)
}

// Layers are measured with one runtime and verified with the one that was named: what that computes otherwise is
// refused, with its name, and the record has it.
func TestProveWith(t *testing.T) {
	testruntime.Require(t)
	const name = "llama__dynamo23"
	for _, wrong := range []bool{false, true} {
		p := &provider{wrong: wrong}
		ctx := engine.WithOpener(context.Background(), func(c engine.Config) (engine.Engine, error) {
			given := c.Provider
			c.Provider = ""
			local, err := engine.NewLocal(c)
			if given != "Other" {
				return local, err
			}
			p.Engine = local
			return p, err
		})
		m := kit.OpenModel(t, kit.Model(name))
		report, err := rewrite.Rewrite(ctx, m, rewrite.Options{AllowUnchanged: true, Evaluation: rewrite.Evaluation{ProveWith: rewrite.ProveWith{Provider: "Other"}}})
		if err != nil {
			t.Fatal(err)
		}
		if p.loaded == 0 {
			t.Error("the provider was not asked")
		}
		if !wrong {
			record, err := provenance.Read(m)
			if err != nil {
				t.Fatal(err)
			}
			if want := (provenance.Runtime{Version: "9.9.9", Provider: "Other"}); report.Rewritten() != 2 || record.ProvenWith == nil || *record.ProvenWith != want {
				t.Errorf("%d layers are rewritten, proven with %v; want 2 and %v", report.Rewritten(), record.ProvenWith, want)
			}
			continue
		}
		for _, s := range report.Sites {
			if s.Status != rewrite.Unchanged || s.Kind != rewrite.NotVerified || !strings.Contains(s.Reason, "verified with ONNX Runtime 9.9.9 on Other: ") {
				t.Errorf("layer %d is %s (%s): %s", s.Layer, s.Status, s.Kind, s.Reason)
			}
		}
	}
}

// Another library needs a process of its own.
func TestProveWithNeedsWorker(t *testing.T) {
	testruntime.Require(t)
	_, err := rewrite.Rewrite(context.Background(), kit.OpenModel(t, kit.Model("llama__dynamo23")), rewrite.Options{Evaluation: rewrite.Evaluation{ProveWith: rewrite.ProveWith{Runtime: "another.so"}}})
	if err == nil || !strings.Contains(err.Error(), "name a Worker") {
		t.Errorf("got %v", err)
	}
}

// A library that is too old for the command is refused with both versions.
func TestProveWithOldRuntime(t *testing.T) {
	testruntime.Require(t)
	current, _ := testruntime.Paths(t)
	old, _ := filepath.Glob(filepath.Join(filepath.Dir(current), "..", "onnxruntime-old", "*", "libonnxruntime.so"))
	if len(old) == 0 {
		t.Skip("not tested: there is no older ONNX Runtime; run scripts/fetch-old-onnxruntimes.sh")
	}
	_, err := rewrite.Rewrite(context.Background(), kit.OpenModel(t, kit.Model("llama__dynamo23")), rewrite.Options{
		Evaluation: rewrite.Evaluation{Worker: []string{os.Args[0]}, ProveWith: rewrite.ProveWith{Runtime: old[0]}}})
	if err == nil || !strings.Contains(err.Error(), "ONNX Runtime "+customop.MinRuntime+" or newer is needed and "+old[0]+" is older") {
		t.Errorf("got %v", err)
	}
}
