"""Routes that change what another route wrote: optimisers, converters, quantisers."""
import contextlib
import io
import os
import shutil
import sys

import numpy as np
import onnx
import onnxruntime

from architectures import ARCHITECTURES, HIDDEN, VOCABULARY
from models import Skip
from routes import APPROXIMATE, route

SOURCES = ["ts17", "ts17-cache", "dynamo18"]


def derived(change, sources=SOURCES, approximate=False):
    """Registers change(source, target, architecture) for every source, as SOURCE+CHANGE."""
    def register(f):
        for source in sources:
            name = f"{source}+{change}"
            if approximate:
                APPROXIMATE.add(name)
            route(name, source=source, f=f)(run)
        return f
    return register


def run(cache, name, folder, source, f):
    origin = os.path.join(cache, f"{name}__{source}")
    if not os.path.exists(os.path.join(origin, "model.onnx")):
        raise Skip(f"there is no {source} export")
    target = os.path.join(folder, "model.onnx")
    if not os.path.exists(target):
        with contextlib.redirect_stdout(io.StringIO()):
            f(os.path.join(origin, "model.onnx"), target, name)
    for leftover in os.listdir(folder):
        if leftover != "model.onnx":
            os.remove(os.path.join(folder, leftover))
    reference = os.path.join(origin, "reference.npz")
    return dict(np.load(reference)) if os.path.exists(reference) else None


@derived("ort")
def optimised(source, target, name):
    """ONNX Runtime's own graph optimisations, saved."""
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_ENABLE_EXTENDED
    options.optimized_model_filepath = target
    onnxruntime.InferenceSession(source, options, providers=["CPUExecutionProvider"])


@derived("fused")
def fused(source, target, name):
    """onnxruntime.transformers.optimizer, which fuses attention and rotation where it knows them."""
    # Its modules import one another by their bare names.
    sys.path.insert(0, os.path.join(os.path.dirname(onnxruntime.__file__), "transformers"))
    from onnxruntime.transformers.optimizer import optimize_model
    heads, hidden = 4, HIDDEN
    kind = "bert" if ARCHITECTURES[name].head in ("masked", "encoder") else "gpt2"
    m = optimize_model(source, model_type=kind, num_heads=heads, hidden_size=hidden, opt_level=0, only_onnxruntime=False)
    m.save_model_to_file(target)


@derived("onnxscript", ["dynamo18", "dynamo18-nocache"])
def onnxscript_fused(source, target, name):
    """onnxscript's optimize_for_ort: MultiHeadAttention, GroupQueryAttention, RotaryEmbedding."""
    import onnx_ir
    from onnxscript.rewriter.ort_fusions import optimize_for_ort
    model, _ = optimize_for_ort(onnx_ir.load(source))
    onnx_ir.save(model, target)


@derived("slim")
def slimmed(source, target, name):
    import onnxslim
    onnxslim.slim(source, target)


@derived("sim", ["ts17", "ts17-cache"])
def simplified(source, target, name):
    import onnxsim
    model, _ = onnxsim.simplify(source)
    onnx.save(model, target)


@derived("static", ["ts17"])
def static(source, target, name):
    """Sizes fixed to those of the reference, and everything that follows from them folded."""
    import onnxsim
    model, _ = onnxsim.simplify(source, overwrite_input_shapes=dict(input_ids=[2, 32], attention_mask=[2, 32]))
    onnx.save(model, target)


@derived("fp16", approximate=True)
def halved(source, target, name):
    from onnxruntime.transformers.float16 import convert_float_to_float16
    onnx.save(convert_float_to_float16(onnx.load(source)), target)


@derived("int4", approximate=True)
def int4(source, target, name, **more):
    from onnxruntime.quantization.matmul_nbits_quantizer import MatMulNBitsQuantizer
    q = MatMulNBitsQuantizer(onnx.load(source), block_size=32, is_symmetric=True, **more)
    q.process()
    onnx.save(q.model.model, target)


@derived("qdq4", ["ts17-cache"], approximate=True)
def qdq4(source, target, name):
    from onnxruntime.quantization import QuantFormat
    from onnxruntime.quantization.matmul_nbits_quantizer import DefaultWeightOnlyQuantConfig, MatMulNBitsQuantizer
    config = DefaultWeightOnlyQuantConfig(block_size=32, is_symmetric=True, quant_format=QuantFormat.QDQ, op_types_to_quantize=("MatMul",))
    model = onnx.version_converter.convert_version(onnx.load(source), 21)
    q = MatMulNBitsQuantizer(model, algo_config=config)
    q.process()
    onnx.save(q.model.model, target)


@derived("int8", approximate=True)
def int8(source, target, name):
    """Weights of eight bits, activations quantised as they come (DynamicQuantizeLinear, MatMulInteger)."""
    from onnxruntime.quantization import QuantType, quantize_dynamic
    quantize_dynamic(source, target, weight_type=QuantType.QInt8)


@derived("qdq8", ["ts17"], approximate=True)
def qdq8(source, target, name, **more):
    """Weights and activations quantised with ranges measured beforehand."""
    from onnxruntime.quantization import CalibrationDataReader, QuantFormat, QuantType, quantize_static

    class Reader(CalibrationDataReader):
        def __init__(self):
            rng = np.random.default_rng(5)
            self.rows = [dict(input_ids=rng.integers(4, VOCABULARY, (2, 32)), attention_mask=np.ones((2, 32), np.int64)) for _ in range(4)]

        def get_next(self):
            return self.rows.pop() if self.rows else None

    quantize_static(source, target, Reader(), quant_format=QuantFormat.QDQ, weight_type=QuantType.QInt8, per_channel=True,
                    op_types_to_quantize=["MatMul", "Gemm"], **more)


@derived("qdq8-angles", ["ts17"], approximate=True)
def qdq8_angles(source, target, name):
    """The same with angles in float: in 8 bits, tokens behind those of the calibration have no positions of their own."""
    model = onnx.load(source)
    producers = {o: n for n in model.graph.node for o in n.output}
    behind, products = [n.input[0] for n in model.graph.node if n.op_type in ("Cos", "Sin")], set()
    while behind:
        n = producers.pop(behind.pop(), None)
        if n is not None:
            behind.extend(n.input)
            products |= {n.name} if n.op_type == "MatMul" else set()
    if not products:
        raise Skip("no product makes its angles: as +qdq8")
    qdq8(source, target, name, nodes_to_exclude=sorted(products))
