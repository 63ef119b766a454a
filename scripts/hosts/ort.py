"""The cases in Python's onnxruntime.

    ort.py CASES [LIBRARY [PROVIDER]]

With the library every op must be the library's kernel for the execution provider (the CPU's if none is named),
without it none: the profile says what ran. Caches of fixed capacity are appended to in place: past and present
are one buffer, on the provider's device.
"""
import json
import os
import sys
import tempfile

import onnxruntime as ort

from cases import PAST, PRESENT, Host, read_all

OP = "RotaryAttention"
CPU, CUDA = "CPUExecutionProvider", "CUDAExecutionProvider"


def main(cases, library=None, provider=CPU):
    host = Host(f"onnxruntime {ort.__version__} " + ("with library" if library else "without library") + (" on CUDA" if provider == CUDA else ""))
    gives = None if provider == CPU else lambda case: original(case, provider)
    for case in read_all(cases):
        host.check(case, lambda case: (run(case.patched, case, library, provider), None), lambda case: session(case.original), gives)
    host.finish()


def session(path, library=None, profile=None, provider=CPU):
    options = ort.SessionOptions()
    options.log_severity_level = 4
    options.intra_op_num_threads = 1
    if library:
        options.register_custom_ops_library(library)
    if profile:
        options.enable_profiling, options.profile_file_prefix = True, profile
    settings = {"use_tf32": "0"} if provider == CUDA else {}  # with it, products of float32 have 10 bits
    return ort.InferenceSession(path, options, providers=[(provider, settings), CPU] if provider != CPU else [CPU])


def run(path, case, library=None, provider=CPU):
    """The outputs of the case's calls, which path has to be a model for."""
    with tempfile.TemporaryDirectory() as folder:
        loaded = session(path, library, os.path.join(folder, "profile"), provider)
        names = [o.name for o in loaded.get_outputs()]
        outputs = [in_place(loaded, names, call["inputs"], provider) if "cache_length" in call["inputs"] else plainly(loaded, names, call["inputs"])
                   for call in case.calls]
        kernels = count(loaded.end_profiling(), provider)
    wanted = case.ops * len(case.calls) if library else 0
    if kernels != wanted:
        raise RuntimeError(f"the op's kernel ran {kernels} times on {provider} instead of {wanted}")
    return outputs


def original(case, provider):
    loaded = session(case.original, provider=provider)
    names = [o.name for o in loaded.get_outputs()]
    return [plainly(loaded, names, call["inputs"]) for call in case.calls]


def plainly(loaded, names, inputs):
    return dict(zip(names, loaded.run(None, inputs)))


def in_place(loaded, names, inputs, provider):
    binding, held = loaded.io_binding(), {}
    memory = {name: value.copy() for name, value in inputs.items()}  # which an OrtValue does not keep
    for name, value in memory.items():
        held[name] = ort.OrtValue.ortvalue_from_numpy(value, "cuda" if provider == CUDA and name.startswith(PAST) else "cpu")
        binding.bind_ortvalue_input(name, held[name])
    for name in names:
        past = held.get(name.replace(PRESENT + ".", PAST))
        if past is None:
            binding.bind_output(name)
        else:
            binding.bind_ortvalue_output(name, past)
    loaded.run_with_iobinding(binding)
    return dict(zip(names, [value.numpy().copy() for value in binding.get_outputs()]))


def count(profile, provider):
    with open(profile) as f:
        events = [event for event in json.load(f) if event["name"].endswith("_kernel_time")]
    return sum(event["args"]["op_name"].startswith(OP) and event["args"]["provider"] == provider for event in events)


if __name__ == "__main__":
    main(*sys.argv[1:])
