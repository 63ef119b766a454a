package main

import (
	"bytes"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/rope-rewrite/rope-rewrite/internal/npz"
)

func small(t testing.TB) []byte {
	t.Helper()
	b, err := os.ReadFile("testdata/small.gguf")
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// The expected numbers are those of the Python package gguf (testdata/make.py).
func TestGGUFEqualsPython(t *testing.T) {
	b := small(t)
	f, err := openGGUF(bytes.NewReader(b), int64(len(b)))
	if err != nil {
		t.Fatal(err)
	}
	if n := f.numbers["llama.attention.head_count"]; n != 9 {
		t.Errorf("head_count %d", n)
	}
	want, err := npz.Open("testdata/small.npz")
	if err != nil {
		t.Fatal(err)
	}
	defer want.Close()
	if len(f.tensors) != len(want.Keys()) {
		t.Fatalf("%d tensors, want %v", len(f.tensors), want.Keys())
	}
	for _, tensor := range f.tensors {
		got, err := f.float32s(tensor)
		if err != nil {
			t.Fatal(err)
		}
		values, shape, err := want.Float32(tensor.name)
		if err != nil {
			t.Fatal(err)
		}
		if !slices.Equal(got, values) { // bit for bit: none is NaN or −0
			t.Errorf("%s: %v, want %v", tensor.name, got, values)
		}
		if tensor.columns != shape[len(shape)-1] || tensor.rows*tensor.columns != len(values) {
			t.Errorf("%s is %d × %d, want %v", tensor.name, tensor.rows, tensor.columns, shape)
		}
	}
}

func TestGGUFRefuses(t *testing.T) {
	whole := small(t)
	broken := func(change func(b []byte) []byte) []byte { return change(slices.Clone(whole)) }
	for name, c := range map[string]struct {
		file []byte
		want string
	}{
		"empty":             {nil, "not a GGUF"},
		"other file":        {[]byte("PK\x03\x04 and so on"), "not a GGUF"},
		"version":           {broken(func(b []byte) []byte { b[4] = 2; return b }), "version 2"},
		"count":             {broken(func(b []byte) []byte { b[15] = 0x7f; return b }), "a count of"},
		"cut in the header": {whole[:100], "EOF"},
		"cut in a tensor":   {whole[:len(whole)-64], "beyond the end"},
	} {
		if _, err := openGGUF(bytes.NewReader(c.file), int64(len(c.file))); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want a word of %q", name, err, c.want)
		}
	}
	f := &ggufFile{data: bytes.NewReader(nil)}
	for name, tensor := range map[string]ggufTensor{
		"element type 12": {name: "x", rows: 1, columns: 256, kind: 12},
		"blocks of 32":    {name: "x", rows: 1, columns: 33, kind: kindQ8_0},
	} {
		if _, err := f.float32s(tensor); err == nil || !strings.Contains(err.Error(), name) {
			t.Errorf("%v, want a word of %q", err, name)
		}
	}
}

func FuzzGGUF(f *testing.F) {
	f.Add(small(f))
	f.Add([]byte("GGUF\x03\x00\x00\x00"))
	f.Fuzz(func(t *testing.T, b []byte) {
		file, err := openGGUF(bytes.NewReader(b), int64(len(b)))
		if err != nil {
			return
		}
		for _, tensor := range file.tensors {
			if size, err := tensor.size(); err == nil && size > int64(len(b)) {
				t.Fatalf("tensor %s of %d bytes in a file of %d was accepted", tensor.name, size, len(b))
			}
			if _, err := file.float32s(tensor); err != nil && !strings.Contains(err.Error(), "GGUF tensor") {
				t.Fatal(err)
			}
		}
	})
}
