"""Sessions of ONNX Runtime with the op library, as the scripts beside this one want them."""

import os
import sys

import onnxruntime as ort

CPU, CUDA = "CPUExecutionProvider", "CUDAExecutionProvider"


def need(provider):
    """Ends the program where ONNX Runtime lacks an execution provider."""
    if provider not in ort.get_available_providers():
        sys.exit(f"{os.path.basename(sys.argv[0])}: this onnxruntime {ort.__version__} has no {provider} (it has "
                 f"{', '.join(ort.get_available_providers())}): install onnxruntime-gpu in place of onnxruntime")


def session(model, library=None, provider=CUDA, device_inputs=False, graph=False, fallback=False):
    """fallback lets the CPU run what the provider has no kernel for. Without it, a provider that does not load is no
    warning, but an error."""
    options = ort.SessionOptions()
    options.log_severity_level = 3
    if provider != CPU and not fallback:
        options.add_session_config_entry("session.disable_cpu_ep_fallback", "1")
    if device_inputs:
        options.add_session_config_entry("rope.device_inputs", "1")
    if library:
        options.register_custom_ops_library(library)
    first = (provider, {"enable_cuda_graph": "1"} if graph else {})
    return ort.InferenceSession(model, options, providers=[first, CPU] if fallback else [first])


def median(numbers):
    return sorted(numbers)[len(numbers) // 2]
