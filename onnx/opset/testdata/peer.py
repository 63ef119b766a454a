#!/usr/bin/env python3
"""Writes peer/: small models of old versions, the same as the Python package onnx raises them
(onnx.version_converter), and what they are fed with, for peer_test.go. It runs both wherever
it is run: ONNX Runtime's numbers are not the same on every processor.

    pip install onnx==1.23.2 onnxruntime==1.31.1 numpy && python3 peer.py

Cases that version_converter does not convert, or not to what runs, are printed and left out,
and so are those where it changes what the model computes. With 1.23.2 these are Hardmax but
along the last axis, and linear Upsample and Resize before version 11.
"""
import pathlib

import numpy as np
import onnx
import onnx.version_converter
import onnxruntime
from onnx import TensorProto, helper

PLACE = pathlib.Path(__file__).parent / "peer"
TARGETS = (26, 23, 21, 18, 17, 13)  # the first that works
SHAPE = (2, 3, 4, 6)
DRAWN = np.random.default_rng(7)


def node(op, inputs=("x",), outputs=("y",), **attributes):
    return helper.make_node(op, list(inputs), list(outputs), name="the " + op, **attributes)


def model(version, nodes, shape=SHAPE, outputs=("y",), **constants):
    graph = helper.make_graph(
        nodes,
        "peer",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, shape)],
        [helper.make_tensor_value_info(name, onnx.TensorProto.FLOAT, None) for name in outputs],
        [onnx.numpy_helper.from_array(np.asarray(value), name) for name, value in constants.items()],
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", version)], ir_version=4 if version < 15 else 8)


def norm(version, **attributes):
    parts = {name: DRAWN.uniform(0.5, 2, 3).astype(np.float32) for name in ("scale", "bias", "mean", "var")}
    return model(version, [node("BatchNormalization", ["x", *parts], **attributes)], **parts)


def cases():
    for op in ("Softmax", "LogSoftmax", "Hardmax"):
        yield f"{op}_default", model(9, [node(op)])
        for axis in (1, 3, -2):
            yield f"{op}_axis{axis}", model(11, [node(op, axis=axis)])
    for op in ("L1", "L2", "LogSum", "LogSumExp", "Max", "Mean", "Min", "Prod", "Sum", "SumSquare"):
        yield f"Reduce{op}", model(11, [node("Reduce" + op, axes=[-1, 1], keepdims=0)])
        yield f"Reduce{op}_all", model(11, [node("Reduce" + op, keepdims=1)])
    yield "Squeeze", model(11, [node("Squeeze", axes=[0, -3])], (1, 3, 1, 4, 2))
    yield "Squeeze_all", model(11, [node("Squeeze")], (1, 3, 1, 4))
    yield "Unsqueeze", model(11, [node("Unsqueeze", axes=[0, -1])])
    three = ("a", "b", "c")
    yield "Split", model(11, [node("Split", outputs=three, axis=3)], outputs=three)
    yield "Split_sizes", model(11, [node("Split", outputs=three, axis=3, split=[1, 3, 2])], outputs=three)
    yield "Split_13", model(13, [node("Split", outputs=three, axis=1)], outputs=three)
    yield "Slice", model(9, [node("Slice", starts=[1, -3], ends=[3, 1000], axes=[2, 3])])
    yield "Slice_no_axes", model(9, [node("Slice", starts=[0, 1], ends=[1, -1])])
    yield "TopK", model(9, [node("TopK", outputs=("y", "places"), k=3, axis=3)])
    yield "Dropout", model(7, [node("Dropout", ratio=0.3)])
    yield "Dropout_11", model(11, [node("Dropout")])
    yield "Clip", model(9, [node("Clip", min=-0.5, max=0.75)])
    yield "Pad", model(10, [node("Pad", pads=[0, 0, 1, 2, 0, 1, 0, 0], value=1.5)])
    yield "Pad_edge", model(10, [node("Pad", pads=[0, 0, 1, 2, 0, 1, 0, 0], mode="edge")])
    scales = [1.0, 1.0, 2.0, 3.0]
    for mode in ("nearest", "linear"):
        yield f"Upsample_7_{mode}", model(7, [node("Upsample", scales=scales, mode=mode)])
        yield f"Upsample_9_{mode}", model(9, [node("Upsample", ["x", "scales"], mode=mode)], scales=np.float32(scales))
        yield f"Resize_10_{mode}", model(10, [node("Resize", ["x", "scales"], mode=mode)], scales=np.float32(scales))
    yield "BatchNormalization_7", norm(7, spatial=1)
    yield "BatchNormalization_9", norm(9, epsilon=0.1)
    yield "Scatter", model(9, [node("Scatter", ["x", "at", "new"], axis=1)], at=np.int64([[[[2]]]]), new=np.float32([[[[9]]]]))
    yield "GridSample", model(16, [node("GridSample", ["x", "grid"], mode="bicubic")], grid=DRAWN.uniform(-1, 1, (2, 3, 3, 2)).astype(np.float32))
    yield "DFT", model(17, [node("DFT", axis=2)], (2, 3, 4, 1))
    yield "MaxPool", model(8, [node("MaxPool", kernel_shape=[2, 3], strides=[1, 2])])


def run(proto, feeds):
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    return onnxruntime.InferenceSession(proto.SerializeToString(), options).run(None, feeds)


def converted(proto, feeds):
    """The newest version that version_converter raises the model to, the model and its outputs there."""
    why = []
    for to in TARGETS:
        try:
            raised = onnx.version_converter.convert_version(proto, to)
            return to, raised, run(raised, feeds)
        except Exception as error:  # of a package without types of its own
            why.append(f"{to}: " + str(error).strip().splitlines()[0][:90])
    raise RuntimeError("; ".join(why))


def main():
    PLACE.mkdir(exist_ok=True)
    for old in PLACE.glob("*.onnx"):
        old.unlink()
    arrays, lines = {}, []
    for name, proto in cases():
        shape = [d.dim_value for d in proto.graph.input[0].type.tensor_type.shape.dim]
        x = DRAWN.standard_normal(shape).astype(np.float32)
        try:
            to, raised, outputs = converted(proto, {"x": x})
        except RuntimeError as error:
            print(f"left out: {name}: {error}")
            continue
        apart = max(np.abs(a - b).max() for a, b in zip(run(proto, {"x": x}), outputs))
        if apart > 1e-3:  # NaN is not
            print(f"left out: {name}: raised to {to} it gives other numbers, off by {apart:g}")
            continue
        (PLACE / f"{name}.onnx").write_bytes(proto.SerializeToString())
        (PLACE / f"{name}.raised.onnx").write_bytes(raised.SerializeToString())
        arrays[name] = x
        lines.append(f"{name} {proto.opset_import[0].version} {to}\n")
    np.savez_compressed(PLACE / "x.npz", **arrays)
    (PLACE / "peer.txt").write_text("".join(lines))


if __name__ == "__main__":
    main()
