"""Goldens of scalings in models of which some layers have a window: which layers transformers scales.

    goldens_layers.py OUT

Each case is transformers' own model with the scaling in its configuration: flat, as config.json gives it for all layers, or
by type of layer where the model's configuration is so (Gemma 3, OLMo 3). Writes OUT/goldens/layers.npz (every STEP-th token's
logits) and OUT/goldens/layers.json. Run export_dynamo.py for these models before; inputs are those of goldens.py.
"""
import argparse
import json
import os

import numpy as np

import goldens_methods as m
import small
from goldens import decoded, full, worst

STEP = 6
L0 = "original_max_position_embeddings=16"
LINEAR = dict(rope_type="linear", factor=4.0)
# The method as it is asked for, and the dictionary that transformers gets.
SCALINGS = {
    "linear": ("linear:factor=4", LINEAR),
    "yarn": ("yarn:factor=3," + L0, m.YARN),
}
MODELS = ("gemma2", "vaultgemma", "gpt_oss", "olmo3", "mistral", "gemma3_text")
# Dictionaries as --rope-parameters takes them.
DICTIONARIES = {
    "llama/llama3 dictionary": m.LLAMA3,
    "llama/longrope dictionary": m.SCALINGS["longrope"][1],
    "gemma2/yarn dictionary": m.YARN,
    "gpt_oss/yarn dictionary": m.YARN,
    "mistral/linear dictionary": LINEAR,
}


def scaled(name, parameters):
    """The model with a scaling in its configuration. Configurations by type scale full-attention layers."""
    if name in small.BASES:
        parameters = dict(full_attention=parameters)
    return small.model(name, out, "eager", rope_parameters=dict(parameters))


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("out")
    out = parser.parse_args().out
    keys, notes = {}, {}

    def add(case, note, model):
        name = case.split("/")[0]
        by_length = note.get("rope_parameters", {}).get("rope_type") in m.LENGTHS
        for pad in ("", "_pad"):
            keys[case + pad] = full(model, pad)
            if not by_length:
                off = worst(decoded(model, pad), keys[case + pad])
                assert off < 1e-4, (case, pad, off)
        if not case.endswith("/plain"):
            note["change"] = worst(keys[case], full(small.model(name, out, "eager")))
            assert note["change"] > 0.05, (case, note)
        notes[case] = note
        print(case, note)

    for name in MODELS:
        add(name + "/plain", dict(edits=[], oracle="transformers"), small.model(name, out, "eager"))
        for case, (spec, parameters) in SCALINGS.items():
            add(f"{name}/{case}", dict(edits=["scaling " + spec], oracle="transformers"), scaled(name, parameters))
    for case, parameters in DICTIONARIES.items():
        name = case.split("/")[0]
        given = dict(rope_theta=small.THETA, **parameters)
        add(case, dict(edits=[], rope_parameters=given, oracle="transformers"), scaled(name, parameters))
    np.savez_compressed(os.path.join(out, "goldens", "layers.npz"), **{k: v[..., ::STEP, :].astype(np.float32) for k, v in keys.items()})
    with open(os.path.join(out, "goldens", "layers.json"), "w") as f:
        json.dump(dict(trained=16, context=48, step=STEP, cases=notes), f, indent=1)
        f.write("\n")
