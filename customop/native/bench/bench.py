"""Compares RotaryAttention with com.microsoft GroupQueryAttention in ONNX Runtime.

Both ops run in one process, call by call in turn, so that the machine's mood
meets both alike; the table gives medians and their ratio. Both rotate q and k
and grow a cache (past -> present).

    python bench.py --library build/librope_ops.so [--threads 1 2] [--rounds 9]

Needs numpy, onnx and onnxruntime.
"""

import argparse
import statistics
import time

import numpy as np
import onnxruntime as ort
from onnx import TensorProto, helper

# name, query heads, kv heads, head size, new tokens, cached tokens
CASES = [
    ("prefill 32/8 d128 L2048", 32, 8, 128, 2048, 0),
    ("prefill 9/3 d64 L4096", 9, 3, 64, 4096, 0),
    ("decode 32/8 d128 16384 keys", 32, 8, 128, 1, 16383),
    ("decode 9/3 d64 16384 keys", 9, 3, 64, 1, 16383),
    ("chunk 9/3 d64 L64 past 8192", 9, 3, 64, 64, 8192),
    ("one key 9/3 d64", 9, 3, 64, 1, 0),
]


def session(node, inputs, outputs, threads, library=None):
    options = ort.SessionOptions()
    options.intra_op_num_threads = threads
    if library:
        options.register_custom_ops_library(library)
    value = lambda name, type_, rank: helper.make_tensor_value_info(
        name, type_, [f"{name}_{i}" for i in range(rank)]
    )
    graph = helper.make_graph(
        [node],
        "bench",
        [value(*i) for i in inputs],
        [value(name, TensorProto.FLOAT, rank) for name, rank in outputs],
    )
    model = helper.make_model(
        graph,
        opset_imports=[
            helper.make_opsetid("", 18),
            helper.make_opsetid("rope.rewrite", 1),
            helper.make_opsetid("com.microsoft", 1),
        ],
        ir_version=9,
    )
    return ort.InferenceSession(model.SerializeToString(), options, ["CPUExecutionProvider"])


F, I64, I32 = TensorProto.FLOAT, TensorProto.INT64, TensorProto.INT32
OUTPUTS = [("output", 3), ("present_key", 4), ("present_value", 4)]


def rotary_attention(heads, kv_heads, size, threads, library, string_shift=0):
    frequencies = 10000.0 ** (-np.arange(size // 2) / (size // 2))
    bands = {}
    if string_shift:
        bands = dict(
            band_starts=[0, string_shift],
            band_query_offsets=[0.0, float(128 - string_shift)],
        )
    node = helper.make_node(
        "RotaryAttention",
        ["query", "key", "value", "past_key", "past_value"],
        [name for name, _ in OUTPUTS],
        domain="rope.rewrite",
        spec_version=1,
        num_heads=heads,
        kv_num_heads=kv_heads,
        frequencies=frequencies.astype(np.float32).tolist(),
        **bands,
    )
    inputs = [("query", F, 3), ("key", F, 3), ("value", F, 3), ("past_key", F, 4), ("past_value", F, 4)]
    return session(node, inputs, OUTPUTS, threads, library)


def group_query_attention(heads, kv_heads, threads):
    node = helper.make_node(
        "GroupQueryAttention",
        ["query", "key", "value", "past_key", "past_value", "seqlens_k", "total_length", "cos", "sin"],
        [name for name, _ in OUTPUTS],
        domain="com.microsoft",
        num_heads=heads,
        kv_num_heads=kv_heads,
        do_rotary=1,
    )
    inputs = [
        ("query", F, 3),
        ("key", F, 3),
        ("value", F, 3),
        ("past_key", F, 4),
        ("past_value", F, 4),
        ("seqlens_k", I32, 1),
        ("total_length", I32, 1),
        ("cos", F, 2),
        ("sin", F, 2),
    ]
    return session(node, inputs, OUTPUTS, threads)


def bound(session_, feeds, shapes):
    """Inputs and outputs that stand ready, so that only the op is timed."""
    binding = session_.io_binding()
    for name, array in feeds.items():
        binding.bind_ortvalue_input(name, ort.OrtValue.ortvalue_from_numpy(array))
    outputs = {}
    for name, shape in shapes.items():
        outputs[name] = ort.OrtValue.ortvalue_from_shape_and_type(shape, np.float32, "cpu")
        binding.bind_ortvalue_output(name, outputs[name])
    return binding, outputs


def run_case(case, threads, rounds, library, string):
    name, heads, kv_heads, size, length, past = case
    rng = np.random.default_rng(0)
    draw = lambda *shape: rng.standard_normal(shape, dtype=np.float32)
    total = past + length
    feeds = dict(
        query=draw(1, length, heads * size),
        key=draw(1, length, kv_heads * size),
        value=draw(1, length, kv_heads * size),
        past_key=draw(1, kv_heads, past, size),
        past_value=draw(1, kv_heads, past, size),
    )
    angles = np.arange(total)[:, None] * 10000.0 ** (-np.arange(size // 2) / (size // 2))
    gqa_feeds = dict(
        feeds,
        seqlens_k=np.array([total - 1], np.int32),
        total_length=np.array([total], np.int32),
        cos=np.cos(angles).astype(np.float32),
        sin=np.sin(angles).astype(np.float32),
    )
    present = (1, kv_heads, total, size)
    shapes = dict(output=(1, length, heads * size), present_key=present, present_value=present)
    contestants = {
        "ours": (rotary_attention(heads, kv_heads, size, threads, library), feeds),
        "gqa": (group_query_attention(heads, kv_heads, threads), gqa_feeds),
    }
    if string:
        shift = total // 3
        contestants["string"] = (
            rotary_attention(heads, kv_heads, size, threads, library, shift),
            feeds,
        )
    bindings = {k: (s, *bound(s, f, shapes)) for k, (s, f) in contestants.items()}
    times = {k: [] for k in bindings}
    repeat = 1
    for round_ in range(rounds + 1):
        for key, (s, binding, _) in bindings.items():
            start = time.perf_counter()
            for _ in range(repeat):
                s.run_with_iobinding(binding)
            if round_ > 0:  # the first round warms up
                times[key].append((time.perf_counter() - start) / repeat)
        if round_ == 0:
            repeat = max(1, min(1000, int(0.02 / max(1e-6, time.perf_counter() - start))))
    a, b = (bindings[k][2]["output"].numpy() for k in ("ours", "gqa"))
    difference = np.abs(a - b).max()
    medians = {k: statistics.median(v) for k, v in times.items()}
    causal_flops = 4.0 * heads * size * (length * past + length * (length + 1) / 2)
    bytes_read = 8.0 * kv_heads * size * total
    line = (
        f"{name:30s} {threads} thr  ours {medians['ours'] * 1e3:9.3f} ms  "
        f"gqa {medians['gqa'] * 1e3:9.3f} ms  ratio {medians['gqa'] / medians['ours']:5.2f}  "
        f"{causal_flops / medians['ours'] / 1e9:6.1f} GF/s  {bytes_read / medians['ours'] / 1e9:5.1f} GB/s  "
        f"max difference {difference:.1e}"
    )
    if string:
        line += f"  string/plain {medians['string'] / medians['ours']:.3f}"
    print(line, flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--library", required=True, help="path of librope_ops.so")
    parser.add_argument("--threads", type=int, nargs="+", default=[1, 2])
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--string", action="store_true", help="also time a two-band map")
    parser.add_argument("--only", default="", help="run the cases whose name contains this")
    arguments = parser.parse_args()
    print("ratio = GroupQueryAttention's time / ours; GF/s counts causal pairs, GB/s one read of K and V")
    for threads in arguments.threads:
        for case in CASES:
            if arguments.only in case[0]:
                run_case(case, threads, arguments.rounds, arguments.library, arguments.string)


if __name__ == "__main__":
    main()
