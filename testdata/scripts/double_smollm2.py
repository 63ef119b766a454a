"""An export computed in float64 with the weights that it has, whatever type they are stored in.

    PYTHONPATH=BUILD/quantizer double_smollm2.py MODEL.onnx OUT.onnx

It is what the errors of the export and of its rewrite are measured against: 16-bit and 4-bit weights (MatMulNBits) become
the same numbers in float64, and so does every value between them. Inputs and outputs keep their types; the caches that
are passed on are rounded to float32 by that. go run ./cmd/dev/smollm2 check --reference OUT.onnx uses it.
"""
import sys

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

REAL = (TensorProto.FLOAT, TensorProto.FLOAT16)


def widen(tensor):
    """A constant in float64, others as they are."""
    if tensor.data_type not in REAL:
        return tensor
    return numpy_helper.from_array(numpy_helper.to_array(tensor).astype(np.float64), tensor.name)


def dequantized(node, constants):
    """The weight [K, N] of a MatMulNBits: 4-bit numbers, two in a byte, low half first, in blocks along K."""
    a = {x.name: helper.get_attribute_value(x) for x in node.attribute}
    k, n, block = a["K"], a["N"], a["block_size"]
    if a["bits"] != 4 or len([i for i in node.input if i]) != 3:
        sys.exit(f"{node.name}: only symmetric 4-bit weights are known here")
    packed = numpy_helper.to_array(constants[node.input[1]]).reshape(n, -1)
    scales = numpy_helper.to_array(constants[node.input[2]]).reshape(n, -1).astype(np.float64)
    values = np.stack([packed & 15, packed >> 4], axis=-1).reshape(n, -1).astype(np.float64) - 8
    return (values * np.repeat(scales, block, axis=1))[:, :k].T


def main(path, out):
    model = onnx.load(path)
    graph = model.graph
    constants = {t.name: t for t in graph.initializer}
    wide, new = {}, []
    for node in graph.node:
        if node.op_type == "MatMulNBits":
            name = node.input[1] + "_float64"
            wide[name] = numpy_helper.from_array(np.ascontiguousarray(dequantized(node, constants)), name)
            node = helper.make_node("MatMul", [node.input[0], name], node.output, node.name)
        elif node.domain not in ("", "ai.onnx"):
            sys.exit(f"{node.name}: {node.op_type} is not known here")
        for x in node.attribute:
            if x.type == onnx.AttributeProto.TENSOR:
                x.t.CopyFrom(widen(x.t))
            elif x.type == onnx.AttributeProto.GRAPH:
                sys.exit(f"{node.name}: sub-graphs are not known here")
            elif node.op_type == "Cast" and x.name == "to" and x.i in REAL:
                x.i = TensorProto.DOUBLE
        new.append(node)
    read = {i for node in new for i in node.input}
    for t in graph.initializer:
        if t.name in read:
            wide[t.name] = widen(t)
    inputs = {v.name: v.type.tensor_type.elem_type for v in graph.input if v.type.tensor_type.elem_type in REAL}
    outputs = {v.name: v.type.tensor_type.elem_type for v in graph.output if v.type.tensor_type.elem_type in REAL}
    for node in new:
        node.input[:] = [i + "_float64" if i in inputs else i for i in node.input]
        node.output[:] = [o + "_float64" if o in outputs else o for o in node.output]
        node.input[:] = [i + "_float64" if i in outputs else i for i in node.input]
    before = [helper.make_node("Cast", [n], [n + "_float64"], to=TensorProto.DOUBLE) for n in inputs]
    after = [helper.make_node("Cast", [n + "_float64"], [n], to=t) for n, t in outputs.items()]
    del graph.node[:], graph.initializer[:], graph.value_info[:]
    graph.node.extend(before + new + after)
    graph.initializer.extend(wide.values())
    onnx.save(model, out, save_as_external_data=True, location=out.split("/")[-1] + ".data")


if __name__ == "__main__":
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    main(*sys.argv[1:])
