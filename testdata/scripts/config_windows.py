"""Which keys a query of a layer with a window sees, by transformers: OUT/windows.json.

    python3 config_windows.py OUT

For each kind of configuration that has such layers: config.json as transformers writes it, which layer it is, whether
the query sees keys behind it, and the first distance that it does not see. Measured: the largest distance at which
attention is not zero, in a model with random weights. Needs transformers 5.24 and torch."""

import json
import sys

import torch
import transformers
from transformers import AutoConfig, AutoModel

TOKENS = 24
SMALL = {"vocab_size": 64, "hidden_size": 32, "intermediate_size": 32, "num_hidden_layers": 2, "num_attention_heads": 2, "num_key_value_heads": 2,
         "head_dim": 16, "max_position_embeddings": 64, "pad_token_id": 0, "bos_token_id": 1, "eos_token_id": 2}
TYPES = {"layer_types": ["sliding_attention", "full_attention"]}
KINDS = {
    "mistral": {"sliding_window": 6},
    "mistral is_causal": {"sliding_window": 6, "is_causal": False},
    "gemma2": {"sliding_window": 6, **TYPES},
    "gemma3_text": {"sliding_window": 6, **TYPES},
    "gemma3_text use_bidirectional_attention": {"sliding_window": 6, "use_bidirectional_attention": True, **TYPES},
    "gemma3_text is_causal": {"sliding_window": 6, "is_causal": False, **TYPES},
    "gemma4_text": {"sliding_window": 6, **TYPES},
    "gemma4_text all": {"sliding_window": 6, "use_bidirectional_attention": "all", **TYPES},
    "neomme": {"sliding_window": 6, "num_key_value_heads": 1, "embedding_dim": 32, "embedding_rank": 16, "image_token_id": 6, "document_token_id": 5, **TYPES},
    "ultrabert": {"sliding_window": 6, **TYPES},
    "openai_privacy_filter": {"sliding_window": 6, "num_key_value_heads": 1, "num_local_experts": 2, "num_experts_per_tok": 1},
    "embedding_gemma2_text": {"sliding_window": 6, **TYPES},
    "modernbert": {"local_attention": 6, "cls_token_id": 1, "sep_token_id": 2, "layer_types": ["full_attention", "sliding_attention"]},
    "modernbert odd": {"local_attention": 7, "cls_token_id": 1, "sep_token_id": 2, "layer_types": ["full_attention", "sliding_attention"]},
    "modernbert-decoder": {"local_attention": 6, "cls_token_id": 1, "sep_token_id": 2, "layer_types": ["full_attention", "sliding_attention"]},
    "modernbert-decoder odd": {"local_attention": 7, "cls_token_id": 1, "sep_token_id": 2, "layer_types": ["full_attention", "sliding_attention"]},
}


def measure(kind, extra):
    torch.manual_seed(0)
    config = AutoConfig.for_model(kind.split()[0], **{**SMALL, **extra})
    file = json.loads(config.to_json_string(use_diff=False))
    config._attn_implementation = "eager"
    model = AutoModel.from_config(config).eval()
    ids = torch.arange(TOKENS)[None] % 40 + 10
    with torch.no_grad():
        attentions = model(input_ids=ids, attention_mask=torch.ones_like(ids), output_attentions=True).attentions
    layer = extra.get("layer_types", ["sliding_attention"]).index("sliding_attention")
    seen = (attentions[layer][0] > 0).any(0)[:, :TOKENS]
    assert attentions[layer].shape[-2] == TOKENS and seen.shape == (TOKENS, TOKENS), attentions[layer].shape
    query, key = torch.nonzero(seen, as_tuple=True)
    reach = int((query - key).abs().max()) + 1
    causal = bool((key <= query).all())
    expected = (torch.arange(TOKENS)[:, None] - torch.arange(TOKENS)[None]).abs() < reach
    if causal:
        expected &= torch.ones(TOKENS, TOKENS).tril().bool()
    assert torch.equal(seen, expected), kind
    return {"kind": kind, "config": {k: v for k, v in file.items() if k in KEYS}, "layer": layer, "causal": causal, "reach": reach}


KEYS = ("model_type", "sliding_window", "local_attention", "layer_types", "is_causal", "use_bidirectional_attention", "num_hidden_layers", "per_layer_config",
        "use_sliding_window", "max_window_layers", "max_position_embeddings", "transformers_version")

if __name__ == "__main__":
    assert transformers.__version__.startswith("5.24"), transformers.__version__
    rows = []
    for kind, extra in KINDS.items():
        rows.append(measure(kind, extra))
    with open(sys.argv[1] + "/windows.json", "w") as f:
        json.dump(rows, f, indent=1)
        f.write("\n")
