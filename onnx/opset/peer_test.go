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

// Models that the Python package onnx can raise too give the same numbers by its converter
// (testdata/peer.py) and by this one.
func TestPeer(t *testing.T) {
	testruntime.Require(t)
	folder := filepath.Join("testdata", "peer")
	list, err := os.ReadFile(filepath.Join(folder, "peer.txt"))
	if err != nil {
		t.Fatal(err)
	}
	goldens, err := npz.Open(filepath.Join(folder, "peer.npz"))
	if err != nil {
		t.Fatal(err)
	}
	defer goldens.Close()
	golden := func(t *testing.T, name string) engine.Tensor {
		t.Helper()
		values, shape, err := goldens.Float32(name)
		if err != nil {
			t.Fatal(err)
		}
		dims := make([]int64, len(shape))
		for i, d := range shape {
			dims[i] = int64(d)
		}
		return engine.Float32s(values, dims...)
	}
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
			m, err := onnx.Open(filepath.Join(folder, name+".onnx"))
			if err != nil {
				t.Fatal(err)
			}
			defer m.Close()
			if _, err := opset.Raise(m, to); err != nil || m.Opset("") != to {
				t.Fatalf("the version is %d: %v", m.Opset(""), err)
			}
			s := small{feeds: map[string]engine.Tensor{"x": golden(t, name+".x")}}
			for _, o := range m.Graph.Outputs {
				s.outputs = append(s.outputs, o.Name)
			}
			got, err := s.run(m)
			if err != nil {
				t.Fatal(err)
			}
			for _, o := range s.outputs {
				if err := identical(got[o], golden(t, name+"."+o)); err != nil {
					t.Errorf("%s: %v", o, err)
				}
			}
		})
	}
}
