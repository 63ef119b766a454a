"""What transformers' generate() computes where a batch outgrows LongRoPE's trained length.

    transformers_longrope.py GOLDENS

GOLDENS is testdata/goldens/longrope.npz: four texts with padding on the left, trained length 16. A small Phi-3 with random
weights (that of scripts/coverage) generates in float64 with the tokens given. Shown are the calls that generate() makes and how far each call's logits are from
those of one call with all tokens so far (a fresh prefill): for the first text alone, for all as they are, and with every row
padded by three places more; and beside it what a cache of un-rotated keys gives (the goldens).
"""
import os
import sys

import numpy as np
import torch
import transformers
from transformers import LogitsProcessor, LogitsProcessorList

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "coverage"))
import models  # noqa: E402

TRAINED, PREFILL = 16, 14


def fresh(ids, mask):
    """Logits of the last token, all in one call."""
    model = models.build("phi3_longrope", "sdpa").double()
    positions = (mask.cumsum(-1) - 1).clamp(min=0)
    with torch.no_grad():
        return model(input_ids=ids, attention_mask=mask, position_ids=positions, use_cache=False).logits[:, -1]


def generated(ids, mask, prefill):
    model = models.build("phi3_longrope", "sdpa").double()
    calls = []  # tokens, tokens in the cache, largest position

    class Forced(LogitsProcessor):
        def __call__(self, so_far, scores):
            forced = torch.full_like(scores, float("-inf"))
            forced[torch.arange(len(ids)), ids[:, min(so_far.shape[1], ids.shape[1] - 1)]] = 0
            return forced

    def seen(_, __, more):
        cache, positions = more.get("past_key_values"), more.get("position_ids")
        calls.append((more["input_ids"].shape[1], cache.get_seq_length() if cache is not None else 0, None if positions is None else int(positions.max())))

    model.register_forward_pre_hook(seen, with_kwargs=True)
    with torch.no_grad():
        out = model.generate(ids[:, :prefill], attention_mask=mask[:, :prefill], max_new_tokens=ids.shape[1] - prefill + 1, do_sample=False,
                             eos_token_id=None, pad_token_id=0, logits_processor=LogitsProcessorList([Forced()]), output_logits=True,
                             return_dict_in_generate=True)
    return out.logits, calls


def show(title, ids, mask, prefill):
    print(title)
    logits, calls = generated(ids, mask, prefill)
    for i, (got, (n, held, position)) in enumerate(zip(logits, calls)):
        stop = prefill + i
        reach = int(mask[:, :stop].sum(-1).max())
        off = float((got - fresh(ids[:, :stop], mask[:, :stop])).abs().max())
        print(f"  longest text {reach:2} tokens: {n:2} in the call, {held:2} in its cache, largest position {position}: off by {off:.1e} from a fresh prefill")


def main():
    f = np.load(sys.argv[1])
    print("transformers", transformers.__version__)
    ids, mask = torch.tensor(f["ids"]), torch.tensor(f["mask"])
    show("transformers, the first text alone", ids[:1], mask[:1], PREFILL)
    show("transformers, the texts as they are", ids, mask, PREFILL)
    more = lambda t: torch.cat([torch.zeros(len(t), 3, dtype=t.dtype), t], 1)
    show("transformers, every row padded by three places more", more(ids), more(mask), PREFILL + 3)
    print("a cache of un-rotated keys")
    run = torch.tensor(f["phi3_longrope/run"])
    for stop in range(PREFILL, ids.shape[1] + 1):
        off = float((run[:, stop - 1] - fresh(ids[:, :stop], mask[:, :stop])).abs().max())
        print(f"  longest text {int(mask[:, :stop].sum(-1).max()):2} tokens: off by {off:.1e} from a fresh prefill")


if __name__ == "__main__":
    main()
