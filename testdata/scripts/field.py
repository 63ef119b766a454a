"""Make the models of testdata/field: small ones of the kinds that people have trouble with (docs/results/field.md).

    field.py OUT [NAME ...]

Writes OUT/NAME/model.onnx, and config.json where the row is about what it claims. Weights come from a seed. Every
export is held against the PyTorch module that it was made of. Needs torch, onnx, onnxruntime and numpy.
"""
import json
import os
import sys
import warnings

import numpy as np
import onnx
import onnxruntime
import torch

import field_nodes
import field_torch as f

warnings.filterwarnings("ignore")
torch.set_num_threads(1)
CONFIG = dict(model_type="llama", architectures=["LlamaForCausalLM"], hidden_size=f.HIDDEN, head_dim=f.SIZE, num_attention_heads=2,
              num_key_value_heads=1, num_hidden_layers=1, max_position_embeddings=64, rope_theta=10000.0, vocab_size=f.VOCAB)

# Name of the row: the module, or the nodes, that it is made of, and what config.json claims.
ROWS = {
    "mask_sum": f.SumOfMask, "mask_sum_cached": f.SumOfMaskCached, "mask_sum_offset": f.OnePastPadding, "minus_length": f.MinusLength,
    "proportional": f.Proportional, "states_rotated": f.RotatedStates,
    "convolutions": (f.BetweenConvolutions, dict(model_type="lfm2", num_hidden_layers=2, layer_types=["full_attention", "conv"])),
    "gqa_table_float64": field_nodes.grouped(512, np.float64), "gqa_table_float32": field_nodes.grouped(512, np.float32),
    "rotary23_short_table": field_nodes.rotary23(128), "rotary23_no_positions": field_nodes.rotary23(None),
    "decay": f.DecayByPosition, "log_length": f.LogLength,
    "flags_inverted": (f.EveryFourth, dict(model_type="smollm3", num_hidden_layers=2, no_rope_layers=[0, 1])),
    "table_1536": f.Table, "raw_cache": f.RawCache, "raw_cache_twin": f.Cached, "raw_cache_positions": f.RawCacheFedPositions,
    "no_positions": f.NoPositions, "longrope_if": field_nodes.longrope(), "partial_gqa": field_nodes.partial(),
    "interleaved_mha": field_nodes.multihead(), "half_interleaved": f.HalfInterleaved, "complex_pairs": f.RealPairs,
    "embedder": f.Embedder, "growing_base": f.GrowingBase, "windows": f.Windows,
    "linear": (f.Linear, dict(rope_scaling=dict(type="linear", factor=4.0))),
    "theta_lost": (f.Plain, dict(rope_theta=500000.0)),
    "llama3_lost": (f.Plain, dict(rope_scaling=dict(rope_type="llama3", factor=8.0, low_freq_factor=1.0, high_freq_factor=4.0,
                                                    original_max_position_embeddings=32))),
    "window_lost": (f.Plain, dict(model_type="mistral", sliding_window=8)),
    "yarn": (f.Yarn, dict(rope_scaling=dict(rope_type="yarn", factor=4.0, original_max_position_embeddings=16))),
    "fixed_sizes": f.FixedSizes, "three_positions": f.ThreePositions, "tables_fed": f.FedTables, "alibi": f.Distances,
    "image": f.Image, "image_fixed": f.FixedImage, "image_memory": f.Memory, "places_given": f.GivenPlaces, "places_of_grids": f.Grids, "tensor_scatter": field_nodes.scattered(), "shared_cache": f.SharedKeys,
}


def inputs(module, length=5, past=3):
    """Feeds of a call, and which of their dimensions are open."""
    if isinstance(module, f.Patches):
        return module.feeds(), module.axes
    past = past if module.past else 0
    feeds = dict(input_ids=torch.randint(0, f.VOCAB, (2, length)), attention_mask=torch.ones(2, past + length, dtype=torch.int64))
    feeds["attention_mask"][1, :2] = 0
    axes = dict(input_ids={0: "batch", 1: "sequence"}, attention_mask={0: "batch", 1: "total" if module.past else "sequence"})
    if hasattr(module, "tables_fed"):
        feeds |= dict(cos=torch.randn(2, length, f.SIZE), sin=torch.randn(2, length, f.SIZE))
        axes |= {name: {0: "batch", 1: "sequence"} for name in ("cos", "sin")}
    if module.positions:
        at = torch.arange(past, past + length).repeat(2, 1)
        feeds["position_ids"] = at if module.positions is True else torch.stack([at] * 3)
        axes["position_ids"] = {0: "batch", 1: "sequence"} if module.positions is True else {1: "batch", 2: "sequence"}
    if module.past:
        for n in {module.source(n) for n in range(module.layers)}:
            for kind in ("key", "value"):
                feeds[f"past_key_values.{n}.{kind}"] = torch.randn(2, module.kv, past, f.SIZE)
                axes[f"past_key_values.{n}.{kind}"] = {0: "batch", 2: "past"}
                axes[f"present.{n}.{kind}"] = {0: "batch", 2: "total"}
    return feeds, axes if not module.fixed else {}


def arguments(module, feeds):
    """The feeds as the module takes them."""
    if isinstance(module, f.Patches) or hasattr(module, "tables_fed"):
        return tuple(feeds.values())
    past = [x for name, x in feeds.items() if name.startswith("past")]
    return feeds["input_ids"], feeds["attention_mask"], feeds.get("position_ids"), *past


def export(kind, path):
    torch.manual_seed(0)
    module = kind().eval()
    for p in module.parameters():
        if p.dim() > 1:
            torch.nn.init.normal_(p, std=1.6 / p[0].numel() ** 0.5)
    feeds, axes = inputs(module)
    outputs = ["logits"] + [name.replace("past_key_values", "present") for name in feeds if name.startswith("past")]
    torch.onnx.export(module, arguments(module, feeds), path, input_names=list(feeds), output_names=outputs, dynamic_axes=axes, opset_version=17, dynamo=False)
    with torch.no_grad():
        for length, past in ((5, 3), (9, 4), (1, 6))[:1 if getattr(module, "fixed", False) else 3]:
            feeds, _ = inputs(module, length, past)
            want = module(*arguments(module, feeds))
            have = onnxruntime.InferenceSession(path, providers=["CPUExecutionProvider"]).run(None, {n: x.numpy() for n, x in feeds.items()})
            for a, b in zip(want, have):
                assert a.shape == b.shape and np.abs(a.numpy() - b).max() < 1e-4, (path, np.abs(a.numpy() - b).max())


def main(out, names):
    for name in names or ROWS:
        folder = os.path.join(out, name)
        os.makedirs(folder, exist_ok=True)
        path = os.path.join(folder, "model.onnx")
        made, claims = ROWS[name] if isinstance(ROWS[name], tuple) else (ROWS[name], None)
        if isinstance(made, onnx.ModelProto):
            onnx.checker.check_model(made)
            onnx.save(made, path)
        else:
            export(made, path)
        if claims is not None:
            with open(os.path.join(folder, "config.json"), "w") as file:
                json.dump(CONFIG | claims, file, indent=1)
                file.write("\n")


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2:])
