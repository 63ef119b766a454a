"""What transformers computes for texts one by one, which a packed row must give as well.

    documents.py CACHE [--architectures NAME,…]

Writes CACHE/ARCHITECTURE.documents.npz: two rows of texts of different lengths, one after the other (ids, documents
[2, width]: 1, 2, … is the text, and 0 the padding behind the second row's last), and the logits of each text by itself in
float64 (logits [2, width, vocabulary], zero for padding).
"""
import argparse
import os

import numpy as np
import torch

import models
from architectures import VOCABULARY

ROWS = [[1, 17, 40, 2, 9, 33], [25, 5, 48, 11]]  # shorter than a window, as long, longer, and one token


def pack(seed=11):
    generator = torch.Generator().manual_seed(seed)
    width = max(map(sum, ROWS))
    ids, documents = torch.zeros(len(ROWS), width, dtype=torch.int64), torch.zeros(len(ROWS), width, dtype=torch.int64)
    for row, lengths in enumerate(ROWS):
        start = 0
        for number, n in enumerate(lengths, 1):
            ids[row, start:start + n] = torch.randint(4, VOCABULARY, (n,), generator=generator)
            documents[row, start:start + n] = number
            start += n
    return ids, documents


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("cache")
    p.add_argument("--architectures", default="modernbert")
    a = p.parse_args()
    ids, documents = pack()
    for name in a.architectures.split(","):
        model = models.build(name, "sdpa").double()
        logits = torch.zeros(*ids.shape, VOCABULARY, dtype=torch.float64)
        with torch.no_grad():
            for row in range(len(ids)):
                for number in range(1, int(documents[row].max()) + 1):
                    here = documents[row] == number
                    text = ids[row, here][None]
                    logits[row, here] = model(input_ids=text, attention_mask=torch.ones_like(text)).logits[0]
        np.savez_compressed(os.path.join(a.cache, name + ".documents.npz"),
                            ids=ids.numpy(), documents=documents.numpy(), logits=logits.float().numpy())
        print(name, "range", float(logits.max() - logits.min()))


if __name__ == "__main__":
    main()
