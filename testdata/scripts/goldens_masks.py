"""Goldens of masks: the eager float64 reference of goldens.py with its table of who sees whom changed.

    goldens_masks.py OUT [ARCHITECTURE ...]

Writes OUT/goldens/ARCHITECTURE_masks.npz and
OUT/goldens/masks.json (how far each mask is from plain, and what was checked on the way).
"""
import argparse
import json
import os

import numpy as np
import torch

from goldens import INPUTS, PAD, decoded, full, reference_model, worst
import small

READERS = 6  # tokens at the end of each row that are readers in the case of that name
FIRST, WINDOW = 2, 8
START = 1  # position of a document's first token in anchor_reset; the anchor stands at 0
CASES = {"llama": ("anchor", "intra", "anchor_reset", "readers", "first_keys")}
FEWER = ("anchor", "intra")  # what the architectures beside llama get, without padding


def documents(pad, readers=False):
    """Ids [2, 48]: an anchor (0), then three documents; under padding the second row begins PAD places later."""
    rows = []
    for lengths, start in (((15, 16, 16), 0), ((7, 20, 20), PAD if pad else 0)):
        row = torch.cat([torch.zeros(start + 1), *(torch.full((n,), float(i + 1)) for i, n in enumerate(lengths))])[:48]
        if readers:
            row[-READERS:] = -1
        rows.append(row)
    return torch.stack(rows).long()


def set_mask(reference, case, pad):
    """Distances and visibility of a case, entry by entry."""
    reference.set(pad, lambda d: d)
    index = torch.arange(48)
    if case == "first_keys":
        near = index[:, None] - index < WINDOW
        first = INPUTS["mask" + pad].cumsum(-1) <= FIRST  # of each row's real keys; padding stays hidden
        reference.visible = reference.visible & (near[None] | first[:, None, :])
        return None
    ids = documents(pad, case == "readers")
    query, key = ids[:, :, None], ids[:, None, :]
    allowed = query == key
    if case != "intra":
        allowed = allowed | (key == 0)
    reference.visible = reference.visible & (allowed | (query == -1))
    if case == "anchor_reset":
        real = INPUTS["mask" + pad].bool()
        earlier = (index[:, None] > index)[None] & (query == key) & real[:, None, :]
        positions = earlier.sum(-1) + START * (ids > 0)
        reference.distance = (positions[:, :, None] - positions[:, None, :]).double()
    return ids


def goldens(name, out):
    keys, notes = {"documents": documents("")}, {}
    plain = full(small.model(name, out))
    model, reference = reference_model(name, out)
    reference.set("", lambda d: d)
    notes["reference_identity"] = worst(full(model), plain)
    assert notes["reference_identity"] < 1e-4, notes
    if name == "llama":
        keys.update(documents_pad=documents("_pad"), documents_readers=documents("", True), documents_readers_pad=documents("_pad", True))
    for case in CASES.get(name, FEWER):
        for pad in ("", "_pad") if name == "llama" else ("",):
            set_mask(reference, case, pad)
            keys[case + pad] = full(model, pad)
            notes[case + pad] = dict(decode_against_full=worst(decoded(model, pad), keys[case + pad]))
            assert notes[case + pad]["decode_against_full"] < 1e-4, (case, pad, notes)
        notes[case]["change"] = worst(keys[case], plain)
        assert notes[case]["change"] > 0.5, (case, notes)
    return keys, notes


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("out")
    parser.add_argument("architectures", nargs="*")
    a = parser.parse_args()
    summary = {}
    for name in a.architectures or small.ARCHITECTURES:
        keys, summary[name] = goldens(name, a.out)
        keys = {k: v.astype(np.float32) if isinstance(v, np.ndarray) else v.numpy() for k, v in keys.items()}
        np.savez_compressed(os.path.join(a.out, "goldens", name + "_masks.npz"), **keys)
        print(name, json.dumps(summary[name]))
    with open(os.path.join(a.out, "goldens", "masks.json"), "w") as f:
        json.dump(summary, f, indent=1)
        f.write("\n")
