package opset_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/rope-rewrite/rope-rewrite/internal/engine"
	"github.com/rope-rewrite/rope-rewrite/internal/npz"
	"github.com/rope-rewrite/rope-rewrite/internal/testruntime"
	"github.com/rope-rewrite/rope-rewrite/onnx"
	"github.com/rope-rewrite/rope-rewrite/onnx/opset"
)

// Models that the Python package onnx can raise too give the same numbers raised by its
// converter (testdata/peer.py) and by this one.
func TestPeer(t *testing.T) {
	testruntime.Require(t)
	folder := filepath.Join("testdata", "peer")
	list, err := os.ReadFile(filepath.Join(folder, "peer.txt"))
	if err != nil {
		t.Fatal(err)
	}
	inputs, err := npz.Open(filepath.Join(folder, "x.npz"))
	if err != nil {
		t.Fatal(err)
	}
	defer inputs.Close()
	lines := strings.Split(strings.TrimSpace(string(list)), "\n")
	if len(lines) < 50 {
		t.Fatalf("there are %d cases", len(lines))
	}
	for _, line := range lines {
		var name string
		var from, to int64
		if _, err := fmt.Sscan(line, &name, &from, &to); err != nil {
			t.Fatal(err)
		}
		t.Run(name, func(t *testing.T) {
			values, shape, err := inputs.Float32(name)
			if err != nil {
				t.Fatal(err)
			}
			dims := make([]int64, len(shape))
			for i, d := range shape {
				dims[i] = int64(d)
			}
			x := engine.Float32s(values, dims...)
			m := opened(t, filepath.Join(folder, name+".onnx"))
			if _, err := opset.Raise(m, to); err != nil || m.Opset("") != to {
				t.Fatalf("the version is %d: %v", m.Opset(""), err)
			}
			got := outputs(t, m, x)
			for output, want := range outputs(t, opened(t, filepath.Join(folder, name+".raised.onnx")), x) {
				if err := identical(got[output], want); err != nil {
					t.Errorf("%s: %v", output, err)
				}
			}
		})
	}
}

func opened(t *testing.T, path string) *onnx.Model {
	t.Helper()
	m, err := onnx.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { m.Close() })
	return m
}

// outputs runs a model of one input, x.
func outputs(t *testing.T, m *onnx.Model, x engine.Tensor) map[string]engine.Tensor {
	t.Helper()
	s := small{feeds: map[string]engine.Tensor{"x": x}}
	for _, o := range m.Graph.Outputs {
		s.outputs = append(s.outputs, o.Name)
	}
	got, err := s.run(m)
	if err != nil {
		t.Fatal(err)
	}
	return got
}
