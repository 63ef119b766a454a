"""Make models as optimizers leave them out of the exports of testdata; needs onnx, onnxruntime 1.31.1, onnxscript 0.7.2,
onnxsim 0.8.1.

    optimize.py TESTDATA

Writes TESTDATA/models:
    llama__optimum-ort          ONNX Runtime's own optimizer at its extended level (optimized_model_filepath)
    llama__optimum-int8         onnxruntime.quantization's dynamic quantisation: DynamicQuantizeLinear and MatMulInteger
    gpt_neox__dynamo18-fusions  onnxscript's fusions for ONNX Runtime: com.microsoft MultiHeadAttention and RotaryEmbedding
    qwen3__ts17-static          sizes fixed to those of the goldens and everything that follows from them folded, if there
                                is qwen3__ts17 (export_nocache.py TESTDATA ts17 qwen3; it is not kept)
"""
import os
import shutil
import sys

import onnx
import onnx_ir
import onnxruntime
from onnxruntime.quantization import QuantType, quantize_dynamic
from onnxscript.rewriter.ort_fusions import optimize_for_ort


def by_runtime(source, target):
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_ENABLE_EXTENDED
    options.optimized_model_filepath = target
    onnxruntime.InferenceSession(source, options, providers=["CPUExecutionProvider"])


def by_quantizer(source, target):
    quantize_dynamic(source, target, weight_type=QuantType.QUInt8)


def by_fusions(source, target):
    model, _ = optimize_for_ort(onnx_ir.load(source))
    onnx.save(onnx_ir.to_proto(model), target)


def by_simplifier(source, target):
    import onnxsim
    model, _ = onnxsim.simplify(source, overwrite_input_shapes=dict(input_ids=[2, 48], attention_mask=[2, 48]))
    onnx.save(model, target)


def make(root, export, suffix, how):
    source, folder = (os.path.join(root, "models", name) for name in (export, f"{export}-{suffix}"))
    os.makedirs(folder, exist_ok=True)
    how(os.path.join(source, "model.onnx"), os.path.join(folder, "model.onnx"))
    shutil.copy(os.path.join(source, "config.json"), folder)
    print("wrote", folder)


if __name__ == "__main__":
    make(sys.argv[1], "llama__optimum", "ort", by_runtime)
    make(sys.argv[1], "llama__optimum", "int8", by_quantizer)
    make(sys.argv[1], "gpt_neox__dynamo18", "fusions", by_fusions)
    if os.path.isdir(os.path.join(sys.argv[1], "models", "qwen3__ts17")):
        make(sys.argv[1], "qwen3__ts17", "static", by_simplifier)
