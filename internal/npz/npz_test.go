package npz_test

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	npyz "github.com/sbinet/npyio/npz"

	"github.com/rope-rewrite/rope-rewrite/internal/npz"
)

func archive(t *testing.T) *npz.File {
	t.Helper()
	path := filepath.Join(t.TempDir(), "a.npz")
	err := npyz.Write(path, map[string]any{
		"floats.npy": []float32{1.5, -2, 3},
		"ints.npy":   []int64{1 << 40, -1},
	})
	if err != nil {
		t.Fatal(err)
	}
	file, err := npz.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { file.Close() })
	return file
}

func TestRead(t *testing.T) {
	file := archive(t)
	if keys := file.Keys(); !slices.Equal(keys, []string{"floats", "ints"}) {
		t.Errorf("keys %q", keys)
	}
	floats, shape, err := file.Float32("floats")
	if err != nil || !slices.Equal(floats, []float32{1.5, -2, 3}) || !slices.Equal(shape, []int{3}) {
		t.Errorf("floats: %v %v %v", floats, shape, err)
	}
	ints, _, err := file.Int64("ints")
	if err != nil || !slices.Equal(ints, []int64{1 << 40, -1}) {
		t.Errorf("ints: %v %v", ints, err)
	}
}

func TestErrorsNameTheArray(t *testing.T) {
	file := archive(t)
	_, _, err := file.Float32("absent")
	if err == nil || !strings.Contains(err.Error(), `"absent"`) || !strings.Contains(err.Error(), `"floats", "ints"`) {
		t.Errorf("absent key: %v", err)
	}
	if _, _, err := file.Float32("ints"); err == nil || !strings.Contains(err.Error(), "<i8") {
		t.Errorf("wrong type: %v", err)
	}
	if _, err := npz.Open(filepath.Join(t.TempDir(), "none.npz")); err == nil {
		t.Error("a missing file opened")
	}
}

// The goldens that NumPy wrote: 16-byte alignment, compression, three axes.
func TestGoldens(t *testing.T) {
	file, err := npz.Open("../../testdata/goldens/llama.npz")
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	plain, shape, err := file.Float32("plain")
	if err != nil || !slices.Equal(shape, []int{2, 48, 128}) || len(plain) != 2*48*128 {
		t.Fatalf("plain: shape %v, %d values, %v", shape, len(plain), err)
	}
	if last := plain[len(plain)-1]; last != 0.19455417 { // as NumPy prints it
		t.Errorf("plain[1, 47, 127] = %v", last)
	}
	pad, shape, err := file.Float32("string_pad")
	if err != nil || !slices.Equal(shape, []int{38, 128}) || pad[0] != -0.14476867 {
		t.Errorf("string_pad: shape %v, %v", shape, err)
	}
}

func Example() {
	file, err := npz.Open("../../testdata/goldens/llama.npz")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer file.Close()
	ids, shape, err := file.Int64("ids")
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(shape, ids[:4])
	// Output: [2 48] [71 76 17 102]
}
