package testengine_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/rope-rewrite/rope-rewrite/internal/engine"
	"github.com/rope-rewrite/rope-rewrite/internal/testengine"
	"github.com/rope-rewrite/rope-rewrite/internal/testruntime"
	"github.com/rope-rewrite/rope-rewrite/onnx"
)

// counting is an engine whose models give what they are fed twice over, and which counts.
type counting struct{ opened, loads, runs atomic.Int64 }

func (c *counting) open(engine.Config) (engine.Engine, error) {
	c.opened.Add(1)
	return c, nil
}

func (c *counting) Close() error { return nil }

var errBroken = errors.New("broken")

func (c *counting) Load(_ context.Context, m engine.Model) (engine.Session, error) {
	c.loads.Add(1)
	if string(m.Bytes) == "broken" {
		return nil, errBroken
	}
	return doubling{c}, nil
}

type doubling struct{ *counting }

func (d doubling) Run(_ context.Context, feeds map[string]engine.Tensor) (map[string]engine.Tensor, error) {
	d.runs.Add(1)
	x, fed := feeds["x"]
	if !fed {
		return nil, errBroken
	}
	return map[string]engine.Tensor{"y": {Type: x.Type, Dims: x.Dims, Data: slices.Concat(x.Data, x.Data)}}, nil
}

var plain = engine.Model{Bytes: []byte("a model"), Inputs: []string{"x"}, Outputs: []string{"y"}}

func fed(v ...int64) map[string]engine.Tensor {
	return map[string]engine.Tensor{"x": engine.Int64s(v, int64(len(v)))}
}

// run opens an engine, loads a model and runs it.
func run(m *testengine.Memory, c *counting, config engine.Config, model engine.Model, feeds map[string]engine.Tensor) (map[string]engine.Tensor, error) {
	eng, err := m.Open(config, c.open)
	if err != nil {
		return nil, err
	}
	defer eng.Close()
	s, err := eng.Load(context.Background(), model)
	if err != nil {
		return nil, err
	}
	defer s.Close()
	return s.Run(context.Background(), feeds)
}

func TestRemembers(t *testing.T) {
	m, c := testengine.New(1<<20), new(counting)
	for range 3 {
		outputs, err := run(m, c, engine.Config{}, plain, fed(1, 2))
		if err != nil || !slices.Equal(outputs["y"].Values(), []float64{1, 2, 1, 2}) {
			t.Fatalf("%v, %v", outputs, err)
		}
		outputs["y"].Data[0] = 9 // it is the caller's
	}
	if c.opened.Load() != 1 || c.loads.Load() != 1 || c.runs.Load() != 1 {
		t.Errorf("opened %d times, loaded %d times, run %d times", c.opened.Load(), c.loads.Load(), c.runs.Load())
	}
	if _, err := run(m, c, engine.Config{}, plain, fed(1, 3)); err != nil || c.loads.Load() != 2 || c.runs.Load() != 2 {
		t.Errorf("other numbers: %v; loaded %d times, run %d times", err, c.loads.Load(), c.runs.Load())
	}
}

func TestTellsApart(t *testing.T) {
	m, c := testengine.New(1<<20), new(counting)
	changed := func(change func(*engine.Model)) engine.Model { x := plain; change(&x); return x }
	int32s, _ := engine.Integers(onnx.Int32, []int64{1, 0, 2, 0}, 4)
	float := engine.Float32s([]float32{1, 2}, 2)
	column := engine.Int64s([]int64{1, 2}, 2, 1)
	for i, x := range []struct {
		config engine.Config
		model  engine.Model
		feeds  map[string]engine.Tensor
	}{
		{engine.Config{}, plain, fed(1, 2)},
		{engine.Config{Threads: 1}, plain, fed(1, 2)},
		{engine.Config{Library: "other"}, plain, fed(1, 2)},
		{engine.Config{}, changed(func(m *engine.Model) { m.Bytes = []byte("another") }), fed(1, 2)},
		{engine.Config{}, changed(func(m *engine.Model) { m.Optimize = true }), fed(1, 2)},
		{engine.Config{}, changed(func(m *engine.Model) { m.Library = true }), fed(1, 2)},
		{engine.Config{}, changed(func(m *engine.Model) { m.Outputs = []string{"y", "z"} }), fed(1, 2)},
		{engine.Config{}, plain, fed(2, 1)},
		{engine.Config{}, plain, map[string]engine.Tensor{"x": int32s}},
		{engine.Config{}, plain, map[string]engine.Tensor{"x": float}},
		{engine.Config{}, plain, map[string]engine.Tensor{"x": column}},
	} {
		if _, err := run(m, c, x.config, x.model, x.feeds); err != nil || int(c.runs.Load()) != i+1 {
			t.Fatalf("case %d: %v; %d runs", i, err, c.runs.Load())
		}
	}
}

// Errors come every time, from the engine.
func TestErrorsAreNotRemembered(t *testing.T) {
	m, c := testengine.New(1<<20), new(counting)
	broken := engine.Model{Bytes: []byte("broken")}
	for range 2 {
		if _, err := run(m, c, engine.Config{}, broken, fed(1)); !errors.Is(err, errBroken) {
			t.Errorf("loading: %v", err)
		}
		if _, err := run(m, c, engine.Config{}, plain, nil); !errors.Is(err, errBroken) {
			t.Errorf("running: %v", err)
		}
	}
	if c.loads.Load() != 4 || c.runs.Load() != 2 {
		t.Errorf("loaded %d times, run %d times", c.loads.Load(), c.runs.Load())
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	eng, _ := m.Open(engine.Config{}, c.open)
	if _, err := eng.Load(ctx, plain); !errors.Is(err, context.Canceled) {
		t.Errorf("after the end: %v", err)
	}
	down := errors.New("no engine")
	eng, _ = testengine.New(1<<20).Open(engine.Config{}, func(engine.Config) (engine.Engine, error) { return nil, down })
	if _, err := eng.Load(t.Context(), plain); !errors.Is(err, down) {
		t.Errorf("without an engine: %v", err)
	}
}

// What lies in files may change.
func TestFilesAreNotRemembered(t *testing.T) {
	m, c := testengine.New(1<<20), new(counting)
	for _, model := range []engine.Model{{Path: "model.onnx"}, {Bytes: plain.Bytes, Folder: "weights"}} {
		for range 2 {
			if _, err := run(m, c, engine.Config{}, model, fed(1)); err != nil {
				t.Fatal(err)
			}
		}
	}
	if c.runs.Load() != 4 {
		t.Errorf("%d runs of 4", c.runs.Load())
	}
}

func TestForgets(t *testing.T) {
	m, c := testengine.New(4*16), new(counting) // of runs that give 16 bytes
	for _, x := range []struct {
		value int64
		runs  int64
	}{{1, 1}, {2, 2}, {3, 3}, {4, 4}, {1, 4}, {5, 5}, {2, 5}, {1, 6}, {2, 7}, {5, 7}} {
		if _, err := run(m, c, engine.Config{}, plain, fed(x.value)); err != nil || c.runs.Load() != x.runs {
			t.Errorf("%d: %v; %d runs, want %d", x.value, err, c.runs.Load(), x.runs)
		}
	}
	large := make([]int64, 100)
	for range 2 {
		if _, err := run(m, c, engine.Config{}, plain, fed(large...)); err != nil {
			t.Fatal(err)
		}
	}
	if c.runs.Load() != 9 {
		t.Errorf("what is too large: %d runs, want 9", c.runs.Load())
	}
}

func TestParallel(t *testing.T) {
	m, c := testengine.New(64*16), new(counting)
	var wait sync.WaitGroup
	for i := range 8 {
		wait.Go(func() {
			for j := range int64(200) {
				x := (j*7 + int64(i)) % 100
				outputs, err := run(m, c, engine.Config{}, plain, fed(x))
				if err != nil || !slices.Equal(outputs["y"].Values(), []float64{float64(x), float64(x)}) {
					t.Errorf("%d: %v, %v", x, outputs, err)
				}
			}
		})
	}
	wait.Wait()
}

// What is remembered is what ONNX Runtime gave, bit for bit.
func TestInONNXRuntime(t *testing.T) {
	testruntime.Require(t)
	model := onnx.New()
	model.RequireIR(8)
	model.RequireOpset("", 17)
	model.Graph.Name = "sine"
	model.Graph.AddInput(&onnx.ValueInfo{Name: "x", Type: onnx.Float})
	model.Graph.AddOutput(&onnx.ValueInfo{Name: "y"})
	model.Graph.Nodes = []*onnx.Node{onnx.NewNode("Sin", []string{"x"}, []string{"y"})}
	data, err := model.Marshal()
	if err != nil {
		t.Fatal(err)
	}
	opened := 0
	open := func(c engine.Config) (engine.Engine, error) {
		opened++
		return engine.NewLocal(c)
	}
	memory := testengine.New(1 << 20)
	var gave []string
	for range 2 {
		eng, err := memory.Open(engine.Config{Threads: 1}, open)
		if err != nil {
			t.Fatal(err)
		}
		s, err := eng.Load(t.Context(), engine.Model{Bytes: data, Inputs: []string{"x"}, Outputs: []string{"y"}})
		if err != nil {
			t.Fatal(err)
		}
		outputs, err := s.Run(t.Context(), map[string]engine.Tensor{"x": engine.Float32s([]float32{1, 2, 3}, 3)})
		if err != nil {
			t.Fatal(err)
		}
		gave = append(gave, fmt.Sprint(slices.Sorted(maps.Keys(outputs)), outputs["y"]))
		if err := errors.Join(s.Close(), eng.Close()); err != nil {
			t.Fatal(err)
		}
	}
	if gave[0] != gave[1] || opened != 1 {
		t.Errorf("first %s, then %s; opened %d times", gave[0], gave[1], opened)
	}
}
