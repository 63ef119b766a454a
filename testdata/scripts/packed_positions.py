"""What the model of testdata/field/packed_positions gives, in float64: expected.npz beside it.

    python3 packed_positions.py testdata/field/packed_positions

Documents stand in one row, and positions that go back tell where one ends. Every score is computed from an explicit matrix
of distances within documents, by NumPy. Weights are read from the model, in the order of its nodes. Needs numpy, onnx."""

import math
import sys

import numpy as np
import onnx

HEADS, KV, SIZE = 4, 2, 16
POSITIONS = np.array([[0, 1, 2, 3, 0, 1, 2, 0, 1, 2, 3, 4, 5, 0], [0, 1, 0, 1, 2, 3, 4, 5, 6, 7, 0, 1, 2, 3]])
IDS = np.array([[9, 13, 17, 4, 63, 44, 2, 39, 34, 47, 29, 49, 54, 45], [46, 52, 61, 34, 42, 41, 4, 16, 43, 19, 9, 8, 2, 4]])


def read(path):
    graph = onnx.load(path).graph
    tensors = {t.name: onnx.numpy_helper.to_array(t).astype(np.float64) for t in graph.initializer}
    products = [tensors[n.input[1]] for n in graph.node if n.op_type == "MatMul" and n.input[1] in tensors]
    return tensors, products, graph


def norm(x, scale, bias):
    x = x - x.mean(-1, keepdims=True)
    return x / np.sqrt((x * x).mean(-1, keepdims=True) + 1e-5) * scale + bias


def gelu(x):
    return 0.5 * x * (1 + np.vectorize(math.erf)(x / math.sqrt(2)))


def turned(x, positions, frequencies, gain):
    """Rotates x [batch, heads, rows, SIZE] by positions [batch, 1, rows]."""
    angles = positions[..., None] * frequencies
    cos, sin = gain * np.cos(angles), gain * np.sin(angles)
    first, second = x[..., :SIZE // 2], x[..., SIZE // 2:]
    return np.concatenate([first * cos - second * sin, second * cos + first * sin], -1)


def forward(tensors, products, graph, frequencies, gain, distances):
    """distances says at which distance a query meets a key of its document that is as far behind it as its argument says."""
    products = iter(products)
    norms = [(tensors[n.input[1]], tensors[n.input[2]]) for n in graph.node if n.op_type == "LayerNormalization"]
    starts = np.concatenate([np.zeros((2, 1), int), np.diff(POSITIONS) != 1], 1).cumsum(1)
    rows = np.arange(14)
    seen = (rows[:, None] >= rows) & (starts[:, :, None] == starts[:, None, :])
    met = distances(POSITIONS[:, :, None] - POSITIONS[:, None, :])
    h = tensors["emb.weight"][IDS]
    for layer in range(2):
        x = norm(h, *norms[2 * layer])
        q, k, v = (np.moveaxis((x @ next(products)).reshape(2, 14, n, SIZE), 2, 1) for n in (HEADS, KV, KV))
        k, v = np.repeat(k, HEADS // KV, 1), np.repeat(v, HEADS // KV, 1)
        scores = np.empty((2, HEADS, 14, 14))
        for i in range(14):  # the key stands at 0, the query at the distance
            for j in range(14):
                at = met[:, i, j][:, None, None]
                query = turned(q[:, :, i:i + 1], at, frequencies, gain)
                key = turned(k[:, :, j:j + 1], 0 * at, frequencies, gain)
                scores[:, :, i, j] = (query * key).sum(-1)[..., 0] / math.sqrt(SIZE)
        scores = np.where(seen[:, None], scores, -np.inf)
        p = np.exp(scores - scores.max(-1, keepdims=True))
        p /= p.sum(-1, keepdims=True)
        h = h + np.moveaxis(p @ v, 1, 2).reshape(2, 14, -1) @ next(products)
        x = norm(h, *norms[2 * layer + 1])
        h = h + gelu(x @ next(products)) @ next(products)
    return h @ next(products)


def yarn(frequencies, factor, original):
    """transformers' yarn with beta_fast 32, beta_slow 1, truncated."""
    def at(turns):
        return SIZE * math.log(original / (turns * 2 * math.pi)) / (2 * math.log(10000))

    low, high = max(math.floor(at(32)), 0), min(math.ceil(at(1)), SIZE - 1)
    if low == high:
        high += 0.001
    ramp = np.clip((np.arange(SIZE // 2) - low) / (high - low), 0, 1)
    return frequencies / factor * ramp + frequencies * (1 - ramp), 0.1 * math.log(factor) + 1


if __name__ == "__main__":
    folder = sys.argv[1]
    model = read(folder + "/model.onnx")
    plain = 10000.0 ** (-np.arange(SIZE // 2) * 2 / SIZE)
    same = lambda d: d  # noqa: E731
    scaled, gain = yarn(plain, 4, 64)
    np.savez_compressed(
        folder + "/expected.npz", input_ids=IDS, position_ids=POSITIONS,
        expected=forward(*model, plain, 1, same),
        linear4=forward(*model, plain / 4, 1, same),
        yarn4=forward(*model, scaled, gain, same),
        string=forward(*model, plain, 1, lambda d: np.where(d < 3, d, d - 2)),  # shift 3, window 1
        rerope=forward(*model, plain, 1, lambda d: np.minimum(d, 3)),
    )
