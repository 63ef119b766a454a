"""Goldens of SmolLM2-135M-Instruct under YaRN, from transformers in float32.

    go run ./cmd/dev/smollm2 fetch && goldens_smollm2.py TESTDATA BUILD/smollm2

Writes TESTDATA/smollm2/goldens.npz. For each variant VARIANT (weights as its export has them, rope_theta as its graph):
  ids [1, 256]          tokens of one text
  places [8]            the tokens after which logits are kept
  VARIANT_top [8, 64]   the 64 most likely next tokens there under YaRN, and as many in even steps of the vocabulary
  VARIANT_plain, VARIANT_yarn4 [8, 128]   their logits; yarn: factor 4, original_max_position_embeddings 8192
  VARIANT_range [2]     largest minus smallest logit of the whole pass, plain and yarn4
"""
import json
import os
import sys

import numpy as np
import torch
from tokenizers import Tokenizer
from transformers import AutoConfig, AutoModelForCausalLM

torch.set_num_threads(2)

THETA = {"optimum": 10000.0, "dynamo18": 100000.0}  # the optimum graph has the exporter's fault, see README.md
YARN = dict(rope_type="yarn", factor=4.0, original_max_position_embeddings=8192)
PLACES = [7, 31, 63, 95, 127, 191, 223, 255]
TEXT = """The lighthouse stood on the last rock before the open sea, and for ninety years somebody had climbed its
two hundred and eleven steps every evening to light the lamp. When the lamp became electric, the keeper stayed, because
the gulls had to be counted and the wind had to be written down. Every page of the log had five columns: the hour, the
direction of the wind, its strength, the state of the sea, and remarks. The remarks were mostly empty. On the third of
March 1931 somebody had written "whale", and on the fourth "no whale". In winter the rock could be reached on perhaps ten
days of a month, and the keeper baked bread twice a week, mended nets that were not his own, and taught his daughter to
read from the log, so that the first word she could write was "north-west". She became an engineer. Much later, when she
was asked why her bridges had no ornaments, she said that she had learnt to read from a table with five columns, that the
last of them was mostly empty, and that she had never since seen a better one. The lighthouse is a hotel now. The log
lies open under glass in the dining room, and visitors turn to the page of the whale so often that a copy had to be made;
the copy, too, is already worn, and somebody has written under the fourth of March, in pencil and in a hand that nobody
knows: "whale again"."""


def weights(folder, source):
    """The checkpoint's tensors out of an export's data file."""
    spec = json.load(open(os.path.join(source, "weights.json")))
    data = np.memmap(os.path.join(folder, "model.onnx.data"), np.float32, "r")
    return data, {names[0]: (offset // 4, transposed) for offset, names, transposed in spec["tensors"] if len(names) == 1}


def model(folder, source, theta, **rope):
    values = json.load(open(os.path.join(folder, "config.json")))
    for key in ("rope_theta", "rope_scaling", "rope_parameters"):
        values.pop(key, None)
    config = AutoConfig.for_model(values.pop("model_type"), **values, rope_parameters={**dict(rope_type="default", rope_theta=theta), **rope})
    m = AutoModelForCausalLM.from_config(config, attn_implementation="sdpa").float().eval()
    data, placed = weights(folder, source)
    graph = None
    with torch.no_grad():
        for name, parameter in m.named_parameters():
            if name in placed:
                start, transposed = placed[name]
                values = data[start:start + parameter.numel()].reshape(tuple(parameter.shape)[::-1] if transposed else tuple(parameter.shape))
                parameter.copy_(torch.from_numpy(np.array(values.T if transposed else values)))
            else:  # norms are small enough to stay in the graph
                graph = graph or initializers(os.path.join(folder, "model.onnx"))
                parameter.copy_(torch.from_numpy(np.array(find(graph, name))))
    return m


def initializers(path):
    import onnx

    return {t.name: onnx.numpy_helper.to_array(t) for t in onnx.load(path, load_external_data=False).graph.initializer
            if t.data_location != onnx.TensorProto.EXTERNAL}


def find(graph, name):
    found = [v for k, v in graph.items() if k == name or k.endswith("." + name)]
    assert len(found) == 1, (name, len(found))
    return found[0]


if __name__ == "__main__":
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    source, build = os.path.join(sys.argv[1], "smollm2"), sys.argv[2]
    tokens = Tokenizer.from_file(os.path.join(source, "tokenizer.json")).encode(TEXT).ids[:256]
    assert len(tokens) == 256, len(tokens)
    ids, out = torch.tensor([tokens]), dict(ids=np.array([tokens], np.int64), places=np.array(PLACES, np.int64))
    for variant, theta in THETA.items():
        logits = {}
        for method, rope in dict(plain={}, yarn4=YARN).items():
            with torch.no_grad():
                m = model(os.path.join(build, variant), os.path.join(source, variant), theta, **rope)
                logits[method] = m(input_ids=ids, use_cache=False).logits[0].numpy()
        kept = logits["yarn4"][PLACES]
        steps = np.arange(64) * (kept.shape[1] // 64) + 1
        top = np.concatenate([np.argsort(-kept, axis=1)[:, :64], np.tile(steps, (len(PLACES), 1))], 1)
        out[variant + "_top"] = top.astype(np.int64)
        for method, values in logits.items():
            out[f"{variant}_{method}"] = np.take_along_axis(values[PLACES], top, 1)
        out[variant + "_range"] = np.array([np.ptp(v) for v in logits.values()], np.float32)
        print(variant, "range", out[variant + "_range"], "YaRN moves logits by up to", np.abs(logits["yarn4"] - logits["plain"]).max())
    np.savez_compressed(os.path.join(source, "goldens.npz"), **out)
