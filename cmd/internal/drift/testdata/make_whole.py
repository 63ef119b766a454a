"""Writes whole.json: what a Llama in NumPy drifts when the whole of it runs at shifted positions, for the tests of
package drift. The formulas are those of Wang et al. (arXiv:2411.13476), section 3.

    python make_whole.py                                      # the small Llama of testdata/models
    python make_whole.py MODEL.onnx TOKENIZER.json TEXT 256   # prints the same of a Llama exported by torch.export

The second prints what `rope-rewrite drift MODEL.onnx --whole-model --text TEXT --length 256 --shifts 1,16,1024` has to
find in bfloat16 and float16. The config.json beside the model says its sizes. Each case is computed with all but the
products in float32 and again in float64: what these differ by is what rounding elsewhere does to the measure.
Needs numpy and onnx, and tokenizers for a text.
"""

import json
import pathlib
import sys

import numpy as np
import onnx
from onnx import numpy_helper

here = pathlib.Path(__file__).parent


def bfloat16(x):
    bits = np.asarray(x, np.float32).view(np.uint32)
    return ((bits + 0x7FFF + ((bits >> 16) & 1)) & 0xFFFF0000).astype(np.uint32).view(np.float32)


ROUND = {"bfloat16": bfloat16, "float16": lambda x: x.astype(np.float16).astype(np.float32)}


class Llama:
    def __init__(self, path: pathlib.Path, config: dict):
        graph = onnx.load(path).graph
        constants = {t.name: t for t in graph.initializer}
        # Weights in the order in which they are used: q, k, v, o, gate, up, down of each layer, then the head.
        self.matrices = [numpy_helper.to_array(constants[n.input[1]]) for n in graph.node if n.op_type == "MatMul" and n.input[1] in constants]
        norms = [i for n in graph.node if n.op_type == "Mul" for i in n.input if i in constants and list(constants[i].dims) == [config["hidden_size"]]]
        self.norms = [numpy_helper.to_array(constants[i]) for i in dict.fromkeys(norms)]
        self.embedding = next(numpy_helper.to_array(constants[n.input[0]]) for n in graph.node if n.op_type == "Gather" and n.input[0] in constants and len(constants[n.input[0]].dims) == 2)
        self.layers, self.heads = config["num_hidden_layers"], config["num_attention_heads"]
        self.kv = config["num_key_value_heads"]
        self.size = config.get("head_dim") or config["hidden_size"] // self.heads
        self.eps = config["rms_norm_eps"]
        theta = config.get("rope_theta") or config["rope_parameters"]["rope_theta"]
        exact = 1 / theta ** (np.arange(0, self.size, 2) / self.size)
        # Those of the graph, which torch computed in float32.
        held = [numpy_helper.to_array(t).ravel() for t in graph.initializer if np.prod(t.dims) == self.size // 2]
        self.frequencies = next(x for x in held if x.dtype == np.float32 and np.allclose(x, exact, rtol=1e-5))
        assert len(self.matrices) >= 7 * self.layers and len(self.norms) == 2 * self.layers + 1, (len(self.matrices), len(self.norms))

    def rotated(self, x, positions):
        """[heads, length, size], in float32 by angles of float32."""
        angle = (positions[:, None].astype(np.float32) * self.frequencies).astype(np.float64)
        cos, sin = np.cos(angle).astype(np.float32), np.sin(angle).astype(np.float32)
        x = x.astype(np.float32)
        a, b = x[..., : self.size // 2], x[..., self.size // 2 :]
        return np.concatenate([a * cos - b * sin, b * cos + a * sin], -1)

    def run(self, ids, shift, rounded, kind):
        """The rounded queries and keys of each layer; all but these is computed in kind."""
        positions = np.arange(len(ids)) + shift
        hidden = self.embedding[ids].astype(kind)
        later = np.triu(np.ones((len(ids), len(ids)), bool), 1)
        matrices, norms = iter(self.matrices), iter(self.norms)
        norm = lambda x: x / np.sqrt((x * x).mean(-1, keepdims=True) + kind(self.eps)) * next(norms).astype(kind)
        times = lambda x: x @ next(matrices).astype(kind)
        split = lambda x: x.reshape(len(ids), -1, self.size).transpose(1, 0, 2)
        out = []
        for _ in range(self.layers):
            x = norm(hidden)
            q, k, v = split(times(x)), split(times(x)), split(times(x))
            q, k = rounded(self.rotated(q, positions)), rounded(self.rotated(k, positions))
            out.append((q, k))
            group = self.heads // self.kv
            k, v = np.repeat(k, group, 0).astype(kind), np.repeat(v, group, 0)
            a = q.astype(kind) @ k.transpose(0, 2, 1) / kind(np.sqrt(self.size))
            a = np.where(later, -np.inf, a)
            e = np.exp(a - a.max(-1, keepdims=True))
            p = e / e.sum(-1, keepdims=True)
            hidden = hidden + times((p @ v).transpose(1, 0, 2).reshape(len(ids), -1))
            x = norm(hidden)
            gate, up = times(x), times(x)
            hidden = hidden + times(gate / (1 + np.exp(-gate)) * up)
        return out


def products(q, k):
    """q kᵀ, added up in float32 channel by channel; keys are repeated for their group of heads."""
    k = np.repeat(k, len(q) // len(k), 0)
    out = np.zeros((len(q), q.shape[1], k.shape[1]), np.float32)
    for c in range(q.shape[2]):
        out += q[:, :, None, c] * k[:, None, :, c]
    return out.astype(np.float64)


def drift(runs_a, runs_b):
    keys, queries = 0, 0  # D of each key, |A_i1 − A'_i1| of each query
    for a, b in zip(runs_a, runs_b):
        scores = [products(*x) for x in (a, b)]
        n, weights = scores[0].shape[1], []
        for s in scores:
            s = np.where(np.triu(np.ones((n, n), bool), 1), -np.inf, s / np.sqrt(a[0].shape[2]))
            e = np.exp(s - s.max(-1, keepdims=True))
            weights.append(e / e.sum(-1, keepdims=True))
        keys = keys + np.abs(weights[0] - weights[1]).sum((0, 1)) / (n - np.arange(n))
        queries = queries + np.abs(scores[0][:, :, 0] - scores[1][:, :, 0]).sum(0)
    return keys, queries


def measure(model, ids, pairs):
    cases = []
    for name, rounded in ROUND.items():
        runs = {}
        for shift, against in pairs:
            case = {"arithmetic": name, "shift": shift, "against": against}
            for suffix, kind in ("", np.float32), ("_64", np.float64):
                for at in (shift, against):
                    if (at, suffix) not in runs:
                        runs[at, suffix] = model.run(ids, at, rounded, kind)
                keys, queries = drift(runs[shift, suffix], runs[against, suffix])
                case["weights" + suffix] = keys.sum()
                case["first_key" + suffix] = queries.mean()
                case["keys" + suffix] = keys.tolist()
                lengths = [n for n in (1, 2, 4, 8, 16, 32, 64, 128) if n < len(ids)] + [len(ids)]
                case["lengths" + suffix] = [queries[:n].mean() for n in lengths]
            cases.append(case)
    return cases


def main():
    pairs = [(1, 0), (16, 0), (1024, 0)]
    if len(sys.argv) == 1:
        path = here.parents[3] / "testdata/models/llama__dynamo18/model.onnx"
        ids = [(7 * i * i + 3 * i + 1) % 100 for i in range(40)]
        cases = measure(Llama(path, json.loads((path.parent / "config.json").read_text())), ids, pairs + [(0, 16)])
        (here / "whole.json").write_text(json.dumps({"ids": ids, "cases": cases}) + "\n")
        return
    import tokenizers

    path, length = pathlib.Path(sys.argv[1]), int(sys.argv[4])
    ids = tokenizers.Tokenizer.from_file(sys.argv[2]).encode(pathlib.Path(sys.argv[3]).read_text()).ids[:length]
    for case in measure(Llama(path, json.loads((path.parent / "config.json").read_text())), ids, pairs):
        print({k: v if isinstance(v, (str, int)) else float(f"{v:.5g}") for k, v in case.items() if not isinstance(v, list)})


if __name__ == "__main__":
    main()
