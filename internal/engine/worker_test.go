package engine

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/rope-rewrite/rope-rewrite/internal/testruntime"
	"github.com/rope-rewrite/rope-rewrite/onnx"
)

func TestMain(m *testing.M) {
	ServeIfWorker()
	if os.Getenv(parentVariable) != "" {
		parent()
	}
	os.Exit(m.Run())
}

// parentVariable makes the test's program the parent of a worker that evaluates
// the model in the file that it names.
const parentVariable = "ENGINE_TEST_PARENT"

// parent evaluates without end and prints the worker's process id.
func parent() {
	err := func() error {
		w, err := NewWorker(Config{Timeout: time.Hour}, os.Args[0])
		if err != nil {
			return err
		}
		s, err := w.Load(context.Background(), Model{Path: os.Getenv(parentVariable), Inputs: []string{"x"}, Outputs: []string{"y"}})
		if err != nil {
			return err
		}
		fmt.Println(w.child.cmd.Process.Pid)
		_, err = s.Run(context.Background(), map[string]Tensor{"x": Float32s([]float32{1}, 1)})
		return err
	}()
	fmt.Fprintln(os.Stderr, err)
	os.Exit(1)
}

func newTestWorker(t *testing.T, c Config) *Worker {
	t.Helper()
	testruntime.Require(t)
	w, err := NewWorker(c, os.Args[0])
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { w.Close() })
	return w
}

// newModel returns a model of nodes that read x, a list of floats, and make y.
func newModel(t *testing.T, nodes []*onnx.Node, constants ...*onnx.Tensor) Model {
	t.Helper()
	m := onnx.New()
	m.RequireIR(8)
	m.RequireOpset("", 18)
	m.RequireOpset("com.microsoft", 1)
	m.Graph.Name = "test"
	m.Graph.AddInput(onnx.NewValueInfo("x", onnx.Float, onnx.Dim{Param: "n"}))
	m.Graph.AddOutput(&onnx.ValueInfo{Name: "y"})
	m.Graph.Nodes, m.Graph.Initializers = nodes, constants
	data, err := m.Marshal()
	if err != nil {
		t.Fatal(err)
	}
	return Model{Bytes: data, Inputs: []string{"x"}, Outputs: []string{"y"}}
}

func constant(name string, dims []int64, t Tensor) *onnx.Tensor {
	return onnx.NewTensor(name, t.Type, dims, t.Data)
}

// doubling makes y = 2·x.
// constantModel has no inputs.
func constantModel(t *testing.T) Model {
	t.Helper()
	m := onnx.New()
	m.RequireIR(8)
	m.RequireOpset("", 18)
	m.Graph.Name = "test"
	m.Graph.AddOutput(&onnx.ValueInfo{Name: "y"})
	m.Graph.Nodes = []*onnx.Node{onnx.NewNode("Constant", nil, []string{"y"}, onnx.TensorAttr("value", onnx.NewTensor("", onnx.Float, []int64{1}, make([]byte, 4))))}
	data, err := m.Marshal()
	if err != nil {
		t.Fatal(err)
	}
	return Model{Bytes: data, Outputs: []string{"y"}}
}

func doubling(t *testing.T) Model {
	return newModel(t, []*onnx.Node{onnx.NewNode("Add", []string{"x", "x"}, []string{"y"})})
}

// killing is a model on which ONNX Runtime ends its own process.
func killing(t *testing.T) Model {
	n := onnx.NewNode("GroupQueryAttention", []string{"h", "h", "h", "", "", "one", "len"}, []string{"a", "b", "c"},
		onnx.IntAttr("num_heads", 1), onnx.IntAttr("kv_num_heads", 1<<40))
	n.Domain = "com.microsoft"
	lens, _ := Integers(onnx.Int32, []int64{1}, 1)
	return newModel(t, []*onnx.Node{n, onnx.NewNode("Add", []string{"x", "x"}, []string{"y"})},
		constant("h", []int64{1, 1, 8}, Float32s(make([]float32, 8))), constant("one", []int64{1}, lens), constant("len", []int64{}, lens))
}

// endless is a model that never comes back.
func endless(t *testing.T) Model {
	body := &onnx.Graph{
		Name: "forever",
		Inputs: []*onnx.ValueInfo{
			onnx.NewValueInfo("count", onnx.Int64),
			onnx.NewValueInfo("go", onnx.Bool),
			{Name: "in", Type: onnx.Float},
		},
		Nodes: []*onnx.Node{
			onnx.NewNode("Identity", []string{"go"}, []string{"on"}),
			onnx.NewNode("Identity", []string{"in"}, []string{"out"}),
		},
		Outputs: []*onnx.ValueInfo{onnx.NewValueInfo("on", onnx.Bool), {Name: "out", Type: onnx.Float}},
	}
	return newModel(t, []*onnx.Node{onnx.NewNode("Loop", []string{"", "true", "x"}, []string{"y"}, onnx.GraphAttr("body", body))},
		onnx.NewTensor("true", onnx.Bool, []int64{}, []byte{1}))
}

func loadAndRun(t *testing.T, e Engine, m Model) (map[string]Tensor, error) {
	t.Helper()
	s, err := e.Load(context.Background(), m)
	if err != nil {
		return nil, err
	}
	t.Cleanup(func() { s.Close() })
	return s.Run(context.Background(), map[string]Tensor{"x": Float32s([]float32{1, 2, 3}, 3)})
}

func works(t *testing.T, e Engine) {
	t.Helper()
	out, err := loadAndRun(t, e, doubling(t))
	if err != nil {
		t.Fatal(err)
	}
	if got := out["y"].Values(); len(got) != 3 || got[2] != 6 {
		t.Errorf("2·x is %v", got)
	}
}

func TestEnginesAgree(t *testing.T) {
	w := newTestWorker(t, Config{})
	works(t, w)
	l, err := NewLocal(Config{})
	if err != nil {
		t.Fatal(err)
	}
	works(t, l)
}

func TestWorkerDies(t *testing.T) {
	w := newTestWorker(t, Config{})
	before, err := w.Load(context.Background(), doubling(t))
	if err != nil {
		t.Fatal(err)
	}
	defer before.Close()
	_, err = loadAndRun(t, w, killing(t))
	if !errors.Is(err, ErrDied) {
		t.Fatalf("the error is %v", err)
	}
	if !strings.Contains(err.Error(), "SIG") {
		t.Errorf("no signal is named: %v", err)
	}
	works(t, w)
	// A session of the dead child is loaded anew.
	out, err := before.Run(context.Background(), map[string]Tensor{"x": Float32s([]float32{4}, 1)})
	if err != nil || out["y"].Values()[0] != 8 {
		t.Errorf("the session from before gives %v, %v", out, err)
	}
}

// TestWorkerKilled: what another program ends is evaluated once more, and an error where it is ended again.
func TestWorkerKilled(t *testing.T) {
	w := newTestWorker(t, Config{})
	s, err := w.Load(context.Background(), doubling(t))
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	if err := w.child.cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	out, err := s.Run(context.Background(), map[string]Tensor{"x": Float32s([]float32{4}, 1)})
	if err != nil || out["y"].Values()[0] != 8 {
		t.Errorf("after the child was killed: %v, %v", out, err)
	}
	runs := 0
	err = again(func() error { runs++; return errKilled })
	if runs != 2 || !errors.Is(err, ErrDied) {
		t.Errorf("%d runs, %v", runs, err)
	}
	again(func() error { runs++; return ErrDied })
	if runs != 3 {
		t.Error("what ONNX Runtime ends is done once more")
	}
}

func TestWorkerTimeout(t *testing.T) {
	w := newTestWorker(t, Config{Timeout: 2 * time.Second})
	if _, err := loadAndRun(t, w, endless(t)); !errors.Is(err, ErrTimeout) {
		t.Fatalf("the error is %v", err)
	}
	works(t, w)
}

// TestWorkerGivesUp: a graph of many endless parts does not take many timeouts.
func TestWorkerGivesUp(t *testing.T) {
	w := newTestWorker(t, Config{Timeout: time.Second})
	for range maxTimeouts {
		if _, err := loadAndRun(t, w, endless(t)); !errors.Is(err, ErrTimeout) {
			t.Fatalf("the error is %v", err)
		}
	}
	if _, err := loadAndRun(t, w, doubling(t)); !errors.Is(err, ErrTimeout) {
		t.Errorf("after %d timeouts the error is %v", maxTimeouts, err)
	}
}

func TestWorkerMemory(t *testing.T) {
	w := newTestWorker(t, Config{Memory: 6 << 30})
	big := newModel(t, []*onnx.Node{
		onnx.NewNode("ConstantOfShape", []string{"shape"}, []string{"zeros"}),
		onnx.NewNode("ReduceMax", []string{"zeros"}, []string{"most"}, onnx.IntAttr("keepdims", 0)),
		onnx.NewNode("Add", []string{"x", "most"}, []string{"y"}),
	}, constant("shape", []int64{2}, Int64s([]int64{1 << 16, 1 << 15}))) // 8 GiB
	if out, err := loadAndRun(t, w, big); err == nil {
		t.Errorf("8 GiB of zeros in 6 GiB give %v", out["y"].Values())
	} else {
		t.Log(err)
	}
	works(t, w)
}

func TestWorkerCancelled(t *testing.T) {
	w := newTestWorker(t, Config{})
	s, err := w.Load(context.Background(), endless(t))
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	ctx, cancel := context.WithTimeout(context.Background(), 300*time.Millisecond)
	defer cancel()
	if _, err = s.Run(ctx, map[string]Tensor{"x": Float32s([]float32{1}, 1)}); !errors.Is(err, context.DeadlineExceeded) {
		t.Fatalf("the error is %v", err)
	}
	works(t, w)
}

// TestErrorsKeepTheEngine: what ONNX Runtime refuses is an error, and the next call works.
func TestErrorsKeepTheEngine(t *testing.T) {
	w := newTestWorker(t, Config{})
	l, err := NewLocal(Config{})
	if err != nil {
		t.Fatal(err)
	}
	scalar := newModel(t, []*onnx.Node{onnx.NewNode("ReduceMax", []string{"x"}, []string{"y"}, onnx.IntAttr("keepdims", 0))})
	halves := newModel(t, []*onnx.Node{onnx.NewNode("Cast", []string{"x"}, []string{"y"}, onnx.IntAttr("to", int64(onnx.Float16)))})
	lonely := constantModel(t)
	unknown := newModel(t, []*onnx.Node{onnx.NewNode("NoSuchOp", []string{"x"}, []string{"y"})})
	for _, e := range []Engine{w, l} {
		for name, m := range map[string]Model{
			"an unknown op": unknown, "bytes that are no model": {Bytes: []byte("no model"), Inputs: []string{"x"}, Outputs: []string{"y"}},
			"a file that is missing":     {Path: "no-such-model.onnx", Inputs: []string{"x"}, Outputs: []string{"y"}},
			"an output of no dimensions": scalar, "an output of halves": halves,
			"no inputs": lonely,
		} {
			if _, err := loadAndRun(t, e, m); err == nil || errors.Is(err, ErrDied) {
				t.Errorf("%T: %s: the error is %v", e, name, err)
			}
		}
		s, err := e.Load(context.Background(), doubling(t))
		if err != nil {
			t.Fatal(err)
		}
		for name, feed := range map[string]map[string]Tensor{
			"nothing fed":           {},
			"too few bytes":         {"x": {Type: onnx.Float, Dims: []int64{4}, Data: make([]byte, 12)}},
			"dimensions below zero": {"x": {Type: onnx.Float, Dims: []int64{-3}, Data: []byte{}}},
			"the wrong type":        {"x": Int64s([]int64{1}, 1)},
		} {
			if _, err := s.Run(context.Background(), feed); err == nil || errors.Is(err, ErrDied) {
				t.Errorf("%T: %s: the error is %v", e, name, err)
			}
		}
		s.Close()
		works(t, e)
	}
}

func TestNewWorkerErrors(t *testing.T) {
	if _, err := NewWorker(Config{}, "/no/such/command"); err == nil {
		t.Error("a command that does not exist starts")
	}
	testruntime.Require(t)
	if _, err := NewWorker(Config{Runtime: "/no/such/libonnxruntime.so"}, os.Args[0]); err == nil {
		t.Error("a missing runtime is no error")
	} else {
		t.Log(err)
	}
}

// TestRunAll: several calls give what they give alone, up to the first that fails, is too slow or ends the worker.
func TestRunAll(t *testing.T) {
	w := newTestWorker(t, Config{Timeout: 3 * time.Second})
	l, err := NewLocal(Config{})
	if err != nil {
		t.Fatal(err)
	}
	feeds := func(list ...float32) map[string]Tensor {
		return map[string]Tensor{"x": Float32s(list, int64(len(list)))}
	}
	session := func(e Engine, m Model) Session {
		s, err := e.Load(context.Background(), m)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { s.Close() })
		return s
	}
	squares := newModel(t, []*onnx.Node{onnx.NewNode("Mul", []string{"x", "x"}, []string{"y"})})
	for _, e := range []Engine{w, l} {
		double, square := session(e, doubling(t)), session(e, squares)
		calls := []Call{{double, feeds(1, 2, 3)}, {square, feeds(4, 5)}, {double, feeds(7)}}
		want := [][]float64{{2, 4, 6}, {16, 25}, {14}}
		check := func(calls []Call, cause error) {
			t.Helper()
			got, err := RunAll(context.Background(), calls)
			for i := range got {
				if !slices.Equal(got[i]["y"].Values(), want[i]) {
					t.Errorf("%T: call %d gives %v, want %v", e, i, got[i]["y"].Values(), want[i])
				}
			}
			if len(got) != 3 && err == nil || len(calls) > 3 && len(got) != 3 || !errors.Is(err, cause) {
				t.Errorf("%T: %d calls give %d results and %v, want 3 and %v", e, len(calls), len(got), err, cause)
			}
		}
		check(calls, nil)
		bad := append(slices.Clone(calls), Call{double, feeds()}, Call{square, feeds(1)})
		bad[3].Feeds = nil
		if got, err := RunAll(context.Background(), bad); len(got) != 3 || err == nil || errors.Is(err, ErrDied) {
			t.Errorf("%T: a call without its input gives %d results and %v", e, len(got), err)
		}
		if e == w {
			check(append(slices.Clone(calls), Call{session(e, killing(t)), feeds(1)}, calls[0]), ErrDied)
			check(append(slices.Clone(calls), Call{session(e, endless(t)), feeds(1)}, calls[0]), ErrTimeout)
		}
		check(calls, nil) // in a new worker, too
	}
}
