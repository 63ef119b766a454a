package customop

import (
	"bytes"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	ort "github.com/yalue/onnxruntime_go"

	"github.com/rope-rewrite/rope-rewrite/internal/configfile"
	"github.com/rope-rewrite/rope-rewrite/internal/short"
)

const cudaLibraryAdvice = "build it with make cuda in the source tree, and set " + LibraryVariable +
	" to it or put it beside the executable"

const cudaRuntimeAdvice = "the Python wheel onnxruntime-gpu holds one with CUDA (set " + RuntimeVariable +
	" to its libonnxruntime.so and keep its other libraries beside it); it needs an NVIDIA driver and the CUDA libraries it was built for"

// cudaMark is written into the library that has kernels for CUDA.
var cudaMark = []byte("rope_ops cuda=1\x00")

// FindCUDALibrary is FindLibrary for librope_ops_cuda, which has the ops for the
// CPU and for the CUDA execution provider. A session registers either it or
// librope_ops, never both. The error says what to do, also where a path was given
// that names the CPU's library.
func FindCUDALibrary(options Options) (string, error) {
	path, err := search{
		library: "the op library " + fileName("rope_ops_cuda"), stem: "rope_ops_cuda",
		explicit: options.Library, variable: LibraryVariable,
		folders: places(executableFolders(), cacheFolders(), systemFolders()),
		advice:  cudaLibraryAdvice,
	}.find()
	if err != nil {
		return "", err
	}
	content, err := configfile.Read(path, configfile.Library)
	if err != nil {
		return "", err
	}
	if !bytes.Contains(content, cudaMark) {
		return "", fmt.Errorf("the op library %s has no kernels for CUDA; librope_ops_cuda has: %s", path, cudaLibraryAdvice)
	}
	return path, nil
}

// DeviceInputs is the entry of a session's options that, with the value "1", lets positions, lengths, masks
// and document ids stay on the GPU (session.AddSessionConfigEntry, before the library is registered). Nothing that
// is launched then depends on them, so that a step can be captured into a CUDA graph, and the host spends a
// microsecond or two on a layer. What is wrong with them is found on the GPU: the text's output is NaN, and the
// next run says why.
const DeviceInputs = "rope.device_inputs"

// RegisterCUDA makes a session run on CUDA, with the ops of this project there
// and on the CPU: it finds librope_ops_cuda, appends the CUDA execution provider
// with its settings (device_id and others, as ONNX Runtime names them; nil for the
// defaults) and registers the library. Call it instead of Register. With enable_cuda_graph it
// sets DeviceInputs as well. The provider is
// that of a plugin, if the program has registered one
// (ort.RegisterExecutionProviderLibrary), and otherwise the runtime's own. The error
// says what is missing: the library, a runtime with CUDA, or a driver.
func RegisterCUDA(session *ort.SessionOptions, options Options, settings map[string]string) error {
	path, err := FindCUDALibrary(options)
	if err != nil {
		return err
	}
	if err := appendCUDA(session, settings); err != nil {
		return err
	}
	if capturesGraphs(settings) {
		if err := session.AddSessionConfigEntry(DeviceInputs, "1"); err != nil {
			return fmt.Errorf("the session's entry %s: %w", DeviceInputs, err)
		}
	}
	return Register(session, Options{Library: path})
}

// capturesGraphs says whether settings turn CUDA graphs on.
func capturesGraphs(settings map[string]string) bool {
	on := settings["enable_cuda_graph"]
	return on == "1" || strings.EqualFold(on, "true")
}

// cudaProvider is the name of ONNX Runtime's own provider, and of the plugin's since onnxruntime#29544.
const cudaProvider = "CUDAExecutionProvider"

// appendCUDA appends the provider of a plugin, if there is one, or the runtime's own.
func appendCUDA(session *ort.SessionOptions, settings map[string]string) error {
	devices, err := ort.GetEpDevices()
	if err != nil {
		return fmt.Errorf("the devices of ONNX Runtime's plugins: %w", err)
	}
	devices = slices.DeleteFunc(devices, func(d ort.EpDevice) bool { return d.EpName() != cudaProvider })
	if len(devices) == 0 {
		return appendOwnCUDA(session, settings)
	}
	device, others, err := pluginDevice(len(devices), settings)
	if err != nil {
		return err
	}
	if err := session.AppendExecutionProviderV2(devices[device:device+1], others); err != nil {
		return fmt.Errorf("the CUDA execution provider of the plugin cannot be used: %w", err)
	}
	return nil
}

// pluginDevice returns which of a plugin's devices the settings ask for, and the settings that are left: a
// plugin is given a device, not its number.
func pluginDevice(count int, settings map[string]string) (device int, others map[string]string, err error) {
	others = maps.Clone(settings)
	if id, ok := settings["device_id"]; ok {
		delete(others, "device_id")
		if device, err = strconv.Atoi(id); err != nil || device < 0 || device >= count {
			return 0, nil, fmt.Errorf("device_id %q: the plugin with CUDA has %d devices, from 0 on", short.Name(id), count)
		}
	}
	return device, others, nil
}

func appendOwnCUDA(session *ort.SessionOptions, settings map[string]string) error {
	cuda, err := ort.NewCUDAProviderOptions()
	if err != nil {
		return fmt.Errorf("this ONNX Runtime has no CUDA execution provider; %s: %w", cudaRuntimeAdvice, err)
	}
	defer cuda.Destroy()
	if len(settings) > 0 {
		if err := cuda.Update(settings); err != nil {
			return fmt.Errorf("settings of the CUDA execution provider: %w", err)
		}
	}
	if err := session.AppendExecutionProviderCUDA(cuda); err != nil {
		return fmt.Errorf("the CUDA execution provider cannot be used; %s: %w", cudaRuntimeAdvice, err)
	}
	return nil
}
