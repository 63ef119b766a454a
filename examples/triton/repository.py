"""Puts a model into a model repository of Triton Inference Server, for its backend onnxruntime.

    pip install onnx
    python repository.py long/model.onnx models --name chat --ops $(rope-rewrite ops path)

writes models/chat/config.pbtxt with every input and output, the model as version 1 and the op library. --at is where the
server sees the repository. Without --ops the model runs on its fallback.
"""
import argparse
import json
import os
import shutil

import onnx

TYPES = {"FLOAT": "FP32", "FLOAT16": "FP16", "BFLOAT16": "BF16", "DOUBLE": "FP64"}  # others have their name in both


def value(kind, v, optional):
    tensor = v.type.tensor_type
    name = onnx.TensorProto.DataType.Name(tensor.elem_type)
    # Every dimension that is not a number is free. Triton has no scalars.
    dims = [str(d.dim_value) if d.dim_value > 0 else "-1" for d in tensor.shape.dim] or ["1"]
    rest = " optional: true" if optional else ""
    return f"{kind} {{ name: {json.dumps(v.name)} data_type: TYPE_{TYPES.get(name, name)} dims: [ {', '.join(dims)} ]{rest} }}\n"


def config(name, graph, library):
    """The text of config.pbtxt. Shapes are whole (no max_batch_size): the axis of a cache is no batch that the server could
    join calls along."""
    text = f'name: {json.dumps(name)}\nbackend: "onnxruntime"\ndefault_model_filename: "model.onnx"\nmax_batch_size: 0\n'
    if library:
        text += f"model_operations {{ op_library_filename: {json.dumps(library)} }}\n"
    defaults = {t.name for t in graph.initializer}
    text += "".join(value("input", v, v.name in defaults) for v in graph.input)
    text += "".join(value("output", v, False) for v in graph.output)
    return text + "instance_group { kind: KIND_CPU }\n"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model")
    parser.add_argument("repository")
    parser.add_argument("--name", required=True)
    parser.add_argument("--ops", help="the op library")
    parser.add_argument("--at", default="/models")
    args = parser.parse_args()
    graph = onnx.load(args.model, load_external_data=False).graph
    folder = os.path.join(args.repository, args.name)
    os.makedirs(os.path.join(folder, "1"))  # fails where the model stands already
    shutil.copy(args.model, os.path.join(folder, "1", "model.onnx"))
    for data in {e.value for t in graph.initializer for e in t.external_data if e.key == "location"}:
        shutil.copy(os.path.join(os.path.dirname(args.model), data), os.path.join(folder, "1", data))
    library = None
    if args.ops:
        shutil.copy(args.ops, folder)
        library = f"{args.at}/{args.name}/{os.path.basename(args.ops)}"
    # Last, because a server that watches the repository takes the model when this is there.
    with open(os.path.join(folder, "config.pbtxt"), "w") as file:
        file.write(config(args.name, graph, library))


if __name__ == "__main__":
    main()
