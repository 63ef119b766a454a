"""The small models of testdata: architectures, deterministic weights, inputs.

Works with transformers 5.17 (dynamo exports, goldens) and 4.57 (Optimum's exporter).
"""
import os

import torch
import transformers
from transformers import AutoConfig, AutoModelForCausalLM

torch.set_num_threads(1)  # one thread: the same sums in the same order everywhere

TRANSFORMERS_5 = int(transformers.__version__.split(".")[0]) >= 5
SHAPE = dict(vocab_size=128, hidden_size=64, intermediate_size=32, num_hidden_layers=2, num_attention_heads=4,
             max_position_embeddings=64, initializer_range=0.35, tie_word_embeddings=False,
             bos_token_id=1, eos_token_id=2, pad_token_id=0)
THETA = 10000.0
# Grouped heads, grouped heads with normalised q and k, and partial rotation (half of each head).
ARCHITECTURES = {
    "llama": dict(num_key_value_heads=2, head_dim=16),
    "qwen3": dict(num_key_value_heads=2, head_dim=16),
    "gpt_neox": {},
}
# Pairs of neighbouring channels; layers that alternate between a window and all keys, each with its own base.
OTHERS = {
    "cohere": dict(num_key_value_heads=2),
    "gemma3_text": dict(num_key_value_heads=2, head_dim=16, query_pre_attn_scalar=16, sliding_window=8,
                        layer_types=["sliding_attention", "full_attention"]),
}
# Windowed layers that share one rotary embedding with the others (Gemma 2, VaultGemma, gpt-oss), that have none beside
# them (Mistral), or that a scaling never reaches although their frequencies are the same (OLMo 3).
MIXED = ["sliding_attention", "full_attention"]
LAYERED = {
    "gemma2": dict(num_key_value_heads=2, head_dim=16, query_pre_attn_scalar=16, sliding_window=8, layer_types=MIXED,
                   attn_logit_softcapping=5.0, final_logit_softcapping=30.0),
    "vaultgemma": dict(num_key_value_heads=2, head_dim=16, query_pre_attn_scalar=16, sliding_window=8, layer_types=MIXED),
    "gpt_oss": dict(num_key_value_heads=2, head_dim=16, sliding_window=8, layer_types=MIXED, num_local_experts=2, num_experts_per_tok=1),
    "olmo3": dict(num_key_value_heads=2, sliding_window=8, layer_types=MIXED),
    "mistral": dict(num_key_value_heads=2, head_dim=16, sliding_window=8),
}
BASES = {"gemma3_text": dict(sliding_attention=1000.0, full_attention=THETA), "olmo3": dict(sliding_attention=THETA, full_attention=THETA)}


def config(name, **override):
    """The configuration; override may hold rope_parameters (transformers 5) and any other key."""
    values = {**SHAPE, **(ARCHITECTURES | OTHERS | LAYERED)[name]}
    partial = 0.5 if name == "gpt_neox" else None
    if name in BASES:  # override's parameters are by type of layer
        other = override.pop("rope_parameters", {})
        values["rope_parameters"] = {kind: {**dict(rope_type="default", rope_theta=base), **other.get(kind, {})} for kind, base in BASES[name].items()}
    elif TRANSFORMERS_5:
        rope = dict(rope_type="default", rope_theta=THETA)
        if partial:
            rope["partial_rotary_factor"] = partial
        values["rope_parameters"] = {**rope, **override.pop("rope_parameters", {})}
    elif partial:
        values.update(rotary_pct=partial, rotary_emb_base=int(THETA))
    else:
        values["rope_theta"] = THETA
    return AutoConfig.for_model(name, **{**values, **override})


def randomise(model, seed=1234):
    """Random weights from one seed: matrices N(0, (1.6/√fan_in)²), queries and keys 1.5 × as wide so that
    attention is not flat, embeddings N(0, 1), norms near 1; all rounded to bfloat16."""
    generator = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for name, weight in sorted(model.named_parameters()):
            random = torch.randn(weight.shape, generator=generator)
            if weight.ndim >= 2:
                scale = 1.0 if "emb" in name else 1.6 / weight.shape[-1] ** 0.5
                if any(part in name for part in ("q_proj", "k_proj", "query_key_value")):
                    scale *= 1.5
                weight.copy_(random * scale)
            elif "norm" in name and name.endswith("weight"):
                weight.copy_((0.0 if "Gemma" in type(model).__name__ else 1.0) + 0.1 * random)  # Gemma adds 1
            else:
                weight.copy_(0.2 * random)
            weight.copy_(weight.to(torch.bfloat16).to(weight.dtype))


def checkpoint(out, name):
    return os.path.join(out, "weights", name + ".safetensors")


def model(name, out, attention="sdpa", **override):
    """The model in float32. transformers 5 makes the weights and leaves them in out/weights; 4.57 reads them there,
    because another order or another name of the parameters would give other random numbers."""
    from safetensors.torch import load_file, save_file

    torch.manual_seed(0)
    cfg = config(name, **override)
    cfg._experts_implementation = "batched_mm"  # a loop over experts would be traced for one routing
    m = AutoModelForCausalLM.from_config(cfg, attn_implementation=attention).float().eval()
    path = checkpoint(out, name)
    if os.path.exists(path):
        weights = load_file(path)
        if name == "gpt_neox" and not TRANSFORMERS_5:
            weights["embed_out.weight"] = weights.pop("lm_head.weight")
        missing, unexpected = m.load_state_dict(weights, strict=False)
        # Tables that a library version keeps with the weights follow from the configuration.
        missing = [k for k in missing if "inv_freq" not in k and "bias" not in k.split(".")[-1:] and "masked_bias" not in k]
        unexpected = [k for k in unexpected if "inv_freq" not in k]
        if missing or unexpected:
            raise SystemExit(f"{path} does not fit {name}: missing {missing}, unexpected {unexpected}")
    else:
        if not TRANSFORMERS_5:
            raise SystemExit(f"{path} does not exist; run export_dynamo.py first, in its own environment")
        randomise(m)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        save_file({k: v.contiguous().clone() for k, v in m.state_dict().items()}, path)
    return m


def inputs(batch=2, length=48, padding=10, seed=7):
    """Token ids, masks and positions; the *_pad ones have the second row padded on the left."""
    generator = torch.Generator().manual_seed(seed)
    ids = torch.randint(4, SHAPE["vocab_size"], (batch, length), generator=generator)
    mask = torch.ones(batch, length, dtype=torch.int64)
    mask_pad = mask.clone()
    mask_pad[1, :padding] = 0
    ids_pad = ids.clone()
    ids_pad[1, :padding] = SHAPE["pad_token_id"]
    return dict(ids=ids, mask=mask, pos=torch.arange(length).expand(batch, length).contiguous(),
                ids_pad=ids_pad, mask_pad=mask_pad, pos_pad=(mask_pad.cumsum(-1) - 1).clamp(min=0))
