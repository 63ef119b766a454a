package engine

import "testing"

// A GPU's driver reserves more address space than any limit of memory allows.
func TestGPUsHaveNoLimitOfAddressSpace(t *testing.T) {
	for provider, want := range map[string]bool{"": false, "XNNPACK": false, "OpenVINO": false, "CUDA": true, "TensorRT": true} {
		if got := onGPU(provider); got != want {
			t.Errorf("provider %q is one of a GPU: %v", provider, got)
		}
	}
}
