"""llama.cpp by its own library, as an npm package ships it.

    llama.py LIBRARIES quantize IN.gguf OUT.gguf f32|f16|q8_0|q4_0
    llama.py LIBRARIES time MODEL.gguf f16|q8_0 LENGTH TOKENS THREADS CAPACITY

time measures with flash attention and a cache of that type; llama.cpp's own choice is f16. The parameters' places in
llama.cpp's structures are those of the pinned version; the defaults there are compared with the known ones first.
"""
import ctypes
import glob
import os
import sys

import numpy as np

from measure import measure, prompt

FILE_TYPES = {"f32": 0, "f16": 1, "q4_0": 2, "q8_0": 7}
CACHE_TYPES = {"f16": 1, "q8_0": 8}
BATCH, UBATCH = 2048, 512


class Parameters(ctypes.Structure):
    """Any of the structures of parameters; the rest of the numbers is room."""

    _fields_ = [("numbers", ctypes.c_int32 * 64)]


class Batch(ctypes.Structure):
    _fields_ = [("tokens", ctypes.c_int32), ("pointers", ctypes.c_void_p * 6)]


# llama_context_params, up to the types of the cache: place and default.
CONTEXT = {"n_ctx": (0, 512), "n_batch": (1, BATCH), "n_ubatch": (2, UBATCH), "n_seq_max": (3, 1), "n_threads": (7, 4),
           "n_threads_batch": (8, 4), "flash_attn_type": (13, -1), "type_k": (26, 1), "type_v": (27, 1)}
# llama_model_quantize_params
QUANTIZE = {"nthread": (0, 0), "ftype": (1, 7), "allow_requantize": (4, 256)}  # 256 is the flag after it


def defaults(function, places):
    function.restype = Parameters
    parameters = function()
    seen = {name: parameters.numbers[place] for name, (place, _) in places.items()}
    wanted = {name: default for name, (_, default) in places.items()}
    if seen != wanted:
        sys.exit(f"llama.py: this version of llama.cpp has other parameters: {seen} instead of {wanted}")
    return parameters


def put(parameters, places, **values):
    for name, value in values.items():
        parameters.numbers[places[name][0]] = value


class Llama:
    def __init__(self, folder):
        backends = ctypes.CDLL(glob.glob(os.path.join(folder, "libggml.v*.so"))[0])
        backends.ggml_backend_load_all_from_path(folder.encode())
        self.api = ctypes.CDLL(glob.glob(os.path.join(folder, "libllama.v*.so"))[0])
        for name in ("llama_model_load_from_file", "llama_init_from_model", "llama_get_memory"):
            getattr(self.api, name).restype = ctypes.c_void_p
        self.api.llama_get_logits_ith.restype = ctypes.POINTER(ctypes.c_float)
        self.api.llama_batch_get_one.restype = Batch

    def quantize(self, source, out, kind):
        parameters = defaults(self.api.llama_model_quantize_default_params, QUANTIZE)
        put(parameters, QUANTIZE, ftype=FILE_TYPES[kind], allow_requantize=257)
        if self.api.llama_model_quantize(source.encode(), out.encode(), ctypes.byref(parameters)) != 0:
            sys.exit(f"llama.py: llama.cpp did not write {out}")

    def time(self, path, cache, length, tokens, threads, capacity):
        self.api.llama_model_default_params.restype = Parameters
        self.api.llama_model_load_from_file.argtypes = [ctypes.c_char_p, Parameters]
        model = self.api.llama_model_load_from_file(path.encode(), self.api.llama_model_default_params())
        parameters = defaults(self.api.llama_context_default_params, CONTEXT)
        put(parameters, CONTEXT, n_ctx=capacity, n_threads=threads, n_threads_batch=threads, flash_attn_type=1, type_k=CACHE_TYPES[cache],
            type_v=CACHE_TYPES[cache])
        self.api.llama_init_from_model.argtypes = [ctypes.c_void_p, Parameters]
        context = ctypes.c_void_p(self.api.llama_init_from_model(model, parameters))
        self.api.llama_model_get_vocab.restype = ctypes.c_void_p
        vocabulary = self.api.llama_vocab_n_tokens(ctypes.c_void_p(self.api.llama_model_get_vocab(ctypes.c_void_p(model))))

        def forward(ids):
            for at in range(0, len(ids), BATCH):
                piece = (ctypes.c_int32 * len(ids[at : at + BATCH]))(*ids[at : at + BATCH])
                if self.api.llama_decode(context, self.api.llama_batch_get_one(piece, len(piece))) != 0:
                    sys.exit("llama.py: llama_decode failed")
            logits = self.api.llama_get_logits_ith(context, -1)
            return int(np.ctypeslib.as_array(logits, (vocabulary,)).argmax())

        forward(prompt(16))  # the first call is slower than the others
        self.api.llama_memory_clear(ctypes.c_void_p(self.api.llama_get_memory(context)), True)
        measure(length, tokens, forward)


if __name__ == "__main__":
    llama = Llama(sys.argv[1])
    if sys.argv[2] == "quantize":
        llama.quantize(*sys.argv[3:])
    else:
        llama.time(*sys.argv[3:5], *map(int, sys.argv[5:]))
