package main

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"

	"github.com/rope-rewrite/rope-rewrite/cmd/dev/internal/mutant"
	"github.com/rope-rewrite/rope-rewrite/internal/engine"
	"github.com/rope-rewrite/rope-rewrite/internal/testengine"
	"github.com/rope-rewrite/rope-rewrite/onnx"
)

// outcome is what came of a mutant.
type outcome struct {
	Verdict  mutant.Verdict
	Text     string // the export, what was changed, and why it is judged so
	Control  bool   // control nodes alone were changed
	Compared bool   // with its export
	Differs  bool   // from its export
}

// trial is what mutants are made of and where they run.
type trial struct {
	models   []string
	provider string // ONNX Runtime's short name of an execution provider; "" is the CPU
}

// court makes and judges mutants of some exports.
type court struct {
	trial
	judge  mutant.Judge
	memory *testengine.Memory // of what rewrites evaluated; nil without
	loaded map[string]*export
}

// export is one that was loaded.
type export struct {
	model *onnx.Model
	exact mutant.Logits // in float64; nil where that cannot be computed
	plain mutant.Logits // as it is
}

const (
	remembered = 256 << 20 // bytes of what rewrites evaluated
	inARow     = 200       // seeds of the same export, whose pieces are mostly the same
	drawn      = 10        // of the mutants of other than control nodes, one in so many is compared with its export; of all, one in so many is run optimised
)

// export loads an export, once.
func (c *court) export(ctx context.Context, path string) (*export, error) {
	if e := c.loaded[path]; e != nil {
		return e, nil
	}
	m, err := onnx.Open(path)
	if err != nil {
		return nil, err
	}
	e := &export{model: m}
	e.exact, _ = mutant.Exact(ctx, c.judge.Engine, m)
	e.plain, _ = mutant.Run(ctx, c.judge.Engine, m, false)
	if c.loaded == nil {
		c.loaded = map[string]*export{}
	}
	c.loaded[path] = e
	return e, nil
}

// context gives rewrites the engine that remembers.
func (c *court) context(ctx context.Context) context.Context {
	if c.memory == nil {
		return ctx
	}
	return engine.WithOpener(ctx, func(config engine.Config) (engine.Engine, error) {
		return c.memory.Open(config, func(config engine.Config) (engine.Engine, error) { return engine.NewLocal(config) })
	})
}

// whole judges an export itself: one that is not rewritten, or not run, has no mutants that say anything.
func (c *court) whole(ctx context.Context, path string) (outcome, error) {
	m, err := onnx.Open(path)
	if err != nil {
		return outcome{}, err
	}
	defer m.Close()
	v, why, err := c.judge.Judge(c.context(ctx), m)
	return outcome{Verdict: v, Text: called(path) + ": " + why}, err
}

// try makes and judges the mutant of a seed.
func (c *court) try(ctx context.Context, seed uint64) (outcome, error) {
	rng := rand.New(rand.NewPCG(seed, 0))
	path := c.path(seed)
	e, err := c.export(ctx, path)
	if err != nil {
		return outcome{}, err
	}
	m := e.model.Clone()
	changed, ok := mutant.Change(m, rng)
	if !ok {
		return outcome{Verdict: mutant.NotRun, Text: "nothing could be changed"}, nil
	}
	compared := changed.Control || rng.IntN(drawn) == 0
	judge := c.judge
	judge.Optimized = rng.IntN(drawn) == 0
	v, why, err := judge.Judge(c.context(ctx), m)
	o := outcome{Verdict: v, Text: strings.Join([]string{called(path), changed.What, why}, ": "), Control: changed.Control}
	if err == nil && v.Judged() && compared {
		o.Compared, o.Differs = true, c.differs(ctx, e, m)
	}
	return o, err
}

// able is an error where a mutant that did not run has taken the device with it: after an access beyond memory,
// CUDA runs nothing more in this process.
func (c *court) able(ctx context.Context, o outcome, q question) error {
	if c.provider == "" || o.Verdict != mutant.NotRun || q.Whole != "" {
		return nil
	}
	e, err := c.export(ctx, c.path(q.Seed))
	if err != nil {
		return err
	}
	if _, err := mutant.Run(ctx, c.judge.Engine, e.model, false); err != nil {
		return fmt.Errorf("%s runs nothing any more: %w", c.provider, err)
	}
	return nil
}

// path is that of the export whose mutant a seed is.
func (c *court) path(seed uint64) string { return c.models[seed/inARow%uint64(len(c.models))] }

// differs reports whether a mutant gives other logits than its export: in float64, or where that cannot be
// computed by more than rounding does.
func (c *court) differs(ctx context.Context, e *export, m *onnx.Model) bool {
	if e.exact != nil {
		if got, err := mutant.Exact(ctx, c.judge.Engine, m); err == nil {
			return e.exact.Off(got) > 1e-9
		}
	}
	got, err := mutant.Run(ctx, c.judge.Engine, m, false)
	return err == nil && e.plain.Off(got) > 1e-4
}

// called is an export's name: its folder and the one that this lies in.
func called(path string) string {
	folder := filepath.Dir(path)
	return filepath.Base(filepath.Dir(folder)) + "/" + filepath.Base(folder)
}

// isolated makes a court whose mutants cannot end this process. close ends it. folder is where their files
// stay, "" for nowhere.
func isolated(t trial, folder string) (c *court, close func(), _ error) {
	eng, err := engine.NewWorker(engine.Config{Threads: 1, Provider: t.provider}, os.Args[0])
	if err != nil {
		return nil, nil, err
	}
	return &court{trial: t, judge: mutant.Judge{Engine: eng, Worker: []string{os.Args[0]}, Folder: folder}}, func() { eng.Close() }, nil
}
