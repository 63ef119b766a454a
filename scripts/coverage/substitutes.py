"""The same computation in words that exporters know, for architectures whose code they cannot write.

A substitute is in place while an export is made and never while a reference is computed: export.json says how far the
export is from untouched transformers.
"""
import contextlib
import importlib
import inspect
from types import SimpleNamespace
from unittest import mock

import torch
from torch.onnx import symbolic_helper
from transformers.modeling_rope_utils import ROPE_INIT_FUNCTIONS


def angles(self, x, position_ids):
    """cos and sin of all angles side by side, [batch, length, pairs, 2], for torch.polar's complex numbers."""
    turned = position_ids[:, :, None].float() * self.inv_freq[None, None, :].float()
    return torch.stack([turned.cos(), turned.sin()], -1) * self.attention_scaling


def turn(x, cos, sin):
    """(a + bi)·(cos + i·sin) of neighbouring channels a, b."""
    a, b = x.float().reshape(*x.shape[:-1], -1, 2).unbind(-1)
    return torch.stack([a * cos - b * sin, a * sin + b * cos], -1).flatten(-2).type_as(x)


def rotation(heads):
    """apply_rotary_emb of tensors that have heads in this dimension."""
    def apply(xq, xk, freqs_cis):
        cos, sin = (t.unsqueeze(heads) for t in freqs_cis.unbind(-1))
        return turn(xq, cos, sin), turn(xk, cos, sin)
    return apply


def running_sum(g, x, dim, dtype=None):
    """TorchScript writes a CumSum of the mask's bools, which ONNX does not have: they are counted as numbers."""
    numbers = g.op("Cast", x, to_i=torch.onnx.TensorProtoDataType.INT64)
    return g.op("CumSum", numbers, g.op("Constant", value_t=torch.tensor(symbolic_helper._get_const(dim, "i", "dim"))))


# No exporter writes complex numbers, by which these turn queries and keys.
COMPLEX = {"llama4_text": ("llama4", "Llama4TextRotaryEmbedding", 2), "deepseek_v2": ("deepseek_v2", "DeepseekV2RotaryEmbedding", 1)}


# TorchScript writes a repeat_interleave that ONNX Runtime refuses (its Expand has a wrong shape), or fails to.
INTERLEAVED = {"cohere", "cohere2", "ernie4_5", "glm", "glm4"}


def repeat_interleave(x, repeats, dim):
    assert dim == -1
    return torch.stack([x] * repeats, -1).flatten(-2)


def by_length(forward):
    """A rotation's forward whose frequencies follow the length of the call without a branch of Python's, which torch.export
    cannot take. What transformers remembers of earlier calls (dynamic) only matters where a text becomes shorter."""
    def substitute(self, x, position_ids):
        frequencies, length = ROPE_INIT_FUNCTIONS[self.rope_type], torch.max(position_ids) + 1
        if self.rope_type == "dynamic":
            inv_freq, _ = frequencies(self.config, x.device, seq_len=length)
        else:
            trained = self.config.rope_parameters["original_max_position_embeddings"]
            far, _ = frequencies(self.config, x.device, seq_len=trained + 1)
            inv_freq = torch.where(length > trained, far, self.original_inv_freq)
        return inspect.unwrap(forward)(SimpleNamespace(inv_freq=inv_freq, attention_scaling=self.attention_scaling), x, position_ids)
    return substitute


def substitutes(model, dynamo):
    model_type = model.config.model_type
    for kind in {type(m) for m in model.modules() if dynamo and getattr(m, "rope_type", None) in ("dynamic", "longrope")}:
        yield mock.patch.object(kind, "forward", by_length(kind.forward))
    if model_type in COMPLEX:
        module, embedding, heads = COMPLEX[model_type]
        code = importlib.import_module(f"transformers.models.{module}.modeling_{module}")
        yield mock.patch.object(getattr(code, embedding), "forward", angles)
        yield mock.patch.object(code, "apply_rotary_emb", rotation(heads))
        yield symbolic("aten::cumsum", running_sum)
    if model_type in INTERLEAVED and not dynamo:
        yield mock.patch.object(torch.Tensor, "repeat_interleave", repeat_interleave)
        yield mock.patch.object(torch, "repeat_interleave", repeat_interleave)


@contextlib.contextmanager
def symbolic(op, write):
    """How TorchScript writes an op."""
    torch.onnx.register_custom_op_symbolic(op, write, 11)
    try:
        yield
    finally:
        torch.onnx.unregister_custom_op_symbolic(op, 11)


@contextlib.contextmanager
def exportable(model, dynamo):
    with contextlib.ExitStack() as stack:
        for s in substitutes(model, dynamo):
            stack.enter_context(s)
        yield
