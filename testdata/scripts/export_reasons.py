"""Export models whose rotation cannot be changed, each for another reason: TestReasons says which.

    export_reasons.py OUT [NAME ...]

Writes OUT/NAME.onnx. All are one or two layers of four heads of 8 channels, with random weights and the rotation of
halves unless a name says otherwise.
"""
import os
import sys

import torch

import onnx
from export_dynamo import without_metadata

torch.manual_seed(5)
HEADS, SIZE, VOCABULARY, ROWS, TRAINED = 4, 8, 40, 64, 16
FREQUENCIES = 100.0 ** (-torch.arange(0, SIZE, 2) / SIZE)


def rotate(x, cos, sin):
    first, second = x.chunk(2, -1)
    return x * cos + torch.cat((-second, first), -1) * sin


def tables(positions, frequencies=FREQUENCIES):
    angles = positions[:, None].float() * frequencies
    angles = torch.cat((angles, angles), -1)
    return angles.cos(), angles.sin()


class Layer(torch.nn.Module):
    def __init__(self):
        super().__init__()
        width = HEADS * SIZE
        self.norm = torch.nn.LayerNorm(width)
        self.q, self.k, self.v, self.o = (torch.nn.Linear(width, width) for _ in range(4))

    def forward(self, x, mask, turn, before):
        batch, length, _ = x.shape
        heads = lambda y: y.view(batch, length, HEADS, SIZE).transpose(1, 2)
        h = self.norm(x)
        turned = before(heads(h)).transpose(1, 2).reshape(batch, length, -1) if before else h
        q, k, v = heads(self.q(turned)), heads(self.k(turned)), heads(self.v(h))
        if turn:
            q, k = turn(q, k)
        scores = q @ k.transpose(-1, -2) / SIZE**0.5
        scores = scores.masked_fill(~mask, torch.finfo(torch.float32).min)
        return x + self.o((scores.softmax(-1) @ v).transpose(1, 2).reshape(batch, length, -1))


class Model(torch.nn.Module):
    """name says what is done to queries and keys, or to hidden states before them."""

    def __init__(self, name):
        super().__init__()
        self.name = name
        self.tokens = torch.nn.Embedding(VOCABULARY, HEADS * SIZE)
        self.layers = torch.nn.ModuleList(Layer() for _ in range(2 if "before" in name else 1))
        self.learned = torch.nn.Embedding(ROWS, HEADS * SIZE)
        self.register_buffer("stored", torch.stack(tables(torch.arange(ROWS))))
        wide = tables(torch.arange(ROWS), 100.0 ** (-torch.arange(0, HEADS * SIZE, 2) / (HEADS * SIZE)))
        self.register_buffer("sines", wide[1])
        self.register_buffer("factors", torch.arange(1.0, ROWS + 1).log() / torch.tensor(float(TRAINED)).log())

    def forward(self, input_ids, attention_mask):
        length = input_ids.shape[1]
        count = torch.ones_like(input_ids[0]).sum()  # the length, as a value
        positions = torch.arange(length)
        x = self.tokens(input_ids)
        turn = before = None
        match self.name:
            case "rotated-before":
                before = lambda h: rotate(h, *tables(positions))
            case "rotated-before-by-tables":
                before = lambda h: rotate(h, self.stored[0, :length], self.stored[1, :length])
            case "sines-added":
                wide = 100.0 ** (-torch.arange(0, HEADS * SIZE, 2) / (HEADS * SIZE))
                x = x + tables(positions, wide)[1]
            case "sines-added-unless-padded":
                wide = 100.0 ** (-torch.arange(0, HEADS * SIZE, 2) / (HEADS * SIZE))
                x = x + tables(positions, wide)[1] * attention_mask[..., None]
            case "table-of-sines-added":
                x = x + self.sines[:length]
            case "learned-added":
                x = x + self.learned(positions)
            case "xpos":
                power = ((positions - length // 2) / 32.0)[:, None]
                decay = ((torch.arange(0, SIZE, 2) / SIZE + 0.4) / 1.4) ** power
                decay = torch.cat((decay, decay), -1)
                turn = lambda q, k: (rotate(q, *tables(positions)) * decay, rotate(k, *tables(positions)) / decay)
            case "log-n-by-length":
                factor = (count.float().log() / torch.tensor(float(TRAINED)).log()).clamp(min=1)
                turn = lambda q, k: (rotate(q, *tables(positions)) * factor, rotate(k, *tables(positions)))
            case "ntk-by-powers-of-two":
                alpha = (2 ** ((count.float() / TRAINED).log2() + 1).ceil() - 1).clamp(min=1)
                base = 100.0 * alpha ** (SIZE / (SIZE - 2))
                turned = tables(positions, base ** (-torch.arange(0, SIZE, 2) / SIZE))
                turn = lambda q, k: (rotate(q, *turned), rotate(k, *turned))
            case _:
                raise SystemExit(f"no model is named {self.name}")
        mask = (positions[:, None] >= positions)[None, None] & attention_mask[:, None, None].bool()
        for layer in self.layers:
            x = layer(x, mask, turn, before)
        return x @ self.tokens.weight.T


NAMES = ["rotated-before", "rotated-before-by-tables", "sines-added", "sines-added-unless-padded", "table-of-sines-added", "learned-added",
         "xpos", "log-n-by-length", "ntk-by-powers-of-two"]

if __name__ == "__main__":
    out, names = sys.argv[1], sys.argv[2:] or NAMES
    ids = torch.randint(0, VOCABULARY, (2, 7))
    for name in names:
        path = os.path.join(out, name + ".onnx")
        axes = {0: "batch", 1: "sequence"}
        with torch.no_grad():
            torch.onnx.export(Model(name).eval(), (ids, torch.ones_like(ids)), path, dynamo=False, opset_version=17,
                              input_names=["input_ids", "attention_mask"], output_names=["logits"],
                              dynamic_axes={v: axes for v in ("input_ids", "attention_mask", "logits")})
        onnx.save(without_metadata(onnx.load(path)), path)
        print("wrote", path)
