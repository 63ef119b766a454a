"""What field.py writes node by node: attention and rotation as fused operators, as model builders and optimizers leave them."""
import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

HEADS, SIZE, HIDDEN, VOCAB = 2, 16, 32, 64
FLOAT, INT64, INT32 = TensorProto.FLOAT, TensorProto.INT64, TensorProto.INT32


def tables(rows, pairs=SIZE // 2, dtype=np.float32, factors=1.0):
    """Cosines and sines [rows, pairs] of angles computed in dtype, rounded to float32."""
    omega = (10000.0 ** -(np.arange(pairs) / pairs) / factors).astype(dtype)
    angle = np.arange(rows, dtype=dtype)[:, None] * omega
    return np.cos(angle).astype(np.float32), np.sin(angle).astype(np.float32)


class Model:
    """A decoder of one attention layer, written down node by node."""

    def __init__(self, kv, opset, contrib=False):
        self.kv, self.opset, self.contrib = kv, opset, contrib
        self.nodes, self.inputs, self.outputs, self.constants = [], [], [], []
        self.rng = np.random.default_rng(kv + opset)
        self.input("input_ids", INT64, "batch", "sequence")
        embedding = self.weight("embedding", VOCAB, HIDDEN)
        self.x = self.node("Gather", embedding, "input_ids")
        self.project = lambda name, heads: self.node("MatMul", self.x, self.weight(name, HIDDEN, heads * SIZE))

    def input(self, name, kind, *dims):
        self.inputs.append(helper.make_tensor_value_info(name, kind, dims))
        return name

    def constant(self, name, value):
        self.constants.append(numpy_helper.from_array(np.asarray(value), name))
        return name

    def weight(self, name, *dims):
        return self.constant(name, (self.rng.standard_normal(dims) * 0.3).astype(np.float32))

    def node(self, op, *args, results=None, **attributes):
        results = results or [f"{op}_{len(self.nodes)}"]
        self.nodes.append(helper.make_node(op, args, results, name=results[0], **attributes))
        return results[0]

    def contributed(self, op, *args, results=None, **attributes):
        return self.node(op, *args, results=results, domain="com.microsoft", **attributes)

    def cache(self, present="total"):
        """Past keys and values as inputs, present ones as outputs; returns the names of both."""
        names = []
        for when, rows in (("past_key_values", "past"), ("present", present)):
            for kind in ("key", "value"):
                names.append(f"{when}.0.{kind}")
                info = helper.make_tensor_value_info(names[-1], FLOAT, ["batch", self.kv, rows, SIZE])
                (self.inputs if when != "present" else self.outputs).append(info)
        return names

    def lengths(self):
        """seqlens_k and total_sequence_length of an attention mask, as GroupQueryAttention takes them."""
        self.input("attention_mask", INT64, "batch", "total")
        one = self.constant("one", np.int64(1))
        last = self.node("Sub", self.node("ReduceSum", "attention_mask", self.constant("axis", np.int64([1])), keepdims=0), one)
        total = self.node("Gather", self.node("Shape", "attention_mask"), one)
        return self.node("Cast", last, to=INT32), self.node("Cast", total, to=INT32)

    def done(self, attention):
        h = self.node("Add", self.x, self.node("MatMul", attention, self.weight("wo", HEADS * SIZE, HIDDEN)))
        self.node("MatMul", h, self.weight("head", HIDDEN, VOCAB), results=["logits"])
        self.outputs.insert(0, helper.make_tensor_value_info("logits", FLOAT, ["batch", "sequence", VOCAB]))
        graph = helper.make_graph(self.nodes, "field", self.inputs, self.outputs, self.constants)
        opsets = [helper.make_opsetid("", self.opset)] + [helper.make_opsetid("com.microsoft", 1)] * self.contrib
        return helper.make_model(graph, opset_imports=opsets, ir_version=10)


def grouped(rows, dtype):
    """GroupQueryAttention that rotates by tables computed in dtype."""
    m = Model(kv=1, opset=21, contrib=True)
    seqlens, total = m.lengths()
    key, value, present_key, present_value = m.cache()
    cos, sin = tables(rows, dtype=dtype)
    m.contributed("GroupQueryAttention", m.project("wqkv", HEADS + 2), "", "", key, value, seqlens, total, m.constant("cos", cos), m.constant("sin", sin),
                  results=["attention", present_key, present_value], num_heads=HEADS, kv_num_heads=1, do_rotary=1)
    return m.done("attention")


def longrope():
    """The same with tables of short texts, or of long ones where more than 48 tokens are attended to."""
    m = Model(kv=1, opset=21, contrib=True)
    seqlens, total = m.lengths()
    key, value, present_key, present_value = m.cache()
    long = m.node("Greater", total, m.constant("trained", np.int32(48)))
    branches = {}
    for side, rows, factors in (("then_branch", 512, np.linspace(1, 8, SIZE // 2)), ("else_branch", 48, np.linspace(1, 1.5, SIZE // 2))):
        values = [numpy_helper.from_array(t * np.float32(1.1), f"{kind}_{side}") for kind, t in zip(("cos", "sin"), tables(rows, factors=factors))]
        nodes = [helper.make_node("Constant", [], [t.name], value=t) for t in values]
        branches[side] = helper.make_graph(nodes, side, [], [helper.make_tensor_value_info(t.name, FLOAT, t.dims) for t in values])
    m.node("If", long, results=["cos", "sin"], **branches)
    m.contributed("GroupQueryAttention", m.project("wq", HEADS), m.project("wk", 1), m.project("wv", 1), key, value, seqlens, total, "cos", "sin",
                  results=["attention", present_key, present_value], num_heads=HEADS, kv_num_heads=1, do_rotary=1)
    return m.done("attention")


def partial():
    """RotaryEmbedding of com.microsoft on half of each head, before a GroupQueryAttention that does not rotate."""
    m = Model(kv=1, opset=21, contrib=True)
    m.input("position_ids", INT64, "batch", "sequence")
    seqlens, total = m.lengths()
    key, value, present_key, present_value = m.cache()
    cos, sin = (m.constant(n, t) for n, t in zip(("cos", "sin"), tables(256, SIZE // 4)))
    q, k = (m.contributed("RotaryEmbedding", m.project(w, heads), "position_ids", cos, sin, num_heads=heads, rotary_embedding_dim=SIZE // 2)
            for w, heads in (("wq", HEADS), ("wk", 1)))
    m.contributed("GroupQueryAttention", q, k, m.project("wv", 1), key, value, seqlens, total,
                  results=["attention", present_key, present_value], num_heads=HEADS, kv_num_heads=1)
    return m.done("attention")


def multihead():
    """RotaryEmbedding of neighbouring channels before MultiHeadAttention."""
    m = Model(kv=HEADS, opset=18, contrib=True)
    m.input("position_ids", INT64, "batch", "sequence")
    key, value, present_key, present_value = m.cache("past + sequence")
    cos, sin = (m.constant(n, t) for n, t in zip(("cos", "sin"), tables(256)))
    q, k = (m.contributed("RotaryEmbedding", m.project(w, HEADS), "position_ids", cos, sin, num_heads=HEADS, interleaved=1) for w in ("wq", "wk"))
    m.contributed("MultiHeadAttention", q, k, m.project("wv", HEADS), "", "", "", key, value,
                  results=["attention", present_key, present_value], num_heads=HEADS, unidirectional=1)
    return m.done("attention")


def rotary23(rows):
    """RotaryEmbedding and Attention of opset 23: with a table of so many rows, or with angles of this call's tokens and no positions."""
    m = Model(kv=HEADS, opset=23)
    if rows:
        at = [m.input("position_ids", INT64, "batch", "sequence")]
        cos, sin = (m.constant(n, t) for n, t in zip(("cos", "sin"), tables(rows)))
    else:
        at = []
        shape = m.node("Shape", "input_ids")
        length = m.node("Gather", shape, m.constant("one", np.int64(1)))
        place = m.node("Cast", m.node("Range", m.constant("zero", np.int64(0)), length, "one"), to=FLOAT)
        omega = (10000.0 ** -(np.arange(SIZE // 2) / (SIZE // 2))).astype(np.float32)
        angle = m.node("Mul", m.node("Unsqueeze", place, m.constant("last", np.int64([1]))), m.constant("omega", omega))
        wanted = m.node("Concat", shape, m.constant("pairs", np.int64([SIZE // 2])), axis=0)
        cos, sin = (m.node("Expand", m.node(op, angle), wanted) for op in ("Cos", "Sin"))
    q, k = (m.node("RotaryEmbedding", m.project(w, HEADS), cos, sin, *at, num_heads=HEADS) for w in ("wq", "wk"))
    m.node("Attention", q, k, m.project("wv", HEADS), results=["attention"], q_num_heads=HEADS, kv_num_heads=HEADS, is_causal=1)
    return m.done("attention")


def scattered():
    """A cache that TensorScatter writes in place and Attention of opset 24 reads up to each row's length."""
    m = Model(kv=1, opset=24)
    m.input("position_ids", INT64, "batch", "sequence")
    m.input("write_indices", INT64, "batch")
    m.input("nonpad_kv_seqlen", INT64, "batch")
    cos, sin = (m.constant(n, t) for n, t in zip(("cos", "sin"), tables(256)))
    q, k = (m.node("RotaryEmbedding", m.project(w, heads), cos, sin, "position_ids", num_heads=heads) for w, heads in (("wq", HEADS), ("wk", 1)))
    for kind, new in (("key", k), ("value", m.project("wv", 1))):
        m.inputs.append(helper.make_tensor_value_info(f"{kind}_cache", FLOAT, ["batch", "capacity", SIZE]))
        m.outputs.append(helper.make_tensor_value_info(f"updated_{kind}_cache", FLOAT, ["batch", "capacity", SIZE]))
        m.node("TensorScatter", f"{kind}_cache", new, "write_indices", results=[f"updated_{kind}_cache"], axis=1)
    m.node("Attention", q, "updated_key_cache", "updated_value_cache", "", "", "", "nonpad_kv_seqlen", results=["attention"],
           q_num_heads=HEADS, kv_num_heads=1, is_causal=1)
    return m.done("attention")
