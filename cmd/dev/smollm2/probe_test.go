package main

import (
	"math"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/rope-rewrite/rope-rewrite/internal/npz"
	"github.com/rope-rewrite/rope-rewrite/internal/testruntime"
)

// What a probe finds on the small model: PyTorch's logits and greedy tokens.
func TestProbe(t *testing.T) {
	testruntime.Require(t)
	file, err := npz.Open("../../../testdata/goldens/llama.npz")
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	ids, _, err := file.Int64("ids")
	if err != nil {
		t.Fatal(err)
	}
	want, _, err := file.Float32("plain")
	if err != nil {
		t.Fatal(err)
	}
	first, second := ids[:48], ids[48:]
	logits := filepath.Join(t.TempDir(), "logits")
	probed := task{Model: "../../../testdata/models/llama__optimum/model.onnx", Threads: 1, Greedy: 3, Texts: [][]int64{first, second}, Logits: logits}
	found, err := probed.run()
	if err != nil {
		t.Fatal(err)
	}
	got, err := readFloats(logits)
	if err != nil || len(got) != 48*128 {
		t.Fatalf("%d logits, %v", len(got), err)
	}
	for i := range got {
		if !(math.Abs(float64(got[i]-want[i])) <= 1e-4) {
			t.Fatalf("logit %d is %g, want %g", i, got[i], want[i])
		}
	}
	if len(found.Seconds) != 2 || len(found.Tokens) != 2 || len(found.Tokens[0]) != 3 {
		t.Fatalf("%+v", found)
	}
	for i, rows := range [][]float32{want[:48*128], want[48*128:]} {
		last := rows[47*128:]
		if next := found.Tokens[i][0]; last[next] != slices.Max(last) {
			t.Errorf("text %d continues with %d", i, next)
		}
	}
	if found.Peak < 1<<20 {
		t.Errorf("peak memory of %d bytes", found.Peak)
	}

	probed.Places = []int64{2, 47}
	if _, err := probed.run(); err != nil {
		t.Fatal(err)
	}
	rows, err := readFloats(logits)
	if err != nil || !slices.Equal(rows, slices.Concat(got[2*128:3*128], got[47*128:])) {
		t.Errorf("rows at chosen places: %d numbers, %v", len(rows), err)
	}
}

func TestCompareFiles(t *testing.T) {
	folder := t.TempDir()
	write := func(name string, values ...float32) string {
		path := filepath.Join(folder, name)
		err := writeFloats(path, func(yield func([]float32) bool) { yield(values) })
		if err != nil {
			t.Fatal(err)
		}
		return path
	}
	long := make([]float32, 20000) // longer than one piece
	long[19999] = 8
	other := slices.Clone(long)
	other[19998] = -0.5
	d, err := compareFiles(write("a", long...), write("b", other...))
	if err != nil || d.Max != 0.5 || d.Range != 8 || d.Fraction != 0.0625 || d.ok() {
		t.Errorf("%+v, %v", d, err)
	}
	if d, err := compareFiles(write("a", long...), write("b", long...)); err != nil || d.Max != 0 || !d.ok() {
		t.Errorf("equal files: %+v, %v", d, err)
	}
	if _, err := compareFiles(write("a", 1, 2), write("b", 1)); err == nil || !strings.Contains(err.Error(), "shapes") {
		t.Errorf("other length: %v", err)
	}
	if _, err := compareFiles(write("a", 1, 2), write("b", 1, float32(math.NaN()))); err == nil || !strings.Contains(err.Error(), "finite") {
		t.Errorf("not a number: %v", err)
	}
}
