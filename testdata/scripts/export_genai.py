"""Export the small models by ONNX Runtime GenAI's model builder.

    export_genai.py OUT [ARCHITECTURE ...] [--precision fp32|fp16|int4]

Writes OUT/models/ARCHITECTURE__genai-PRECISION/{model.onnx,config.json,genai_config.json}. Reads the weights that
export_dynamo.py left in OUT/weights, or makes them.
"""
import argparse
import os
import runpy
import shutil
import sys
import tempfile

import onnx
import onnxruntime_genai
from tokenizers import Tokenizer, models
from transformers import PreTrainedTokenizerFast

import small

BUILDER = os.path.join(os.path.dirname(onnxruntime_genai.__file__), "models", "builder.py")


def checkpoint(name, out, folder, **override):
    """What the builder reads: a checkpoint with its configuration and a tokenizer, here of 128 made-up words."""
    model = small.model(name, out, **override)
    model.save_pretrained(folder)
    words = ["<pad>", "<s>", "</s>", "<unk>"] + [f"t{i}" for i in range(4, small.SHAPE["vocab_size"])]
    tokenizer = Tokenizer(models.WordLevel({w: i for i, w in enumerate(words)}, unk_token="<unk>"))
    PreTrainedTokenizerFast(tokenizer_object=tokenizer, pad_token="<pad>", bos_token="<s>", eos_token="</s>",
                            unk_token="<unk>").save_pretrained(folder)


def export(name, out, precision):
    folder = os.path.join(out, "models", f"{name}__genai-{precision}")
    os.makedirs(folder, exist_ok=True)
    with tempfile.TemporaryDirectory() as work:
        source, built = os.path.join(work, "checkpoint"), os.path.join(work, "built")
        checkpoint(name, out, source)
        arguments = sys.argv
        sys.argv = ["builder.py", "-m", source, "-i", source, "-o", built, "-p", precision,
                    "-e", "cuda" if precision == "fp16" else "cpu",  # the builder keeps float16 for devices
                    "-c", os.path.join(work, "cache")]
        sys.path.insert(0, os.path.dirname(BUILDER))
        try:
            runpy.run_path(BUILDER, run_name="__main__")
        finally:
            sys.argv = arguments
            sys.path.pop(0)
        onnx.save(onnx.load(os.path.join(built, "model.onnx")), os.path.join(folder, "model.onnx"))  # weights inside
        shutil.copy(os.path.join(built, "genai_config.json"), folder)
        shutil.copy(os.path.join(source, "config.json"), folder)
    print("wrote", folder)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("out")
    parser.add_argument("architectures", nargs="*", default=["llama"])
    parser.add_argument("--precision", default="fp32", choices=["fp32", "fp16", "int4"])
    a = parser.parse_args()
    for name in a.architectures:
        export(name, a.out, a.precision)
