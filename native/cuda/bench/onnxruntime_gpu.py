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


def model(element, bands=(0, 100), offsets=(0.0, -60.0)):
    """One node with a cache of fixed capacity; float32 outside, so that numpy can feed it."""
    frequencies = (10000.0 ** (-np.arange(0, SIZE, 2) / SIZE)).astype(np.float32)
    inputs = ["query", "key", "value", "past_key", "past_value"]
    outputs = ["output", "present_key", "present_value"]
    attention = helper.make_node(
        "RotaryAttention",
        [n + "_t" if n in ("query", "key", "value") else n for n in inputs] + ["", "", "", "cache_length"],
        ["output_t"] + outputs[1:],
        name="attention", domain="rope.rewrite", spec_version=3, num_heads=HEADS, kv_num_heads=KV_HEADS,
        frequencies=frequencies, band_starts=list(bands), band_query_offsets=list(offsets),
    )
    casts = [helper.make_node("Cast", [n], [n + "_t"], to=element) for n in inputs[:3]]
    casts.append(helper.make_node("Cast", ["output_t"], ["output"], to=TensorProto.FLOAT))
    info = helper.make_tensor_value_info
    graph = helper.make_graph(
        casts[:3] + [attention, casts[3]], "g",
        [info(n, TensorProto.FLOAT, ["batch", "length", None]) for n in inputs[:3]]
        + [info(n, element, ["batch", KV_HEADS, "capacity", SIZE]) for n in inputs[3:]]
        + [info("cache_length", TensorProto.INT32, ["batch"])],
        [info("output", TensorProto.FLOAT, ["batch", "length", HEADS * SIZE])]
        + [info(n, element, ["batch", KV_HEADS, "capacity", SIZE]) for n in outputs[1:]],
    )
    made = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18), helper.make_opsetid("rope.rewrite", 1)], ir_version=9)
    return made.SerializeToString()


def session(library, element, provider):
    options = ort.SessionOptions()
    options.register_custom_ops_library(library)
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
    options = parser.parse_args()
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
