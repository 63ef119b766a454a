package customop_test

import (
	"fmt"
	"os"
	"testing"

	ort "github.com/yalue/onnxruntime_go"

	"github.com/rope-rewrite/rope-rewrite/customop"
)

// providerVariable makes the tests of the ops run them on a GPU: "CUDA" reads numbers on the host, "CUDA device-inputs"
// leaves them there. The runtime must be one with CUDA, and the library librope_ops_cuda.
const providerVariable = "ROPE_TEST_PROVIDER"

// registerForTest registers the library for the execution provider that the environment names.
func registerForTest(o *ort.SessionOptions, library string) error {
	switch provider := os.Getenv(providerVariable); provider {
	case "":
		return customop.Register(o, customop.Options{Library: library})
	case "CUDA device-inputs":
		if err := o.AddSessionConfigEntry(customop.DeviceInputs, "1"); err != nil {
			return err
		}
		fallthrough
	case "CUDA":
		// Else what CUDA has no kernel for would run on the CPU, and pass.
		if err := o.AddSessionConfigEntry("session.disable_cpu_ep_fallback", "1"); err != nil {
			return err
		}
		return customop.RegisterCUDA(o, customop.Options{Library: library}, map[string]string{"use_tf32": "0"})
	default:
		return fmt.Errorf("%s is %q; it may be CUDA or CUDA device-inputs", providerVariable, provider)
	}
}

// hostOnly skips a test of what the CPU alone promises, and says why.
func hostOnly(t *testing.T, why string) {
	t.Helper()
	if provider := os.Getenv(providerVariable); provider != "" {
		t.Skipf("not on %s: %s", provider, why)
	}
}

const copied = "ONNX Runtime copies a host's tensors to the GPU, each to memory of its own"

// testMemory is where the execution provider of the tests keeps its tensors.
func testMemory() customop.Memory {
	if os.Getenv(providerVariable) != "" {
		return customop.Memory{Name: "Cuda"}
	}
	return customop.Memory{Name: "Cpu"}
}
