"""Writes models of realistic sizes without a download: small real exports of testdata, grown.

    python scripts/big_models.py FOLDER [NAME...]

FOLDER/NAME/model.onnx has every node as the exporter wrote it, with the last layer of the small
export repeated and all sizes changed; config.json says the sizes. As a check, each small export
is grown to its own size first, which must give the same graph.

llama-1b   Llama-3.2-1B's shape as Optimum writes it, in float16, with random weights (3.0 GB)
mistral-7b Mistral-7B's shape as ONNX Runtime GenAI's builder writes it, in int4 blocks of 32,
           with zeros for weights and scales in a sparse file (5.0 GB, of which 6 MB on the disk)
"""
import dataclasses
import json
import os
import sys

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

MODELS = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "testdata", "models")
PAGE = 4096  # external data begins at pages, so that runtimes can map it
BLOCK = 32  # numbers that share a scale in int4


@dataclasses.dataclass
class Sizes:
    layers: int
    hidden: int
    heads: int
    kv_heads: int
    head: int
    intermediate: int
    vocabulary: int
    trained: int
    theta: float
    half: bool = False  # float16 where the model computes, float32 in norms and angles

    def frequencies(self):
        exponents = np.arange(0, self.head, 2, dtype=np.float32) / np.float32(self.head)
        return np.float32(1) / np.power(np.float32(self.theta), exponents)

    def angles(self):
        return np.arange(self.trained, dtype=np.float32)[:, None] * self.frequencies()

    def product(self, node):
        """Channels in and out of the product with weights that node is, by its name in the checkpoint."""
        query, key = self.heads * self.head, self.kv_heads * self.head
        return {
            "q_proj": (self.hidden, query), "k_proj": (self.hidden, key), "v_proj": (self.hidden, key),
            "qkv_proj": (self.hidden, query + 2 * key), "o_proj": (query, self.hidden),
            "gate_proj": (self.hidden, self.intermediate), "up_proj": (self.hidden, self.intermediate),
            "down_proj": (self.intermediate, self.hidden), "lm_head": (self.hidden, self.vocabulary),
        }[node.name.split("/")[-2]]


SMALL = Sizes(layers=2, hidden=64, heads=4, kv_heads=2, head=16, intermediate=32, vocabulary=128, trained=64, theta=1e4)
BIG = {
    "llama-1b": ("llama__optimum", Sizes(
        layers=16, hidden=2048, heads=32, kv_heads=8, head=64, intermediate=8192, vocabulary=128256, trained=8192, theta=5e5, half=True)),
    "mistral-7b": ("llama__genai-int4", Sizes(
        layers=32, hidden=4096, heads=32, kv_heads=8, head=128, intermediate=14336, vocabulary=32000, trained=8192, theta=1e4)),
}


def renamed(name, layer, last):
    """What the second layer of a small export calls name, in another layer; behind the layers, layer is None."""
    if layer is None:
        return name.replace("layers.2/", f"layers.{last + 1}/").replace("layers.2.", f"layers.{last + 1}.").replace("layers.1/", f"layers.{last}/")
    if layer == 1:
        return name
    if name.startswith(("onnx::", "Constant_")):  # numbered through the whole graph
        return f"{name}_{layer}"
    if name.startswith("/model/layers.0/"):  # the layer before, or what all layers share
        return name if "/self_attn/" in name else name.replace("layers.0/", f"layers.{layer - 1}/")
    for mark in "layers.{}/", "layers.{}.", "past_key_values.{}.", "present.{}.":
        name = name.replace(mark.format(1), mark.format(layer))
    return name


def in_layer(name):
    return any(mark in name for mark in ("layers.1/", "layers.1.", "past_key_values.1.", "present.1."))


def copies(values, sizes, name=lambda v: v.name):
    """Yields values with the layer that each stands for, the runs of the second layer once for each further one."""
    values = list(values)
    inside = [in_layer(name(v)) for v in values]
    if values and isinstance(values[0], onnx.NodeProto):  # constants in between have names of no layer
        first, last = inside.index(True), len(inside) - inside[::-1].index(True)
        inside = [first <= i < last for i in range(len(values))]
    at = 0
    while at < len(values):
        if not inside[at]:
            yield values[at], None if any(inside[:at]) else 1
            at += 1
            continue
        end = next((i for i in range(at, len(values)) if not inside[i]), len(values))
        for layer in range(1, sizes.layers):
            for v in values[at:end]:
                yield v, layer
        at = end


def constant(node, users, sizes):
    """The number in a Constant node at the other size; users are the nodes that read it."""
    value = numpy_helper.to_array(node.attribute[0].t)
    name = users[0].name
    if value.shape == (1, SMALL.head // 2, 1):
        value = sizes.frequencies()[None, :, None]
    elif "/self_attn/" in name and value.dtype == np.int64 and users[0].op_type in ("Concat", "Mul"):
        repeat = SMALL.heads // SMALL.kv_heads
        value = np.where(value == SMALL.head, sizes.head, np.where(value == repeat, sizes.heads // sizes.kv_heads, value))
    elif "/self_attn/" in name and value.dtype == np.float32:
        value = np.where(value == SMALL.head**-0.25, np.float32(sizes.head**-0.25), value).astype(np.float16 if sizes.half else np.float32)
    tensor = node.attribute[0].t
    tensor.CopyFrom(numpy_helper.from_array(value, tensor.name))


def attributes(node, sizes):
    """Sizes and types that stand in attributes."""
    new = {}
    if node.op_type == "MatMulNBits":
        new["K"], new["N"] = sizes.product(node)
    elif node.op_type == "GroupQueryAttention":
        new = {"num_heads": sizes.heads, "kv_num_heads": sizes.kv_heads, "scale": sizes.head**-0.5}
    elif node.op_type == "Cast" and sizes.half and node.name.endswith(("norm/Cast_1", "rotary_emb/Cast_4", "rotary_emb/Cast_5")):
        new["to"] = TensorProto.FLOAT16
    for a in node.attribute:
        if a.name in new:
            a.CopyFrom(helper.make_attribute(a.name, new[a.name]))


def value(info, sizes):
    """A graph input, output or intermediate value at the other size."""
    tensor = info.type.tensor_type
    dims = tensor.shape.dim
    cached = info.name.startswith(("past_key_values.", "present."))
    width = {SMALL.head: sizes.head} if cached else {
        SMALL.hidden: sizes.hidden, SMALL.intermediate: sizes.intermediate,
        SMALL.vocabulary: sizes.vocabulary if info.name == "logits" else sizes.product(helper.make_node("", [], [], name="/qkv_proj/"))[1]}
    if cached:
        dims[1].dim_value = sizes.kv_heads
    if len(dims) and dims[-1].dim_value in width:
        dims[-1].dim_value = width[dims[-1].dim_value]
    if sizes.half and tensor.elem_type == TensorProto.FLOAT:
        tensor.elem_type = TensorProto.FLOAT16


def dims_of(name, old, user, sizes):
    """The shape of a weight whose first reader is user."""
    if user.op_type == "MatMul":
        return list(sizes.product(user))
    if user.op_type == "MatMulNBits":
        k, n = sizes.product(user)
        return [n, k // BLOCK] + old[2:]
    if user.op_type == "GroupQueryAttention":
        return [sizes.trained, sizes.head // 2]
    return [sizes.vocabulary, sizes.hidden] if len(old) == 2 else [sizes.hidden]


def grow(small, sizes):
    """The model at other sizes; the data of its weights is not there yet."""
    model = onnx.ModelProto()
    model.CopyFrom(small)
    graph, last = model.graph, sizes.layers - 1
    for field in "input", "output", "value_info", "node", "initializer":
        del getattr(graph, field)[:]
    for field in "input", "output", "value_info":
        for old, layer in copies(getattr(small.graph, field), sizes):
            new = getattr(graph, field).add()
            new.CopyFrom(old)
            new.name = renamed(old.name, layer, last) if layer else old.name.replace("layers.2/", f"layers.{last + 1}/")
            value(new, sizes)
    for old, layer in copies(small.graph.node, sizes):
        new = graph.node.add()
        new.CopyFrom(old)
        new.name = renamed(old.name, layer, last)
        for names in new.input, new.output:
            names[:] = [renamed(n, layer, last) for n in names]
        attributes(new, sizes)
    users, makers = {}, {o: n for n in graph.node for o in n.output}
    for node in graph.node:
        if sizes.half and node.op_type == "Add":  # in float32 the norm's cast does nothing, and the exporter let it stand for its input
            node.input[:] = [makers[n].input[0] if n.endswith("norm/Cast_output_0") else n for n in node.input]
        for n in node.input:
            users.setdefault(n, []).append(node)
    for node in graph.node:
        if node.op_type == "Constant":
            constant(node, users[node.output[0]], sizes)
    olds = {t.name: t for t in small.graph.initializer}
    smalls = {i: o for old, layer in copies(small.graph.node, sizes) for o in old.input if o in olds for i in [renamed(o, layer, last)]}
    for name, source in smalls.items():
        old = olds[source]
        floats = TensorProto.FLOAT16 if sizes.half else TensorProto.FLOAT
        graph.initializer.add(name=name, dims=dims_of(name, list(old.dims), users[name][0], sizes),
                              data_type=floats if old.data_type == TensorProto.FLOAT else old.data_type)
    return model


def check(small):
    """Grown to its own size, a small export is itself."""
    same = grow(small, SMALL)
    shapes = lambda g: {t.name: (t.data_type, list(t.dims)) for t in g.initializer}
    for field in "input", "output", "value_info", "node":
        if list(getattr(small.graph, field)) != list(getattr(same.graph, field)):
            sys.exit(f"big_models.py: the {field}s of a small export grown to its own size differ; was it exported anew?")
    if shapes(small.graph) != shapes(same.graph):
        sys.exit("big_models.py: the weights of a small export grown to its own size differ; was it exported anew?")


def write_data(path, graph, sizes):
    """Gives each weight its place in the file and writes what is not zero."""
    noise = (np.random.default_rng(1).standard_normal(1 << 24, np.float32) * np.float32(0.02)).astype(np.float16)
    position = 0
    if os.path.exists(path):
        os.remove(path)  # a patched model may have the old file under another name
    with open(path, "wb") as file:
        for index, t in enumerate(graph.initializer):
            count = int(np.prod(t.dims))
            kind = helper.tensor_dtype_to_np_dtype(t.data_type)
            length = count * kind.itemsize
            t.data_location = TensorProto.EXTERNAL
            for key, v in ("location", os.path.basename(path)), ("offset", position), ("length", length):
                t.external_data.add(key=key, value=str(v))
            file.seek(position)
            # No two weights are alike: ONNX Runtime was seen to hold equal ones once.
            if t.name in ("cos_cache", "sin_cache"):
                file.write((np.cos if t.name == "cos_cache" else np.sin)(sizes.angles()).tobytes())
            elif len(t.dims) == 1:
                file.write(np.ones(count, kind).tobytes())
            elif sizes.half:
                for at in range(0, count, noise.size):
                    file.write(np.roll(noise, 4099 * index)[:count - at].tobytes())
            else:
                file.write(np.array([index], np.int32).tobytes() if kind == np.uint8 else np.array([1e-3 * index], kind).tobytes())
            position += -(-length // PAGE) * PAGE
        file.truncate(position)


def main():
    folder, names = sys.argv[1], sys.argv[2:] or list(BIG)
    for name in names:
        fixture, sizes = BIG[name]
        source, target = os.path.join(MODELS, fixture), os.path.join(folder, name)
        small = onnx.load(os.path.join(source, "model.onnx"))
        check(small)
        os.makedirs(target, exist_ok=True)
        model = grow(small, sizes)
        write_data(os.path.join(target, "model.onnx_data"), model.graph, sizes)
        onnx.save(model, os.path.join(target, "model.onnx"))
        with open(os.path.join(source, "config.json")) as f:
            config = json.load(f)
        config.update(
            head_dim=sizes.head, hidden_size=sizes.hidden, intermediate_size=sizes.intermediate, max_position_embeddings=sizes.trained,
            num_attention_heads=sizes.heads, num_hidden_layers=sizes.layers, num_key_value_heads=sizes.kv_heads,
            rope_parameters={"rope_theta": sizes.theta, "rope_type": "default"}, vocab_size=sizes.vocabulary)
        with open(os.path.join(target, "config.json"), "w") as f:
            json.dump(config, f, indent=2)
        parameters = sum(int(np.prod(t.dims)) * (2 if t.data_type == TensorProto.UINT8 else 1) for t in model.graph.initializer if not t.name.endswith("_scales"))
        print(f"{target}: {len(model.graph.node)} nodes, {parameters / 1e9:.2f} billion numbers")


main()
