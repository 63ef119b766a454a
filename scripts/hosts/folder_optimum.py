"""A folder of Optimum's and what rope-rewrite made of it, in optimum.onnxruntime.ORTModelForCausalLM.

    folder_optimum.py ROPE_REWRITE FOLDER LIBRARY WORK

Without a method the generated tokens must be the original's, with the op library registered and without it.
"""
import os
import subprocess
import sys
import warnings

os.environ.setdefault("ORT_DISABLE_TELEMETRY", "1")
warnings.filterwarnings("ignore")

import onnxruntime
import torch
from importlib.metadata import version
from optimum.onnxruntime import ORTModelForCausalLM
from tokenizers import Tokenizer
from transformers import AutoConfig


def main(rewriter, folder, library, work):
    def patched(name, *flags):
        to = os.path.join(work, name)
        subprocess.run([rewriter, folder, "-o", to, "--force", *flags], check=True, stdout=subprocess.DEVNULL)
        return to

    same, yarn = patched("same"), patched("yarn", "--scaling", "yarn:factor=2")
    want, good = generate(folder, None), True
    for name, ops in (("with the library", library), ("by its definition", None)):
        got = generate(same, ops)
        good &= say(got == want, f"{len(got)} tokens as the original's, {name}", got)
    config = AutoConfig.from_pretrained(yarn)
    scaling = getattr(config, "rope_parameters", None) or config.rope_scaling
    good &= say(scaling["rope_type"] == "yarn" and config.max_position_embeddings == 16384, "the configuration says YaRN", dict(scaling))
    got = generate(yarn, library)
    good &= say(len(got) == len(want), "YaRN x 2 generates", got)
    sys.exit(0 if good else 1)


def say(good, what, got):
    print(f"{'pass' if good else 'FAIL'}  optimum-onnx {version('optimum-onnx')}: {what}: {got}"[:160], flush=True)
    return good


def generate(folder, library):
    options = onnxruntime.SessionOptions()
    if library:
        options.register_custom_ops_library(library)
    model = ORTModelForCausalLM.from_pretrained(folder, session_options=options)
    prompt = "<|im_start|>user\nWhy is the sky blue?<|im_end|>\n<|im_start|>assistant\n"
    ids = torch.tensor([Tokenizer.from_file(os.path.join(folder, "tokenizer.json")).encode(prompt).ids])
    return model.generate(ids, attention_mask=torch.ones_like(ids), max_new_tokens=48, do_sample=False)[0, ids.shape[1]:].tolist()


if __name__ == "__main__":
    main(*sys.argv[1:])
