package customop_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	ort "github.com/yalue/onnxruntime_go"

	"github.com/rope-rewrite/rope-rewrite/customop"
	"github.com/rope-rewrite/rope-rewrite/internal/testruntime"
)

// The runtime of the tests is the CPU's: every step says what is missing.
func TestRegisterCUDASaysWhatIsMissing(t *testing.T) {
	cpu := testruntime.Require(t)
	folder := t.TempDir()
	marked := filepath.Join(folder, "librope_ops_cuda.so")
	if err := os.WriteFile(marked, []byte("\x7fELF rope_ops cuda=1\x00"), 0o644); err != nil {
		t.Fatal(err)
	}
	options, err := ort.NewSessionOptions()
	if err != nil {
		t.Fatal(err)
	}
	defer options.Destroy()
	for _, test := range []struct {
		library string
		want    []string
	}{
		{filepath.Join(folder, "absent.so"), []string{"absent.so", "make cuda"}},
		{cpu, []string{cpu, "no kernels for CUDA", "make cuda"}},
		{marked, []string{"CUDA execution provider", "onnxruntime-gpu", customop.RuntimeVariable, "NVIDIA driver"}},
	} {
		err := customop.RegisterCUDA(options, customop.Options{Library: test.library}, map[string]string{"device_id": "0"})
		if err == nil {
			t.Fatalf("%s: a runtime without CUDA was taken", test.library)
		}
		for _, want := range test.want {
			if !strings.Contains(err.Error(), want) {
				t.Errorf("%s: %v, want %q in it", test.library, err, want)
			}
		}
	}
}
