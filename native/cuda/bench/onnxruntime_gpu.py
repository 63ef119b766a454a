"""Runs the op under ONNX Runtime's CUDA execution provider.

    make cuda
    python3 native/cuda/bench/onnxruntime_gpu.py build/librope_ops_cuda.so

Needs the Python packages onnx, numpy, torch and onnxruntime-gpu. For float32,
float16 and bfloat16 it compares a prefill and decoding steps with the CPU's op of
the same library, then times decoding with a cache of fixed capacity whose tensors
stay on the GPU, beside the same with host tensors,
which ONNX Runtime copies there and back. Then all tensors are on the GPU: steps are
compared and timed with their numbers there (rope.device_inputs), and as a CUDA
graph that ONNX Runtime captures and repeats; a length that cannot be is found, and
memory of the GPU that is full is told.

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
import onnxruntime as ort
from onnx import TensorProto, helper

from sessions import CPU, CUDA, median, need, session

HEADS, KV_HEADS, SIZE = 32, 8, 128
BOUNDS = {"float32": 2e-5, "float16": 4e-3, "bfloat16": 4e-2}
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


class OnDevice:
    """Zeros in 16 bits on the GPU, which ONNX Runtime's Python makes without contents."""

    def __init__(self, shape, name):
        import torch

        self.tensor = torch.zeros(shape, dtype=getattr(torch, name), device="cuda")


class Decoder:
    """A session whose cache stays on its device; present is past's own memory."""

    def __init__(self, library, name, provider, capacity, bare=False, **way):
        self.element = TYPES[name]
        self.session = session(model(self.element, bare=bare), library, provider, **way)
        self.device = "cuda" if provider == CUDA else "cpu"
        zeros = np.zeros((1, KV_HEADS, capacity, SIZE), np.float32 if name == "float32" else np.uint16)
        self.caches = {n: self.cache(zeros.copy(), name) for n in ("key", "value")}
        self.length = 0

    def cache(self, zeros, name):
        if self.device == "cuda" and name != "float32":
            return OnDevice(zeros.shape, name)
        if name == "float32":
            return ort.OrtValue.ortvalue_from_numpy(zeros, self.device, 0)
        return ort.OrtValue.ortvalue_from_numpy_with_onnx_type(zeros, self.element)

    def bind_caches(self, binding):
        for name, cache in self.caches.items():
            if isinstance(cache, OnDevice):
                at = (self.device, 0, self.element, cache.tensor.shape, cache.tensor.data_ptr())
                binding.bind_input("past_" + name, *at)
                binding.bind_output("present_" + name, *at)
            else:
                binding.bind_ortvalue_input("past_" + name, cache)
                binding.bind_ortvalue_output("present_" + name, cache)

    def step(self, query, key, value):
        binding = self.session.io_binding()
        binding.bind_output("output", "cpu")
        for name, tensor in (("query", query), ("key", key), ("value", value)):
            binding.bind_cpu_input(name, tensor)
        binding.bind_cpu_input("cache_length", np.array([self.length], np.int32))
        self.bind_caches(binding)
        self.session.run_with_iobinding(binding)
        self.length += query.shape[1]
        return binding.get_outputs()[0].numpy()


class DeviceDecoder(Decoder):
    """A session whose tensors all stay on the GPU; those of single tokens at the same addresses, as a CUDA graph wants."""

    def __init__(self, library, name, capacity, **way):
        super().__init__(library, name, CUDA, capacity, **way)
        self.tensors = {}  # by the number of tokens
        self.again = way.get("device_inputs")  # else a binding has copied the length to the host, once

    def step(self, query, key, value):
        tensors, binding = self.feed(query, key, value)
        self.run(binding, query.shape[1])
        self.length += query.shape[1]
        return tensors["output"].numpy()

    def feed(self, query, key, value):
        length = query.shape[1]
        numbers = {"query": query, "key": key, "value": value, "cache_length": np.array([self.length], np.int32), "output": query}
        if not self.again or length not in self.tensors:
            tensors = {n: ort.OrtValue.ortvalue_from_numpy(x, self.device, 0) for n, x in numbers.items()}
            binding = self.session.io_binding()
            for name, tensor in tensors.items():
                (binding.bind_ortvalue_output if name == "output" else binding.bind_ortvalue_input)(name, tensor)
            self.bind_caches(binding)
            self.tensors[length] = tensors, binding
        tensors, binding = self.tensors[length]
        for name, tensor in tensors.items():
            if name != "output":
                tensor.update_inplace(numbers[name])
        return tensors, binding

    def run(self, binding, length):
        options = ort.RunOptions()
        options.add_run_config_entry("gpu_graph_id", "1" if length == 1 else "-1")  # a prompt is not captured
        self.session.run_with_iobinding(binding, options)

    def time(self, length):
        """Milliseconds of a run of what was fed last, the median of fifty."""
        times = []
        for _ in range(50):
            start = time.perf_counter()
            self.run(self.tensors[length][1], length)
            times.append((time.perf_counter() - start) * 1e3)
        return median(times)


def tokens(random, length):
    return [random.standard_normal((1, length, h * SIZE), dtype=np.float32) for h in (HEADS, KV_HEADS, KV_HEADS)]


def compare(here, there):
    """The largest difference between two decoders over a prefill and 40 single tokens."""
    random = np.random.default_rng(1)
    worst = 0.0
    for length in [150] + [1] * 40:
        step = tokens(random, length)
        worst = max(worst, float(np.abs(here.step(*step) - there.step(*step)).max()))
    return worst


def misplaced(library, plain_library):
    """The largest difference of the CUDA op, which ONNX Runtime takes for the CPU's, from the CPU's over some calls."""
    import torch

    sessions = [session(model(TYPES["float32"], bare=True), path, CPU) for path in (plain_library, library)]
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
    kept = median(times)
    query, key, value = tokens(random, 1)
    host = {"query": query, "key": key, "value": value, "cache_length": np.array([past], np.int32)}
    if name == "float32":
        zeros = np.zeros((1, KV_HEADS, past + 64, SIZE), np.float32)
        host |= {"past_key": zeros, "past_value": zeros}
        start = time.perf_counter()
        decoder.session.run(None, host)
        return kept, (time.perf_counter() - start) * 1e3
    return kept, None


WAYS = {
    "numbers on the host": {},
    "numbers on the GPU": {"device_inputs": True},
    "a CUDA graph": {"device_inputs": True, "graph": True},
}


def on_device(library, name, bound, past):
    """Compares and times the ways of a session whose tensors are all on the GPU; says whether all were right."""
    right = True
    for way, settings in WAYS.items():
        worst = compare(Decoder(library, name, CPU, 256), DeviceDecoder(library, name, 256, **settings))
        right &= worst <= bound
        decoder = DeviceDecoder(library, name, past + 64, **settings)
        decoder.length = past
        decoder.step(*tokens(np.random.default_rng(2), 1))
        print(f"{name}, all on the GPU, {way}: off by {worst:.1e} from the CPU's op (bound {bound:.0e}); "
              f"a token at {past} keys {decoder.time(1):.3f} ms", flush=True)
    return right


def found(library):
    """Whether a length that cannot be gives NaN, and the next run says why."""
    decoder = DeviceDecoder(library, "float32", 64, device_inputs=True)
    step = tokens(np.random.default_rng(3), 1)
    decoder.length = 65
    nan = bool(np.isnan(decoder.step(*step)).all())
    decoder.length = 3
    try:
        decoder.step(*step)
        said = "nothing"
    except Exception as error:  # of a type of ONNX Runtime's own
        said = str(error)
    finite = bool(np.isfinite(decoder.step(*step)).all())
    print(f"a length beyond the capacity: {'NaN' if nan else 'no NaN'}; the next run says {said!r}; the one after is {'finite' if finite else 'not finite'}")
    return nan and finite and "RotaryAttention" in said


def fill():
    """Blocks that leave less than 2 MiB of the GPU's memory."""
    import torch

    blocks, size = [], torch.cuda.mem_get_info()[0]
    while size >= 2 << 20:
        try:
            blocks.append(torch.empty(size, dtype=torch.uint8, device="cuda"))
        except torch.OutOfMemoryError:
            size //= 2
    return blocks


def crowded(library):
    """Whether a run says so where the GPU's memory is full, and one behind it is right. To be asked first: later runs find memory that earlier ones kept."""
    import torch

    length = 8192
    step = tokens(np.random.default_rng(4), length)
    decoder = DeviceDecoder(library, "float32", length, bare=True)  # nothing but the op wants memory
    tensors, binding = decoder.feed(*step)
    blocks = fill()
    try:
        decoder.run(binding, length)
        said = "nothing"
    except Exception as error:  # of a type of ONNX Runtime's own
        said = str(error)
    del blocks
    torch.cuda.empty_cache()
    decoder.run(binding, length)
    worst = float(np.abs(tensors["output"].numpy() - Decoder(library, "float32", CPU, length).step(*step)).max())
    print(f"with the GPU's memory full a run says {said!r}; the one after is off by {worst:.1e} from the CPU's op (bound {BOUNDS['float32']:.0e})", flush=True)
    return "memory" in said and worst <= BOUNDS["float32"]


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("library")
    parser.add_argument("--provider", default=CUDA)
    parser.add_argument("--misplaced", help="the library of CUDA ops for the CPU's provider; nothing else is run")
    options = parser.parse_args()
    if options.misplaced:
        sys.exit(0 if misplaced(options.misplaced, options.library) else "onnxruntime_gpu.py: results differ")
    need(options.provider)
    past = 65536 if options.provider == CUDA else 2048
    failed = options.provider == CUDA and not crowded(options.library)
    for name, bound in BOUNDS.items():
        worst = compare(*(Decoder(options.library, name, p, 256) for p in (CPU, options.provider)))
        failed |= not worst <= bound
        kept, copied = time_decoding(options.library, name, options.provider, past)
        sentence = f"{name}: off by {worst:.1e} from the CPU's op (bound {bound:.0e}); a token at {past} keys {kept:.3f} ms"
        if copied is not None:
            sentence += f", {copied:.1f} ms with a cache on the host"
        print(sentence, flush=True)
    if options.provider == CUDA:
        for name, bound in BOUNDS.items():
            failed |= not on_device(options.library, name, bound, past)
        failed |= not found(options.library)
    if failed:
        sys.exit("onnxruntime_gpu.py: results differ")


if __name__ == "__main__":
    main()
