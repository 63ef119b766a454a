package prove_test

import (
	"context"
	"testing"

	"github.com/rope-rewrite/rope-rewrite/customop"
	"github.com/rope-rewrite/rope-rewrite/internal/engine"
	"github.com/rope-rewrite/rope-rewrite/internal/testruntime"
	"github.com/rope-rewrite/rope-rewrite/onnx"
	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/prove"
)

// listening keeps the models that are loaded with the op library.
type listening struct {
	engine.Engine
	loaded []*onnx.Model
}

func (l *listening) Load(ctx context.Context, m engine.Model) (engine.Session, error) {
	if m.Library {
		model, err := onnx.Parse(m.Bytes)
		if err != nil {
			return nil, err
		}
		l.loaded = append(l.loaded, model)
	}
	return l.Engine.Load(ctx, m)
}

// A fallback is compared with the exact op also where the node asks for the fast one, which rounds to bfloat16 on
// some processors: there no fallback would ever be the same.
func TestDefinitionOfFastIsExact(t *testing.T) {
	testruntime.Require(t)
	eng, err := engine.NewLocal(engine.Config{Threads: 1})
	if err != nil {
		t.Fatal(err)
	}
	defer eng.Close()
	op, n := cachedOp(t, func(r *customop.RotaryAttention) { r.Precision = "fast" })
	if n.Text("precision", "") != "fast" {
		t.Fatal("the node of the test is not fast")
	}
	l := &listening{Engine: eng}
	if _, err := prove.Definition(context.Background(), l, n, op, functionOf(t, n), 18, headSize); err != nil {
		t.Fatal(err)
	}
	if len(l.loaded) != 1 || l.loaded[0].Graph.Nodes[0].Text("precision", "") != "exact" {
		t.Errorf("%d models with the library, of which the first does not ask for exact", len(l.loaded))
	}
	if n.Text("precision", "") != "fast" {
		t.Error("the node was changed")
	}
}
