"""Runs the op under ONNX Runtime's CUDA execution provider.

    make cuda
    python3 native/cuda/bench/onnxruntime_gpu.py build/librope_ops_cuda.so

Needs the Python packages onnx, numpy and onnxruntime-gpu (with the CUDA libraries
that it wants). For float32, float16 and bfloat16 it compares a prefill and decoding
steps with the CPU's op of the same library, then times decoding with a cache of
fixed capacity whose tensors stay on the GPU, beside the same with host tensors,
which ONNX Runtime copies there and back.

    python3 native/cuda/bench/onnxruntime_gpu.py --provider CPUExecutionProvider build/librope_ops_cuda.so

does all of it on the CPU: it checks this script, and no kernel of CUDA.

    python3 native/cuda/bench/onnxruntime_gpu.py --misplaced build/native/cuda/librope_ops_misplaced.so build/librope_ops_cuda.so

needs no onnxruntime-gpu, but torch: that library gives ONNX Runtime the CUDA ops as
the CPU's, and all tensors lie in pinned memory, which a GPU reads.
"""

import argparse
import sys
import time

import numpy as np
import onnx
import onnxruntime as ort
from onnx import TensorProto, helper

HEADS, KV_HEADS, SIZE = 32, 8, 128
TYPES = {"float32": TensorProto.FLOAT, "float16": TensorProto.FLOAT16, "bfloat16": TensorProto.BFLOAT16}


def model(element, bands=(0, 100), offsets=(0.0, -60.0), bare=False):
    """One node with a cache of fixed capacity; float32 outside, so that numpy can feed it. Bare: without casts."""
    frequencies = (10000.0 ** (-np.arange(0, SIZE, 2) / SIZE)).astype(np.float32)
    inputs = ["query", "key", "value", "past_key", "past_value"]
    outputs = ["output", "present_key", "present_value"]
    attention = helper.make_node(
        "RotaryAttention",
        [n + "_t" if n in inputs[:3] and not bare else n for n in inputs] + ["", "", "", "cache_length"],
        ["output" if bare else "output_t"] + outputs[1:],
        name="attention", domain="rope.rewrite", spec_version=3, num_heads=HEADS, kv_num_heads=KV_HEADS,
        frequencies=frequencies, band_starts=list(bands), band_query_offsets=list(offsets),
    )
    casts = [helper.make_node("Cast", [n], [n + "_t"], to=element) for n in inputs[:3]]
    casts.append(helper.make_node("Cast", ["output_t"], ["output"], to=TensorProto.FLOAT))
    info = helper.make_tensor_value_info
    graph = helper.make_graph(
        [attention] if bare else casts[:3] + [attention, casts[3]], "g",
        [info(n, TensorProto.FLOAT, ["batch", "length", None]) for n in inputs[:3]]
        + [info(n, element, ["batch", KV_HEADS, "capacity", SIZE]) for n in inputs[3:]]
        + [info("cache_length", TensorProto.INT32, ["batch"])],
        [info("output", TensorProto.FLOAT, ["batch", "length", HEADS * SIZE])]
        + [info(n, element, ["batch", KV_HEADS, "capacity", SIZE]) for n in outputs[1:]],
    )
    made = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18), helper.make_opsetid("rope.rewrite", 1)], ir_version=9)
    return made.SerializeToString()


def options_of(library):
    options = ort.SessionOptions()
    options.register_custom_ops_library(library)
    return options


def session(library, element, provider):
    options = options_of(library)
    # Without this, a provider that does not load is left out with a warning.
    options.add_session_config_entry("session.disable_cpu_ep_fallback", "0" if provider == "CPUExecutionProvider" else "1")
    return ort.InferenceSession(model(element), options, providers=[provider])


class Decoder:
    """A session whose cache stays on its device; present is past's own memory."""

    def __init__(self, library, name, provider, capacity):
        self.element = TYPES[name]
        self.session = session(library, self.element, provider)
        self.device = "cuda" if provider == "CUDAExecutionProvider" else "cpu"
        zeros = np.zeros((1, KV_HEADS, capacity, SIZE), np.float32 if name == "float32" else np.uint16)
        self.caches = {n: self.cache(zeros.copy(), name) for n in ("key", "value")}
        self.length = 0

    def cache(self, zeros, name):
        if name == "float32":
            return ort.OrtValue.ortvalue_from_numpy(zeros, self.device, 0)
        return ort.OrtValue.ortvalue_from_numpy_with_onnx_type(zeros, self.element) if self.device == "cpu" else (
            ort.OrtValue.ortvalue_from_shape_and_type(zeros.shape, self.element, self.device, 0))

    def step(self, query, key, value):
        binding = self.session.io_binding()
        binding.bind_output("output", "cpu")
        for name, tensor in (("query", query), ("key", key), ("value", value)):
            binding.bind_cpu_input(name, tensor)
        binding.bind_cpu_input("cache_length", np.array([self.length], np.int32))
        for name, cache in self.caches.items():
            binding.bind_ortvalue_input("past_" + name, cache)
            binding.bind_ortvalue_output("present_" + name, cache)
        self.session.run_with_iobinding(binding)
        self.length += query.shape[1]
        return binding.get_outputs()[0].numpy()


def tokens(random, length):
    return [random.standard_normal((1, length, h * SIZE), dtype=np.float32) for h in (HEADS, KV_HEADS, KV_HEADS)]


def compare(library, name, provider):
    """The largest difference from the CPU's op over a prefill and 40 single tokens."""
    random = np.random.default_rng(1)
    here, there = (Decoder(library, name, p, 256) for p in ("CPUExecutionProvider", provider))
    worst = 0.0
    for length in [150] + [1] * 40:
        step = tokens(random, length)
        worst = max(worst, float(np.abs(here.step(*step) - there.step(*step)).max()))
    return worst


def misplaced(library, plain_library):
    """The largest difference of the CUDA op, which ONNX Runtime takes for the CPU's, from the CPU's over some calls."""
    import torch

    sessions = [ort.InferenceSession(model(TYPES["float32"], bare=True), options_of(path), providers=["CPUExecutionProvider"])
                for path in (plain_library, library)]
    capacity = 300
    pinned = lambda *shape: torch.zeros(*shape, pin_memory=torch.cuda.is_available()).numpy()
    caches = [{n: pinned(1, KV_HEADS, capacity, SIZE) for n in ("key", "value")} for _ in sessions]
    random = np.random.default_rng(1)
    past, worst = 0, 0.0
    for length in [150] + [1] * 100:
        drawn, results = tokens(random, length), []
        for made, cache in zip(sessions, caches):
            tensors = [pinned(*numbers.shape) for numbers in drawn]
            output = pinned(*drawn[0].shape)
            binding = made.io_binding()
            for name, tensor, numbers in zip(("query", "key", "value"), tensors, drawn):
                tensor[:] = numbers
                binding.bind_input(name, "cpu", 0, np.float32, tensor.shape, tensor.ctypes.data)
            binding.bind_cpu_input("cache_length", np.array([past], np.int32))
            for name, tensor in cache.items():
                binding.bind_input("past_" + name, "cpu", 0, np.float32, tensor.shape, tensor.ctypes.data)
                binding.bind_output("present_" + name, "cpu", 0, np.float32, tensor.shape, tensor.ctypes.data)
            binding.bind_output("output", "cpu", 0, np.float32, output.shape, output.ctypes.data)
            made.run_with_iobinding(binding)
            if torch.cuda.is_available():
                torch.cuda.synchronize()
            results.append(output)
        past += length
        worst = max(worst, float(np.abs(results[0] - results[1]).max()))
    worst_of_caches = max(float(np.abs(caches[0][n] - caches[1][n]).max()) for n in caches[0])
    print(f"float32, the CUDA op under the CPU's provider: off by {worst:.1e} from the CPU's op, its cache by {worst_of_caches:.1e} (bound 2e-05)")
    return worst <= 2e-5 and worst_of_caches <= 2e-5 and np.abs(output).max() > 0


def time_decoding(library, name, provider, past):
    """Milliseconds of a step with a cache that stays, and with one that is copied."""
    random = np.random.default_rng(2)
    decoder = Decoder(library, name, provider, past + 64)
    decoder.length = past
    times = []
    for _ in range(20):
        step = tokens(random, 1)
        start = time.perf_counter()
        decoder.step(*step)
        times.append((time.perf_counter() - start) * 1e3)
    kept = sorted(times)[len(times) // 2]
    query, key, value = tokens(random, 1)
    host = {"query": query, "key": key, "value": value, "cache_length": np.array([past], np.int32)}
    if name == "float32":
        zeros = np.zeros((1, KV_HEADS, past + 64, SIZE), np.float32)
        host |= {"past_key": zeros, "past_value": zeros}
        start = time.perf_counter()
        decoder.session.run(None, host)
        return kept, (time.perf_counter() - start) * 1e3
    return kept, None


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("library")
    parser.add_argument("--provider", default="CUDAExecutionProvider")
    parser.add_argument("--misplaced", help="the library of CUDA ops for the CPU's provider; nothing else is run")
    options = parser.parse_args()
    if options.misplaced:
        sys.exit(0 if misplaced(options.misplaced, options.library) else "onnxruntime_gpu.py: results differ")
    if options.provider not in ort.get_available_providers():
        sys.exit(f"onnxruntime_gpu.py: this onnxruntime {ort.__version__} has no {options.provider} (it has "
                 f"{', '.join(ort.get_available_providers())}): install onnxruntime-gpu in place of onnxruntime")
    past = 65536 if options.provider == "CUDAExecutionProvider" else 2048
    failed = False
    for name, bound in (("float32", 2e-5), ("float16", 4e-3), ("bfloat16", 4e-2)):
        worst = compare(options.library, name, options.provider)
        failed |= not worst <= bound
        kept, copied = time_decoding(options.library, name, options.provider, past)
        sentence = f"{name}: off by {worst:.1e} from the CPU's op (bound {bound:.0e}); a token at {past} keys {kept:.3f} ms"
        if copied is not None:
            sentence += f", {copied:.1f} ms with a cache on the host"
        print(sentence, flush=True)
    if failed:
        sys.exit("onnxruntime_gpu.py: results differ")


if __name__ == "__main__":
    main()
