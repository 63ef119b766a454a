"""Write the cases that the adapters of ONNX Attention and RotaryEmbedding are tested with.

    make_cases.py          (needs numpy and onnx; writes ../onnxattention/testdata and ../onnxrotary/testdata)

Each case is a node, random inputs, and the outputs that onnx's reference evaluator gives for them in float64.
"""
import json
import os

import numpy as np
import onnx
from onnx import TensorProto, helper
from onnx.reference import ReferenceEvaluator

HERE = os.path.dirname(os.path.abspath(__file__))
rng = np.random.default_rng(23)


def normal(*shape):
    return np.round(rng.standard_normal(shape), 3)


def holes(*shape):
    """A mask of truth values that leaves every query a key."""
    mask = rng.random(shape) < 0.7
    mask[..., 0] = True
    return mask


def array(x):
    kind = {"f": "float", "b": "bool", "i": "int64"}[x.dtype.kind]
    return dict(Type=kind, Dims=list(x.shape), Data=[round(float(v), 9) if kind == "float" else int(v) for v in x.ravel()])


def reference(op, opset, attributes, inputs, outputs):
    names = [f"i{k}" if x is not None else "" for k, x in enumerate(inputs)]
    made = [f"o{k}" for k in range(outputs)]
    graph = helper.make_graph(
        [helper.make_node(op, names, made, **attributes)], "case",
        [helper.make_tensor_value_info(f"i{k}", helper.np_dtype_to_tensor_dtype(x.dtype), x.shape)
         for k, x in enumerate(inputs) if x is not None],
        [helper.make_tensor_value_info(o, TensorProto.DOUBLE, None) for o in made])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)])
    return ReferenceEvaluator(model).run(None, {f"i{k}": x for k, x in enumerate(inputs) if x is not None})


def case(name, op, inputs, attributes=None, outputs=1, opset=23, not_run=""):
    attributes = attributes or {}
    # The values of attributes are float32 in a model.
    exact = {k: float(np.float32(v)) if isinstance(v, float) else v for k, v in attributes.items()}
    results = reference(op, opset, exact, inputs, outputs)
    return dict(Name=name, OpType=op, Opset=opset, NotRun=not_run,
                Attributes={k: {"float": v} if isinstance(v, float) else v for k, v in exact.items()},
                Inputs=[None if x is None else array(x) for x in inputs], Outputs=[array(np.asarray(x)) for x in results])


def attention():
    B, H, K, L, T, D = 2, 4, 2, 3, 5, 4
    qkv = lambda heads=K, total=T, v=D: [normal(B, H, L, D), normal(B, heads, total, D), normal(B, heads, total, v)]
    flat = lambda total=T, v=D: [normal(B, L, H * D), normal(B, total, K * D), normal(B, total, K * v)]
    past = lambda n=T - L: [normal(B, K, n, D), normal(B, K, n, D)]
    heads = dict(q_num_heads=H, kv_num_heads=K)
    A = "Attention"
    yield case("plain", A, qkv(H))
    yield case("grouped", A, qkv())
    yield case("one head for all", A, qkv(1))
    yield case("grouped, heads given", A, qkv(), heads)
    yield case("3-D", A, flat(), heads)
    yield case("3-D, wide values", A, flat(v=6), heads)
    yield case("wide values", A, qkv(v=6))
    yield case("odd head size", A, [normal(B, H, L, 5), normal(B, K, T, 5), normal(B, K, T, 5)])
    for shape in [(L, T), (1, L, T), (H, L, T), (1, 1, L, T), (B, 1, L, T), (1, H, L, T), (B, H, L, T)]:
        yield case(f"mask of truth values {shape}", A, qkv() + [holes(*shape)])
        yield case(f"mask of numbers {shape}", A, qkv() + [normal(*shape)])
    nothing = holes(B, 1, L, T)
    nothing[1, 0, 2] = False
    yield case("a query that sees no key", A, qkv() + [nothing])
    yield case("causal", A, qkv(), dict(is_causal=1))
    yield case("causal, as many keys", A, qkv(total=L), dict(is_causal=1))
    yield case("causal and mask of truth values", A, qkv() + [holes(B, 1, L, T)], dict(is_causal=1))
    yield case("causal and mask of numbers", A, qkv() + [normal(B, 1, L, T)], dict(is_causal=1))
    yield case("past", A, qkv(total=L) + [None] + past(), {}, 3)
    yield case("past, not causal, mask", A, qkv(total=L) + [holes(B, 1, L, T)] + past(), {}, 3)
    yield case("past, causal", A, qkv(total=L) + [None] + past(), dict(is_causal=1), 3)
    yield case("past, causal, mask", A, qkv(total=L) + [holes(B, 1, L, T)] + past(), dict(is_causal=1), 3)
    yield case("past of nothing, causal", A, qkv(total=L) + [None] + past(0), dict(is_causal=1), 3)
    yield case("3-D, past, causal", A, flat(total=L) + [None] + past(), dict(is_causal=1, **heads), 3)
    yield case("3-D, past, causal, mask of numbers", A, flat(total=L) + [normal(B, 1, L, T)] + past(), dict(is_causal=1, **heads), 3)
    yield case("present without past", A, qkv(), {}, 3)
    yield case("3-D, present without past", A, flat(), heads, 3)
    yield case("scale", A, qkv(), dict(scale=0.3))
    yield case("softcap", A, qkv(), dict(softcap=0.7))
    yield case("softcap and masks", A, qkv() + [holes(B, 1, L, T)], dict(softcap=0.7, scale=0.9, is_causal=1))
    yield case("softcap and mask of numbers", A, qkv() + [normal(B, 1, L, T)], dict(softcap=0.7))
    yield case("softmax in float32", A, qkv(), dict(softmax_precision=1))
    for opset in (24, 25):
        yield case(f"opset {opset}", A, qkv(), {}, 1, opset)
        yield case(f"opset {opset}, past, causal, mask", A, qkv(total=L) + [holes(B, 1, L, T)] + past(), dict(is_causal=1), 3, opset)
    yield case("one row of masks", A, qkv() + [holes(1, T)], not_run="attn_mask")


def outside():
    """A cache outside the op: of each row's keys the first so many are tokens."""
    B, H, K, L, T, D = 2, 4, 2, 3, 7, 4
    qkv = lambda: [normal(B, H, L, D), normal(B, K, T, D), normal(B, K, T, D)]
    flat = lambda: [normal(B, L, H * D), normal(B, T, K * D), normal(B, T, K * D)]
    tokens = lambda *n: [None, None, None, np.array(n)]
    heads = dict(q_num_heads=H, kv_num_heads=K)
    yield case("cache outside", "Attention", qkv() + tokens(5, 7), opset=24)
    yield case("cache outside, 3-D", "Attention", flat() + tokens(7, 4), heads, opset=24)
    yield case("cache outside and mask of truth values", "Attention", qkv() + [holes(B, 1, L, T)] + tokens(4, 6)[1:], opset=24)
    yield case("cache outside, causal", "Attention", qkv() + tokens(5, 7), dict(is_causal=1), opset=24)
    yield case("cache outside, causal, 3-D", "Attention", flat() + tokens(6, 3), dict(is_causal=1, **heads), opset=24)


def rotary():
    B, H, L, D, N = 2, 3, 4, 8, 9
    R = "RotaryEmbedding"
    table = lambda width=D // 2: [normal(N, width), normal(N, width), rng.integers(0, N, (B, L))]
    each = lambda width=D // 2, batch=B: [normal(batch, L, width), normal(batch, L, width)]
    for interleaved in (0, 1):
        a = dict(interleaved=interleaved)
        word = "interleaved" if interleaved else "halves"
        yield case(word, R, [normal(B, H, L, D)] + each(), a)
        yield case(word + ", heads given", R, [normal(B, H, L, D)] + each(), dict(num_heads=H, **a))
        yield case(word + ", 3-D", R, [normal(B, L, H * D)] + each(), dict(num_heads=H, **a))
        yield case(word + ", partial", R, [normal(B, H, L, D)] + each(2), dict(rotary_embedding_dim=4, **a))
        yield case(word + ", partial, 3-D", R, [normal(B, L, H * D)] + each(3), dict(rotary_embedding_dim=6, num_heads=H, **a))
        yield case(word + ", tables", R, [normal(B, H, L, D)] + table(), a)
        yield case(word + ", tables, partial", R, [normal(B, H, L, D)] + table(2), dict(rotary_embedding_dim=4, **a))
        yield case(word + ", tables, 3-D", R, [normal(B, L, H * D)] + table(), dict(num_heads=H, **a))
    yield case("no attributes", R, [normal(B, H, L, D)] + each())
    yield case("one row for the batch", R, [normal(B, H, L, D)] + each(batch=1), not_run="cos_cache")
    yield case("one row for the batch, 3-D", R, [normal(B, L, H * D)] + each(batch=1), dict(num_heads=H), not_run="cos_cache")


def write(folder, cases):
    path = os.path.join(HERE, "..", folder, "testdata", "cases.json")
    with open(path, "w") as f:
        f.write("[\n" + ",\n".join(json.dumps(c, separators=(",", ":")) for c in cases) + "\n]\n")
    print("wrote", os.path.normpath(path), "with onnx", onnx.__version__)


cases = list(attention())
write("onnxrotary", list(rotary()))
write("onnxattention", cases + list(outside()))
