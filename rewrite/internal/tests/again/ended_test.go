package again_test

import (
	"context"
	"path/filepath"
	"strings"
	"testing"

	"github.com/rope-rewrite/rope-rewrite/internal/engine"
	"github.com/rope-rewrite/rope-rewrite/internal/testengine"
	"github.com/rope-rewrite/rope-rewrite/internal/testruntime"
	"github.com/rope-rewrite/rope-rewrite/internal/testsample"
	"github.com/rope-rewrite/rope-rewrite/onnx"
	"github.com/rope-rewrite/rope-rewrite/rewrite"
	"github.com/rope-rewrite/rope-rewrite/rewrite/internal/tests/kit"
)

// mortal is an engine whose n-th evaluation ends it.
type mortal struct {
	engine.Engine
	runs, last int
}

func (e *mortal) Load(ctx context.Context, m engine.Model) (engine.Session, error) {
	s, err := e.Engine.Load(ctx, m)
	return mortalSession{s, e}, err
}

type mortalSession struct {
	engine.Session
	by *mortal
}

func (s mortalSession) Run(ctx context.Context, feeds map[string]engine.Tensor) (map[string]engine.Tensor, error) {
	if s.by.runs++; s.by.runs == s.by.last {
		return nil, engine.ErrTimeout
	}
	return s.Session.Run(ctx, feeds)
}

// Whichever evaluation takes too long, that is the reason that a second rewrite gives, and not what the
// model would have to be for it: a layer of which no mask was measured has no other mask than before.
func TestEvaluationEnds(t *testing.T) {
	testruntime.Require(t)
	first, _ := kit.Patch(t, kit.Model("llama__optimum"), rewrite.Options{Target: rewrite.PlainONNX, Edits: kit.Edits(t, []string{"scaling linear:factor=2"})})
	memory := testengine.New(1 << 30)
	again := func(last int) (int, error) {
		dying := &mortal{last: last}
		ctx := engine.WithOpener(context.Background(), func(c engine.Config) (_ engine.Engine, err error) {
			dying.Engine, err = memory.Open(c, func(c engine.Config) (engine.Engine, error) { return engine.NewLocal(c) })
			return dying, err
		})
		m := kit.OpenModel(t, first)
		_, err := rewrite.Rewrite(ctx, m, rewrite.Options{Target: rewrite.PlainONNX, Edits: kit.Edits(t, []string{"scaling linear:factor=4"})})
		if err != nil {
			return dying.runs, err
		}
		return dying.runs, m.Save(filepath.Join(t.TempDir(), "again.onnx"), onnx.SaveOptions{})
	}
	runs, err := again(0)
	if err != nil {
		t.Fatal(err)
	}
	var each []int
	for n := 1; n <= runs; n += max(runs/80, 1) { // most of them are small calls of a kind
		each = append(each, n)
	}
	failed := 0
	for _, n := range testsample.Of(t, each, 18) {
		_, err := again(n)
		if err == nil {
			continue // it was not needed, or only the layer's rotation was
		}
		if failed++; !strings.Contains(err.Error(), engine.ErrTimeout.Error()) {
			t.Errorf("evaluation %d of %d: %v", n, runs, err)
		}
	}
	if failed == 0 {
		t.Error("no evaluation was needed: the test shows nothing")
	}
}
