"""An export with 4-bit weights, by ONNX Runtime's own quantizer (blocks of 32, symmetric, float32 activations).

    PYTHONPATH=BUILD/quantizer int4_smollm2.py MODEL.onnx OUT.onnx

Every MatMul with a constant weight becomes a com.microsoft MatMulNBits. scripts/fetch-python.sh quantizer fetches what this
imports; go run ./cmd/dev/smollm2 fetch int4 runs both.
"""
import logging
import sys

import onnx
from onnxruntime.quantization.matmul_nbits_quantizer import MatMulNBitsQuantizer

if __name__ == "__main__":
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    logging.disable(logging.INFO)  # two lines for every node
    quantizer = MatMulNBitsQuantizer(onnx.load(sys.argv[1]), block_size=32, is_symmetric=True, accuracy_level=1)
    quantizer.process()
    quantizer.model.save_model_to_file(sys.argv[2], use_external_data_format=True)
