package main

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"
)

func floats(b []byte) []float32 {
	out := make([]float32, len(b)/4)
	for i := range out {
		out[i] = math.Float32frombits(binary.LittleEndian.Uint32(b[4*i:]))
	}
	return out
}

// named is a source of matrices.
type named map[string]matrix

func (n named) tensor(name string) (matrix, error) {
	m, ok := n[name]
	if !ok {
		return m, fmt.Errorf("the checkpoint has no tensor %s", name)
	}
	return m, nil
}

var letters = named{
	"a": {2, 3, []float32{1, 2, 3, 4, 5, 6}},
	"b": {2, 2, []float32{7, 8, 9, 10}},
	"c": {1, 3, []float32{11, 12, 13}},
}

func TestWriteData(t *testing.T) {
	for spec, want := range map[string][]float32{
		`{"bytes": 24, "tensors": [[0, ["a"], false]]}`:                    {1, 2, 3, 4, 5, 6},
		`{"bytes": 24, "tensors": [[0, ["a"], true]]}`:                     {1, 4, 2, 5, 3, 6},
		`{"bytes": 40, "tensors": [[0, ["a", "b"], false]]}`:               {1, 2, 3, 7, 8, 4, 5, 6, 9, 10},
		`{"bytes": 36, "tensors": [[0, ["a", "c"], true]]}`:                {1, 4, 11, 2, 5, 12, 3, 6, 13},
		`{"bytes": 40, "tensors": [[4, ["c"], false], [20, ["b"], true]]}`: {0, 11, 12, 13, 0, 7, 9, 8, 10, 0},
		`{"bytes": 8, "tensors": []}`:                                      {0, 0},
	} {
		var s weightsSpec
		if err := json.Unmarshal([]byte(spec), &s); err != nil {
			t.Fatal(err)
		}
		var out bytes.Buffer
		if err := writeData(&out, s, letters); err != nil || !slices.Equal(floats(out.Bytes()), want) {
			t.Errorf("%s: %v, want %v, %v", spec, floats(out.Bytes()), want, err)
		}
	}
}

func TestWriteDataRefuses(t *testing.T) {
	for spec, want := range map[string]string{
		`{"bytes": 24, "tensors": [[0, ["x"], false]]}`:                    "no tensor x",
		`{"bytes": 48, "tensors": [[0, ["a"], false], [8, ["b"], false]]}`: "tensor b",
		`{"bytes": 8, "tensors": [[0, ["a"], false]]}`:                     "overlap",
		`{"bytes": 99, "tensors": [[0, ["a", "c"], false]]}`:               "cannot be joined",
	} {
		var s weightsSpec
		if err := json.Unmarshal([]byte(spec), &s); err != nil {
			t.Fatal(err)
		}
		if err := writeData(&bytes.Buffer{}, s, letters); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want a word of %q", spec, err, want)
		}
	}
	for _, spec := range []string{`{"tensors": [[0, []]]}`, `{"tensors": [[0, [], false]]}`, `{"tensors": [["a"]]}`, `{"tensors": 1}`} {
		if err := json.Unmarshal([]byte(spec), new(weightsSpec)); err == nil {
			t.Errorf("%s was accepted", spec)
		}
	}
}

// Two heads of four channels: GGUF's pairs (0 1)(2 3) are channels (0 2)(1 3).
func TestHalfSplit(t *testing.T) {
	gguf := matrix{8, 1, []float32{0, 2, 1, 3, 10, 12, 11, 13}}
	got, err := gguf.halfSplit(2)
	if err != nil || !slices.Equal(got.data, []float32{0, 1, 2, 3, 10, 11, 12, 13}) {
		t.Errorf("%v, %v", got, err)
	}
	for _, heads := range []int{0, -1, 3, 8} {
		if _, err := gguf.halfSplit(heads); err == nil {
			t.Errorf("8 rows were split into %d heads", heads)
		}
	}
}
