package onnx_test

import (
	"errors"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/rope-rewrite/rope-rewrite/onnx"
)

// Every export at hand makes what it reads; only weights may be missing.
func TestExportsAreWhole(t *testing.T) {
	for _, path := range modelFiles(t) {
		m := open(t, path)
		if err := m.CheckValues(); err != nil {
			t.Errorf("%s: %v", path, err)
		}
		for err := range m.UnreadableData() {
			if !errors.Is(err, fs.ErrNotExist) {
				t.Errorf("%s: %v", path, err)
			}
		}
	}
}

// A Transpose whose axes are counted from the end, as PyTorch writes some, is an error.
func TestTransposedAxes(t *testing.T) {
	for want, perm := range map[string][]int64{
		"":                         {0, 2, 1},
		"by -1, which counts from": {0, -1, 1},
		"permutes 3 axes by 0":     {0, 0, 1},
		"permutes 2 axes by 2":     {1, 2},
	} {
		m := onnx.New()
		m.Graph.Inputs = []*onnx.ValueInfo{onnx.NewValueInfo("x", onnx.Float)}
		m.Graph.Nodes = []*onnx.Node{onnx.NewNode("Transpose", []string{"x"}, []string{"y"}, onnx.IntsAttr("perm", perm...))}
		err := m.CheckValues()
		if want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("%v: error %v", perm, err)
		}
	}
}

// What reading a tensor's contents says, looking for them says too, and of what
// can be read it says nothing.
func TestUnreadableData(t *testing.T) {
	dir := t.TempDir()
	write(t, filepath.Join(dir, "model", "w.bin"), []byte("0123456789abcdef"))
	write(t, filepath.Join(dir, "secret"), []byte("0123456789abcdef"))
	link(t, "../secret", filepath.Join(dir, "model", "leads-out"))
	link(t, "w.bin", filepath.Join(dir, "model", "stays-in"))
	for _, pairs := range [][]string{
		{"location", "w.bin"},
		{"location", "stays-in", "offset", "8", "length", "8"},
		{"location", "leads-out"},
		{"location", "none"},
		{"location", "../secret"},
		{"location", filepath.Join(dir, "secret")},
		{"location", "."},
		{"location", "w.bin", "offset", "9"},
		{"location", "w.bin", "offset", "9223372036854775807"},
		{"location", "w.bin", "length", "9223372036854775807"},
	} {
		m := open(t, write(t, filepath.Join(dir, "model", "m.onnx"), outside(pairs...)))
		_, want := m.Graph.Initializers[0].Bytes()
		if got := slices.Collect(m.UnreadableData()); len(got) > 0 {
			t.Errorf("%v: %v, of a weight that nothing reads", pairs, got)
		}
		m.Graph.Nodes[0].Inputs[0] = "w"
		got := slices.Collect(m.UnreadableData())
		if want == nil && len(got) > 0 || want != nil && (len(got) != 1 || got[0].Error() != want.Error()) {
			t.Errorf("%v: %v; %v was expected", pairs, got, want)
		}
	}
	m, err := onnx.Parse(outside("location", "w.bin"))
	if err != nil {
		t.Fatal(err)
	}
	m.Graph.Nodes[0].Inputs[0] = "w"
	for err := range m.UnreadableData() {
		if !errors.Is(err, fs.ErrNotExist) || !strings.Contains(err.Error(), "its folder is unknown") {
			t.Errorf("a model from memory: %v", err)
		}
	}
}
