"""An export in float16: weights and values between, as exporters write models that were float16 in PyTorch. The angles of
the rotation and the mean of squares of a norm stay float32, as they do there; inputs and outputs stay float32, too.

    PYTHONPATH=BUILD/quantizer fp16_smollm2.py MODEL.onnx OUT.onnx

go run ./cmd/dev/smollm2 fetch fp16 runs this.
"""
import sys

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper, shape_inference

FLOAT, HALF = TensorProto.FLOAT, TensorProto.FLOAT16


def half(tensor):
    values = np.clip(numpy_helper.to_array(tensor), -65504, 65504)  # a mask's lowest float32 is float16's lowest
    return numpy_helper.from_array(values.astype(np.float16), tensor.name)


def kept(graph):
    """Indices of the nodes that stay float32: what leads to Cos and Sin, and from Pow to the norm's Reciprocal."""
    maker = {o: i for i, node in enumerate(graph.node) for o in node.output}

    def ancestors(ops, ends):
        rest, found = [i for i, node in enumerate(graph.node) if node.op_type in ops], set()
        while rest:
            i = rest.pop()
            if i not in found:
                found.add(i)
                if graph.node[i].op_type not in ends:
                    rest.extend(maker[x] for x in graph.node[i].input if x in maker)
        return found

    return ancestors(("Cos", "Sin"), ()) | ancestors(("Reciprocal",), ("Pow",))


def main(path, out):
    model = onnx.load(path)
    graph = model.graph
    typed = shape_inference.infer_shapes(onnx.load(path, load_external_data=False)).graph
    real = {v.name for v in [*typed.value_info, *typed.input, *typed.output] if v.type.tensor_type.elem_type == FLOAT}
    constants = {t.name: t for t in graph.initializer if t.data_type == FLOAT}
    wide = kept(graph)
    nodes, casts, halves = [], {}, {}
    types = {v.name: FLOAT for v in graph.input}

    def cast(value, to):
        if (value, to) not in casts:
            casts[value, to] = f"{value}_to_{TensorProto.DataType.Name(to).lower()}"
            nodes.append(helper.make_node("Cast", [value], [casts[value, to]], casts[value, to], to=to))
        return casts[value, to]

    outputs = {v.name for v in graph.output if v.name in real}
    for i, node in enumerate(graph.node):
        to = FLOAT if i in wide else HALF
        for j, x in enumerate(node.input):
            if x in constants and to == HALF:
                halves[x] = half(constants[x])
                halves[x].name = node.input[j] = x + "_float16"
            elif x in real and x not in constants and types.get(x, HALF) != to:
                node.input[j] = cast(x, to)
        for a in node.attribute:
            if a.type == onnx.AttributeProto.TENSOR and a.t.data_type == FLOAT and to == HALF:
                a.t.CopyFrom(half(a.t))
            if node.op_type == "Cast" and a.name == "to" and a.i == FLOAT:
                a.i = to
        nodes.append(node)
        for o in node.output:
            types[o] = to
    for node in nodes:  # an output keeps its name and type: what was it is cast to it
        for names in (node.input, node.output):
            names[:] = [x + "_inner" if x in outputs and types[x] == HALF else x for x in names]
    nodes += [helper.make_node("Cast", [o + "_inner"], [o], o + "_cast", to=FLOAT) for o in sorted(outputs) if types[o] == HALF]
    read = {x for node in nodes for x in node.input}
    weights = [t for t in graph.initializer if t.name in read] + list(halves.values())
    del graph.node[:], graph.initializer[:], graph.value_info[:]
    graph.node.extend(nodes)
    graph.initializer.extend(weights)
    onnx.save(model, out, save_as_external_data=True, location=out.split("/")[-1] + ".data")


if __name__ == "__main__":
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    main(*sys.argv[1:])
