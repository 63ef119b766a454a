package onnx_test

import (
	"bytes"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"github.com/rope-rewrite/rope-rewrite/onnx"
)

// Contents that are written a piece at a time are those of Bytes, which can be read
// again afterwards: pages of the mapped file that were given back come from it anew.
func TestWriteContents(t *testing.T) {
	m, err := onnx.Open("../testdata/models/llama__optimum/model.onnx")
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close()
	for range 2 {
		for _, tensor := range m.Graph.Initializers {
			var got bytes.Buffer
			if err := m.WriteContents(tensor, &got); err != nil {
				t.Fatal(err)
			}
			if want, err := tensor.Bytes(); err != nil || !bytes.Equal(got.Bytes(), want) {
				t.Errorf("%s: %d bytes, want %d, %v", tensor.Name, got.Len(), len(want), err)
			}
		}
	}
}

func TestWriteContentsOfExternalData(t *testing.T) {
	dir := t.TempDir()
	write(t, filepath.Join(dir, "w.bin"), []byte("0123456789abcdef"))
	open := func(name string, pairs ...string) *onnx.Model {
		t.Helper()
		m, err := onnx.Open(write(t, filepath.Join(dir, name), outside(pairs...)))
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { m.Close() })
		return m
	}
	contents := func(m *onnx.Model) (string, error) {
		var got bytes.Buffer
		err := m.WriteContents(m.Graph.Initializers[0], &got)
		return got.String(), err
	}
	first := open("a.onnx", "location", "w.bin", "offset", "4")
	if got, err := contents(first); got != "456789ab" || err != nil {
		t.Errorf("%q, %v", got, err)
	}
	if _, err := contents(open("short.onnx", "location", "w.bin", "offset", "12")); err == nil {
		t.Error("a file that is too short gave contents")
	}
	if _, err := contents(open("missing.onnx", "location", "none.bin")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a missing file: %v", err)
	}
	if _, err := contents(open("out.onnx", "location", "../w.bin")); !errors.Is(err, onnx.ErrRefused) {
		t.Errorf("a file outside the folder: %v", err)
	}
	if err := os.Link(filepath.Join(dir, "w.bin"), filepath.Join(dir, "linked.bin")); err != nil {
		t.Skip("this system does not let the test make hard links: ", err)
	}
	write(t, filepath.Join(dir, "copy.bin"), []byte("0123456789abcdef"))
	for name, c := range map[string]struct {
		pairs []string
		want  bool
	}{
		"the same":          {[]string{"location", "w.bin", "offset", "4"}, true},
		"a hard link":       {[]string{"location", "linked.bin", "offset", "4"}, true},
		"a copy":            {[]string{"location", "copy.bin", "offset", "4"}, false},
		"another offset":    {[]string{"location", "w.bin", "offset", "3"}, false},
		"what is too short": {[]string{"location", "w.bin", "offset", "12"}, false},
	} {
		if got := first.Graph.Initializers[0].SharesContents(open(name+".onnx", c.pairs...).Graph.Initializers[0]); got != c.want {
			t.Errorf("%s: %t, want %t", name, got, c.want)
		}
	}
}
