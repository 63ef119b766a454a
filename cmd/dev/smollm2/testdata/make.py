"""Makes small.gguf and small.npz, its tensors as the Python package gguf reads them.

    pip install gguf==0.19.0 numpy==2.4.6 && make.py
"""
import os

import gguf
import numpy as np

here = os.path.dirname(os.path.abspath(__file__))
path = os.path.join(here, "small.gguf")
random = np.random.default_rng(5)
kinds = {"output_norm.weight": (gguf.GGMLQuantizationType.F32, (7,)), "q4_1": (gguf.GGMLQuantizationType.Q4_1, (3, 64)), "q8_0": (gguf.GGMLQuantizationType.Q8_0, (2, 96))}

writer = gguf.GGUFWriter(path, "llama")
writer.add_uint32("llama.attention.head_count", 9)  # one value of every kind that a header may hold
writer.add_int64("test.int64", -3)
writer.add_float32("test.float32", 1.5)
writer.add_bool("test.bool", True)
writer.add_array("test.texts", ["a", "bc"])
writer.add_array("test.numbers", [1, 2, 3])
for name, (kind, shape) in kinds.items():
    values = (random.standard_normal(shape) * 10).astype(np.float32)
    writer.add_tensor(name, gguf.quantize(values, kind), raw_dtype=kind)
writer.write_header_to_file()
writer.write_kv_data_to_file()
writer.write_tensors_to_file()
writer.close()

read = {t.name: gguf.dequantize(t.data, t.tensor_type).astype(np.float32) for t in gguf.GGUFReader(path).tensors}
np.savez(os.path.join(here, "small.npz"), **read)
print({k: v.shape for k, v in read.items()})
