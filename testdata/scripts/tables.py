"""One attention layer whose cosines and sines stand in tables, in each spelling: testdata/tables.

The tables are made in float64, with frequencies in float64, and then rounded, as transformers does
for RoFormer. Tests give them other numbers and other lengths.

    python tables.py OUTPUT
"""
import os
import sys

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

ROWS, VOCABULARY, HIDDEN, HEADS, KV_HEADS, CHANNELS = 64, 128, 16, 4, 2, 16
PAIRS = CHANNELS // 2
FLOAT, INT64 = TensorProto.FLOAT, TensorProto.INT64


def tables():
    angles = np.arange(ROWS)[:, None] * 10000.0 ** (-np.arange(PAIRS) / PAIRS)
    return np.cos(angles), np.sin(angles)


class Graph:
    """Nodes between an embedding and logits."""

    def __init__(self, opset, seed=5):
        self.random = np.random.default_rng(seed)
        self.nodes, self.constants, self.inputs, self.outputs, self.opset = [], [], [], [], opset
        self.count = 0
        self.input("input_ids", INT64, "batch", "sequence")
        width = (HEADS + 2 * KV_HEADS) * CHANNELS
        self.weights("embedding", VOCABULARY, HIDDEN)
        self.weights("qkv_weight", HIDDEN, width)
        self.weights("out_weight", HEADS * CHANNELS, HIDDEN)
        self.weights("head_weight", HIDDEN, VOCABULARY)
        self.hidden = self.op("Gather", "embedding", "input_ids")
        self.packed = self.op("MatMul", self.hidden, "qkv_weight")

    def input(self, name, kind, *shape):
        self.inputs.append(helper.make_tensor_value_info(name, kind, shape))
        return name

    def cache(self):
        return [self.input(f"past_key_values.0.{n}", FLOAT, "batch", KV_HEADS, "past", CHANNELS) for n in ("key", "value")]

    def weights(self, name, *shape):
        self.constant(name, self.random.standard_normal(shape) * 1.5 / np.sqrt(shape[0]), np.float32)

    def constant(self, name, values, kind=np.int64):
        self.constants.append(numpy_helper.from_array(np.asarray(values).astype(kind), name))
        return name

    def ints(self, *values):
        name = "ints_" + "_".join(map(str, values)).replace("-", "m")
        if all(c.name != name for c in self.constants):
            self.constant(name, values)
        return name

    def op(self, kind, *inputs, outputs=1, domain="", names=None, **attributes):
        if names is None:
            names = [f"v{self.count + i}" for i in range(outputs)]
            self.count += outputs
        self.nodes.append(helper.make_node(kind, inputs, names, domain=domain, **attributes))
        return names[0] if len(names) == 1 else names

    def split(self):
        return self.op("Split", self.packed, self.constant("parts", [HEADS * CHANNELS, KV_HEADS * CHANNELS, KV_HEADS * CHANNELS]), outputs=3, axis=-1)

    def heads(self, x, heads):
        return self.op("Transpose", self.op("Reshape", x, self.ints(0, 0, heads, CHANNELS)), perm=[0, 2, 1, 3])

    def save(self, path, attended):
        hidden = self.op("Add", self.hidden, self.op("MatMul", attended, "out_weight"))
        self.op("MatMul", hidden, "head_weight", names=["logits"])
        outputs = [helper.make_tensor_value_info("logits", FLOAT, ["batch", "sequence", VOCABULARY])] + self.outputs
        graph = helper.make_graph(self.nodes, "tables", self.inputs, outputs, self.constants)
        model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", self.opset), helper.make_opsetid("com.microsoft", 1)], ir_version=9)
        onnx.checker.check_model(model)
        onnx.save(model, path)

    def present(self, *names):
        for name in names:
            self.outputs.append(helper.make_tensor_value_info(name, FLOAT, ["batch", KV_HEADS, "total", CHANNELS]))


PRESENT = ["present.0.key", "present.0.value"]


def add_tables(g):
    for name, table in zip(("cosines", "sines"), tables()):
        g.constant(name, table, np.float32)


def group_query(path):
    """GroupQueryAttention of com.microsoft, with the rotation inside."""
    g = Graph(21)
    mask = g.input("attention_mask", INT64, "batch", "total")
    past = g.cache()
    add_tables(g)
    last = g.op("Cast", g.op("Sub", g.op("ReduceSum", mask, g.ints(1), keepdims=0), g.ints(1)), to=TensorProto.INT32)
    total = g.op("Cast", g.op("Gather", g.op("Shape", mask), g.constant("one", 1)), to=TensorProto.INT32)
    out = g.op("GroupQueryAttention", g.packed, "", "", *past, last, total, "cosines", "sines", domain="com.microsoft", names=["attended"] + PRESENT,
               num_heads=HEADS, kv_num_heads=KV_HEADS, do_rotary=1)
    g.present(*PRESENT)
    g.save(path, out[0])


def rotary_embedding(path, computed=False):
    """RotaryEmbedding and Attention of opset 23. With computed the tables are made in each call, which ONNX Runtime does not run."""
    g = Graph(23)
    g.input("position_ids", INT64, "batch", "sequence")
    past = g.cache()
    caches = ["cosines", "sines"]
    if computed:
        length = g.op("Add", g.op("ReduceMax", "position_ids", keepdims=0), g.constant("one", 1))
        places = g.op("Cast", g.op("Range", g.constant("zero", 0), length, "one"), to=FLOAT)
        frequencies = g.constant("frequencies", 10000.0 ** (-np.arange(PAIRS)[None] / PAIRS), np.float32)
        angles = g.op("Mul", g.op("Unsqueeze", places, g.ints(1)), frequencies)
        caches = [g.op("Cos", angles), g.op("Sin", angles)]
    else:
        add_tables(g)
    q, k, v = g.split()
    q = g.op("RotaryEmbedding", q, *caches, "position_ids", num_heads=HEADS)
    k = g.op("RotaryEmbedding", k, *caches, "position_ids", num_heads=KV_HEADS)
    out = g.op("Attention", q, k, v, "", *past, names=["attended"] + PRESENT, is_causal=1, q_num_heads=HEADS, kv_num_heads=KV_HEADS)
    g.present(*PRESENT)
    g.save(path, out[0])


def attention(g, q, k, v, mask=None):
    """MatMul, Softmax, MatMul."""
    repeated = [g.op("Reshape", g.op("Expand", g.op("Unsqueeze", x, g.ints(2)), g.ints(1, 1, HEADS // KV_HEADS, 1, 1)), g.op("Concat", g.op("Shape", q, start=0, end=2), g.ints(-1), g.ints(CHANNELS), axis=0)) for x in (k, v)]
    scores = g.op("Mul", g.op("MatMul", q, g.op("Transpose", repeated[0], perm=[0, 1, 3, 2])), g.constant("scale", CHANNELS ** -0.5, np.float32))
    if mask:
        scores = g.op("Add", scores, mask)
    out = g.op("MatMul", g.op("Softmax", scores, axis=-1), repeated[1])
    return g.op("Reshape", g.op("Transpose", out, perm=[0, 2, 1, 3]), g.ints(0, 0, HEADS * CHANNELS))


def gathered(path, proportional=False):
    """Rows gathered by position_ids, halves that turn, a cache. With proportional angles are computed, and three pairs of eight turn."""
    g = Graph(17)
    g.input("position_ids", INT64, "batch", "sequence")
    past = g.cache()
    if proportional:
        frequencies = g.constant("frequencies", np.float32(10000) ** (-np.arange(PAIRS, dtype=np.float32) / PAIRS) * (np.arange(PAIRS) < 3), np.float32)
        angles = g.op("Mul", g.op("Cast", g.op("Unsqueeze", "position_ids", g.ints(1, 3)), to=FLOAT), frequencies)
        cos, sin = g.op("Cos", angles), g.op("Sin", angles)
    else:
        add_tables(g)
        cos, sin = (g.op("Unsqueeze", g.op("Gather", t, "position_ids"), g.ints(1)) for t in ("cosines", "sines"))
    cos, sin = (g.op("Concat", x, x, axis=-1) for x in (cos, sin))

    def rotate(x):
        first, second = g.op("Split", x, g.ints(PAIRS, PAIRS), outputs=2, axis=-1)
        turned = g.op("Concat", g.op("Neg", second), first, axis=-1)
        return g.op("Add", g.op("Mul", x, cos), g.op("Mul", turned, sin))

    q, k, v = (g.heads(x, n) for x, n in zip(g.split(), (HEADS, KV_HEADS, KV_HEADS)))
    k, v = (g.op("Concat", p, x, axis=2, names=[name]) for p, x, name in zip(past, (rotate(k), v), PRESENT))
    g.present(*PRESENT)
    size = lambda x, axis: g.op("Squeeze", g.op("Shape", x, start=axis, end=axis + 1), g.ints(0))
    zero, one = g.constant("zero", 0), g.constant("one", 1)
    length, total = size("input_ids", 1), size(k, 2)
    keys, queries = g.op("Range", zero, total, one), g.op("Range", g.op("Sub", total, length), total, one)
    later = g.op("Greater", g.op("Unsqueeze", keys, g.ints(0)), g.op("Unsqueeze", queries, g.ints(1)))
    mask = g.op("Where", later, g.constant("lowest", np.finfo(np.float32).min, np.float32), g.constant("nothing", 0, np.float32))
    g.save(path, attention(g, rotate(q), k, v, mask))


def indexed(path):
    """RoFormer's: one table of sines and cosines, whose rows are those of the tokens' indices; neighbours turn; no cache and no mask."""
    g = Graph(17)
    cosines, sines = tables()
    g.constant("sines_cosines", np.concatenate([sines, cosines], 1), np.float32)
    rows = g.op("Slice", "sines_cosines", g.ints(0), g.op("Shape", "input_ids", start=1, end=2), g.ints(0))
    both = g.op("Split", rows, g.ints(PAIRS, PAIRS), outputs=2, axis=-1)
    sin, cos = (g.op("Reshape", g.op("Concat", *[g.op("Unsqueeze", x, g.ints(2))] * 2, axis=2), g.ints(1, 1, -1, CHANNELS)) for x in both)

    def rotate(x):
        even, odd = (g.op("Slice", x, g.ints(i), g.ints(CHANNELS), g.ints(3), g.ints(2)) for i in (0, 1))
        turned = g.op("Reshape", g.op("Concat", g.op("Unsqueeze", g.op("Neg", odd), g.ints(4)), g.op("Unsqueeze", even, g.ints(4)), axis=4), g.op("Shape", x))
        return g.op("Add", g.op("Mul", x, cos), g.op("Mul", turned, sin))

    q, k, v = (g.heads(x, n) for x, n in zip(g.split(), (HEADS, KV_HEADS, KV_HEADS)))
    g.save(path, attention(g, rotate(q), rotate(k), v))


if __name__ == "__main__":
    for name, make in {"group_query": group_query, "rotary_embedding": rotary_embedding, "gathered": gathered, "indexed": indexed,
                       "computed": lambda path: rotary_embedding(path, computed=True), "proportional": lambda path: gathered(path, proportional=True)}.items():
        make(os.path.join(sys.argv[1], name + ".onnx"))
