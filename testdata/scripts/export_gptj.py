"""Make a small GPT-J without a cache as TorchScript exports it, and what it must give; needs torch 2.11 and transformers 4.57,
whose mask is a tensor that is assigned as a whole (ScatterND).

    export_gptj.py OUT

Writes OUT/models/gptj__ts17: model.onnx, opset 17, token ids and attention mask in, logits out, and golden.npz: ids and
mask [2, 48] with ten tokens of left padding in the second row, and the logits of every fourth token. plain is
transformers; string, rerope and self_extend are a float64 model whose every score is made from an explicit matrix of
distances; with the true ones it is compared to transformers.
"""
import os
import sys

import numpy as np
import onnx
import torch
from transformers import GPTJConfig, GPTJForCausalLM

import goldens_methods as m
import small
from export_dynamo import without_metadata
from export_nocache import WithoutCache

STEP, ROTARY = 4, 8
METHODS = {"string": m.string, "rerope": m.rerope, "self_extend": m.self_extend}


def reference(model, ids, mask, distance):
    """Logits by a matrix of distances, in float64."""
    cfg, weights = model.config, {k: v.double() for k, v in model.state_dict().items()}
    heads, size = cfg.n_head, cfg.n_embd // cfg.n_head
    places = torch.arange(ids.shape[1])
    d = distance(places[:, None], places[None, :]).double()
    angles = d[..., None] * 10000.0 ** -(torch.arange(0, ROTARY, 2).double() / ROTARY)  # [query, key, pair]
    hidden = (places[None, :] > places[:, None]) | (mask[:, None, None, :] == 0)

    def linear(x, name):
        return torch.nn.functional.linear(x, weights[name + ".weight"], weights.get(name + ".bias"))

    def norm(x, name):
        return torch.nn.functional.layer_norm(x, x.shape[-1:], weights[name + ".weight"], weights[name + ".bias"], cfg.layer_norm_epsilon)

    h = weights["transformer.wte.weight"][ids]
    for layer in range(cfg.n_layer):
        at = f"transformer.h.{layer}."
        x = norm(h, at + "ln_1")
        q, k, v = (linear(x, at + f"attn.{p}_proj").unflatten(-1, (heads, size)).transpose(1, 2) for p in "qkv")
        pairs = [torch.view_as_complex(t[..., :ROTARY].unflatten(-1, (-1, 2)).contiguous()) for t in (q, k)]
        turned = torch.einsum("bhip,bhjp,ijp->bhij", pairs[0], pairs[1].conj(), torch.polar(torch.ones_like(angles), angles)).real
        scores = (turned + q[..., ROTARY:] @ k[..., ROTARY:].transpose(-1, -2)) / size ** 0.5
        mixed = torch.nan_to_num(scores.masked_fill(hidden, -torch.inf).softmax(-1)) @ v
        inner = torch.nn.functional.gelu(linear(x, at + "mlp.fc_in"), approximate="tanh")
        h = h + linear(mixed.transpose(1, 2).flatten(2), at + "attn.out_proj") + linear(inner, at + "mlp.fc_out")
    return linear(norm(h, "transformer.ln_f"), "lm_head")


if __name__ == "__main__":
    torch.manual_seed(0)
    model = GPTJForCausalLM(GPTJConfig(vocab_size=64, n_positions=64, n_embd=32, n_layer=2, n_head=2, n_inner=32, rotary_dim=ROTARY)).float().eval()
    small.randomise(model)
    with torch.no_grad():
        model.transformer.wte.weight.mul_(4)
        for name, weight in model.named_parameters():
            if ".ln_" in name and name.endswith("weight"):
                weight.add_(1)  # near 1, as randomise leaves norms by another name
    folder = os.path.join(sys.argv[1], "models", "gptj__ts17")
    os.makedirs(folder, exist_ok=True)
    path = os.path.join(folder, "model.onnx")
    ids, mask = (small.inputs()[k + "_pad"] for k in ("ids", "mask"))
    ids = ids % 64
    names, axes = ["input_ids", "attention_mask"], {0: "batch", 1: "sequence"}
    with torch.no_grad():
        torch.onnx.export(WithoutCache(model), (ids[:, 7:14], mask[:, 7:14]), path, dynamo=False, opset_version=17, input_names=names,
                          output_names=["logits"], dynamic_axes={k: axes for k in names + ["logits"]})
        places = torch.arange(ids.shape[1]).expand(ids.shape).contiguous()
        plain = model(input_ids=ids, attention_mask=mask, position_ids=places, use_cache=False).logits
        seen = mask.bool()
        off = (plain - reference(model, ids, mask, m.true))[seen].abs().max()
        logits = {name: reference(model, ids, mask, distance).float() for name, distance in METHODS.items()}
    onnx.save(without_metadata(onnx.load(path)), path)
    model.config.save_pretrained(folder)
    for name, x in logits.items():
        print(name, "is", float((x - plain)[seen].abs().max()), "from plain")
    goldens = {name: x[:, ::STEP].numpy() for name, x in dict(plain=plain, **logits).items()}
    np.savez(os.path.join(folder, "golden.npz"), ids=ids.numpy(), mask=mask.numpy(), **goldens)
    print("wrote", folder, "the reference is", float(off), "from transformers")
