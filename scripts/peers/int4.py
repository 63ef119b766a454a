"""A model with 4-bit weights as ONNX Runtime GenAI's builder makes them for a CPU: ONNX Runtime's own quantizer, blocks
of 32, symmetric, activations in 8 bits (accuracy level 4).

    PYTHONPATH=BUILD/quantizer int4.py MODEL.onnx OUT.onnx
"""
import logging
import os
import sys

import numpy as np
import onnx
from onnx import numpy_helper
from onnxruntime.quantization.matmul_nbits_quantizer import MatMulNBitsQuantizer


def turned_weights(model):
    """Weights that a node transposes before a MatMul, here the embedding that is the last layer too, become weights of
    their own: the quantizer leaves the others as they are."""
    weights = {t.name: t for t in model.graph.initializer}
    for node in [n for n in model.graph.node if n.op_type == "Transpose" and n.input[0] in weights]:
        order = next((a.ints for a in node.attribute if a.name == "perm"), None)
        values = numpy_helper.to_array(weights[node.input[0]])
        model.graph.initializer.append(numpy_helper.from_array(np.ascontiguousarray(values.transpose(order)), node.output[0]))
        model.graph.node.remove(node)


if __name__ == "__main__":
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    for path in (sys.argv[2], sys.argv[2] + ".data"):
        if os.path.exists(path):
            os.remove(path)  # a data file that exists would be appended to
    logging.disable(logging.INFO)  # two lines for every node
    model = onnx.load(sys.argv[1])
    turned_weights(model)
    quantizer = MatMulNBitsQuantizer(model, block_size=32, is_symmetric=True, accuracy_level=4)
    quantizer.process()
    quantizer.model.save_model_to_file(sys.argv[2], use_external_data_format=True)
    os.chmod(sys.argv[2] + ".data", 0o644)
