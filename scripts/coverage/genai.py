"""ONNX Runtime GenAI's model builder, run on a folder of the model's own."""
import contextlib
import io
import os
import runpy
import shutil
import sys
import tempfile
from unittest import mock

import onnx
import torch
from transformers import AutoConfig

import models
from architectures import ARCHITECTURES, VOCABULARY
from models import Skip
from routes import APPROXIMATE, route

APPROXIMATE |= {"genai-int4", "genai-fp16"}


def tokenizer(folder):
    from tokenizers import Tokenizer, models as kinds, pre_tokenizers
    from transformers import PreTrainedTokenizerFast
    words = {**{w: i for i, w in enumerate(("<pad>", "<s>", "</s>", "<unk>"))}, **{f"t{i}": i for i in range(4, VOCABULARY)}}
    t = Tokenizer(kinds.WordLevel(words, unk_token="<unk>"))
    t.pre_tokenizer = pre_tokenizers.Whitespace()
    PreTrainedTokenizerFast(tokenizer_object=t, pad_token="<pad>", bos_token="<s>", eos_token="</s>", unk_token="<unk>").save_pretrained(folder)


def as_before(load):
    """Bases of the rotation by kind of layer are read under the names that transformers 4 had for them."""
    def from_pretrained(*arguments, **more):
        config = load(*arguments, **more)
        bases = getattr(config, "rope_parameters", None)
        if isinstance(bases, dict) and "full_attention" in bases:
            config.rope_theta, config.rope_local_base_freq = (bases[k]["rope_theta"] for k in ("full_attention", "sliding_attention"))
            config.rope_parameters = bases["full_attention"]
        return config
    return from_pretrained


def vocabulary(name):
    """A size of the vocabulary that no other layer is as wide as: the builder takes such a layer for the last one."""
    wide = {m.out_features for n, m in models.build(name, "eager").named_modules() if isinstance(m, torch.nn.Linear) and n != "lm_head"}
    return VOCABULARY if VOCABULARY not in wide else max(wide | {VOCABULARY}) + 8


@route("genai-fp32", precision="fp32")
@route("genai-int4", precision="int4")
@route("genai-fp16", precision="fp16", provider="cuda")
def build(_, name, folder, precision, provider="cpu"):
    if ARCHITECTURES[name].head != "causal" or not ARCHITECTURES[name].rotary:
        raise Skip("the builder is for decoders")
    import onnxruntime_genai
    code = os.path.join(os.path.dirname(onnxruntime_genai.__file__), "models")
    with mock.patch.dict(ARCHITECTURES[name].values, vocab_size=vocabulary(name)):
        model = models.build(name, "eager" if name == "gemma2" else "sdpa")
    if not os.path.exists(os.path.join(folder, "model.onnx")):
        with tempfile.TemporaryDirectory() as work:
            checkpoint, out = os.path.join(work, "checkpoint"), os.path.join(work, "out")
            model.save_pretrained(checkpoint)
            tokenizer(checkpoint)
            arguments = list(sys.argv)
            sys.argv = ["builder.py", "-m", checkpoint, "-i", checkpoint, "-o", out, "-p", precision, "-e", provider, "-c", os.path.join(work, "cache"),
                        "--extra_options", "windowed_kv_cache=false"]  # a cache that keeps all tokens can be run without GenAI
            sys.path.insert(0, code)
            try:
                with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()), \
                        mock.patch.object(AutoConfig, "from_pretrained", as_before(AutoConfig.from_pretrained)):
                    runpy.run_path(os.path.join(code, "builder.py"), run_name="__main__")
            except NotImplementedError as e:
                if "not currently supported" in str(e):
                    raise Skip("the builder does not know the architecture") from None
                raise
            except (KeyError, AssertionError) as e:
                raise Skip(f"the builder fails on its configuration ({type(e).__name__} {e})") from None
            finally:
                sys.argv = arguments
                sys.path.remove(code)
            onnx.save(onnx.load(os.path.join(out, "model.onnx")), os.path.join(folder, "model.onnx"))  # one file
    return models.reference(name, model, True, models.takes_positions(model))
