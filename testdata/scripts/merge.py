"""Merge two exports into one decoder with an If, as Optimum's decoder_model_merged has it; needs onnx and numpy.

    merge.py WITH_PAST.onnx WITHOUT.onnx OUT.onnx

The input use_cache_branch chooses: then_branch is the export with a cache, else_branch the one without, which gives its
rotated keys and its values as present.N.key|value. Weights that both have stand once, in the main graph.
"""
import sys

import onnx
from onnx import TensorProto, helper


def presents(graph, outputs):
    """Make keys and values of each attention outputs of a graph without a cache."""
    producer = {o: n for n in graph.node for o in n.output}
    readers = lambda v: [n for n in graph.node if v in n.input]
    for layer, softmax in enumerate(n for n in graph.node if n.op_type == "Softmax"):
        def back(value, op):  # the nearest node of that op, along first inputs
            while producer[value].op_type != op:
                value = producer[value].input[0]
            return producer[value]
        def forward(value):
            while True:
                node = next(n for n in readers(value) if n.op_type in ("MatMul", "Where", "IsNaN"))
                if node.op_type == "MatMul":
                    return node
                value = node.output[0] if node.op_type == "Where" else readers(node.output[0])[0].output[0]
        key, value = back(softmax.input[0], "MatMul").input[1], forward(softmax.output[0]).input[1]
        while producer[key].op_type in ("Transpose", "Mul", "Reshape"):
            if producer[key].op_type == "Transpose" and list(producer[key].attribute[0].ints) == [0, 2, 1, 3]:
                break
            key = producer[key].input[0]
        for kind, name in (("key", key), ("value", value)):
            producer[name].output[list(producer[name].output).index(name)] = new = f"present.{layer}.{kind}"
            for n in graph.node:
                n.input[:] = [new if i == name else i for i in n.input]
            graph.output.append(next(o for o in outputs if o.name == new))


def merge(with_past, without):
    shared, main = {}, []
    for model in (with_past, without):
        names = {}
        for t in model.graph.initializer:
            key = (tuple(t.dims), t.data_type, onnx.numpy_helper.to_array(t).tobytes())
            if key not in shared:
                shared[key] = f"shared.{len(main)}"
                main.append(onnx.numpy_helper.from_array(onnx.numpy_helper.to_array(t), shared[key]))
            names[t.name] = shared[key]
        for n in model.graph.node:
            n.input[:] = [names.get(i, i) for i in n.input]
        del model.graph.initializer[:]
    inputs = list(with_past.graph.input)
    for model in (with_past, without):
        del model.graph.input[:]
        del model.graph.value_info[:]
    outputs = list(with_past.graph.output)
    order = [o.name for o in outputs]
    ordered = sorted(without.graph.output, key=lambda o: order.index(o.name))
    del without.graph.output[:]
    without.graph.output.extend(ordered)
    choose = helper.make_node("If", ["use_cache_branch"], order, name="branches", then_branch=with_past.graph, else_branch=without.graph)
    flag = helper.make_tensor_value_info("use_cache_branch", TensorProto.BOOL, [1])
    graph = helper.make_graph([choose], "merged", inputs + [flag], outputs, main)
    return helper.make_model(graph, opset_imports=with_past.opset_import, ir_version=with_past.ir_version)


if __name__ == "__main__":
    with_past, without = onnx.load(sys.argv[1]), onnx.load(sys.argv[2])
    presents(without.graph, with_past.graph.output)
    onnx.save(merge(with_past, without), sys.argv[3])
    print("wrote", sys.argv[3])
