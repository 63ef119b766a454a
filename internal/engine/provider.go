package engine

import (
	"fmt"

	ort "github.com/yalue/onnxruntime_go"
)

// provide lets a session run on an execution provider, and on the CPU what that has no kernel for. The name is
// ONNX Runtime's short one: CUDA, XNNPACK, OpenVINO.
func provide(options *ort.SessionOptions, provider string) error {
	var err error
	if provider == "CUDA" { // the one that the general call does not know
		err = provideCUDA(options)
	} else {
		err = options.AppendExecutionProvider(provider, nil)
	}
	if err != nil {
		return fmt.Errorf("ONNX Runtime %s has no execution provider %s that can be used here: %w", ort.GetVersion(), provider, err)
	}
	return nil
}

func provideCUDA(options *ort.SessionOptions) error {
	cuda, err := ort.NewCUDAProviderOptions()
	if err != nil {
		return err
	}
	defer cuda.Destroy()
	// Else products of float32 have the 10 bits of TF32, and say little about a graph.
	if err := cuda.Update(map[string]string{"use_tf32": "0"}); err != nil {
		return err
	}
	return options.AppendExecutionProviderCUDA(cuda)
}

// onGPU reports whether an execution provider is one of a GPU. Its driver reserves address space as large as the
// memory of the device and the host, so that a limit of it says nothing about memory: CUDA refuses to run.
func onGPU(provider string) bool {
	switch provider {
	case "CUDA", "TensorRT", "NvTensorRtRtx", "ROCM", "MIGraphX", "DML", "WebGPU":
		return true
	}
	return false
}

// canProvide is an error where ONNX Runtime lacks an execution provider.
func canProvide(provider string) error {
	options, err := ort.NewSessionOptions()
	if err != nil {
		return err
	}
	defer options.Destroy()
	return provide(options, provider)
}
