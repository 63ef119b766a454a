package cli

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/rope-rewrite/rope-rewrite/onnx"
)

// A file that loses its bytes while it is mapped gives an error, not a crash.
func TestModelCutShortWhileItIsRead(t *testing.T) {
	m := onnx.New()
	m.Graph.AddInitializer(onnx.NewTensor("weight", onnx.Uint8, []int64{1 << 20}, make([]byte, 1<<20)))
	path := filepath.Join(t.TempDir(), "model.onnx")
	if err := m.Save(path, onnx.SaveOptions{}); err != nil {
		t.Fatal(err)
	}
	m, err := onnx.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close()
	err = guard(func() error {
		if err := os.Truncate(path, 0); err != nil {
			return err
		}
		data, err := m.Graph.Initializers[0].Bytes()
		sum := 0
		for _, b := range data {
			sum += int(b)
		}
		return errors.Join(err, os.WriteFile(filepath.Join(t.TempDir(), "sum"), []byte{byte(sum)}, 0o600))
	})
	if !errors.Is(err, errCutShort) {
		t.Fatalf("reading a file that was cut short gives %v, %v was expected", err, errCutShort)
	}
}

func TestGuardLeavesOtherPanicsAlone(t *testing.T) {
	defer func() {
		if recover() == nil {
			t.Error("an index out of range was swallowed")
		}
	}()
	var list []int
	_ = guard(func() error { _ = list[len(os.Args)]; return nil })
}
