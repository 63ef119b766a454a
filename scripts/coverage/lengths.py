"""What transformers computes where a text outgrows the trained length between two calls, for models whose frequencies
change at that length.

    lengths.py CACHE [--architectures NAME,…]

Writes CACHE/ARCHITECTURE.lengths.npz: ids, mask, pos of one text of 32 tokens (the trained length is 16), and for every
way of cutting it into calls, as "10+6+1", the logits through transformers' own cache in float64. Keys in the cache stay as
their own call turned them. A number of calls with one token each is written as "1x8".
"""
import argparse
import os

import numpy as np
import torch
from transformers.cache_utils import DynamicCache

import models

WAYS = ["32", "16+1x16", "10+1x22", "10+6+16", "10+9+13", "17+15", "12+8+12", "1x32"]


def calls(way):
    for part in way.split("+"):
        length, _, count = part.partition("x")
        yield from [int(length)] * int(count or 1)


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("cache")
    p.add_argument("--architectures", default="phi3_longrope")
    a = p.parse_args()
    for name in a.architectures.split(","):
        x = {k: v[:1] for k, v in models.inputs(name).items()}
        out = {k: x[k].numpy() for k in ("ids", "mask", "pos")}
        for way in WAYS:
            model = models.build(name, "sdpa").double()  # anew: the model remembers which frequencies it took last
            cache, parts, start = DynamicCache(), [], 0
            with torch.no_grad():
                for length in calls(way):
                    stop = start + length
                    y = model(input_ids=x["ids"][:, start:stop], attention_mask=x["mask"][:, :stop], position_ids=x["pos"][:, start:stop],
                              past_key_values=cache, use_cache=True)
                    parts.append(y.logits)
                    start = stop
            out[way] = torch.cat(parts, 1).float().numpy()
        np.savez_compressed(os.path.join(a.cache, name + ".lengths.npz"), **out)
        print(name, {way: float(np.abs(out[way] - out[WAYS[0]]).max()) for way in WAYS})


if __name__ == "__main__":
    main()
