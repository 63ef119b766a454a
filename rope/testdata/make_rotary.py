"""Writes rotary.json: tensors rotated by transformers and by NumPy, for the tests of package rope.

Needs torch, NumPy and transformers (written with 2.11.0, 2.4.6 and 5.17.0); only this script does.

    python make_rotary.py

transformers computes in float32: apply_rotary_pos_emb of Llama (halves), GPT-NeoX (halves, partial), Cohere and
GPT-J (neighbours). NumPy computes in float64 what these do not have, as products of complex numbers: packed
sequences, offsets, the inverse, several axes, and the parts of sequences that ranks hold.
"""

import json
import os

import numpy as np
import torch
from transformers.models.cohere import modeling_cohere as cohere
from transformers.models.gpt_neox import modeling_gpt_neox as gpt_neox
from transformers.models.gptj import modeling_gptj as gptj
from transformers.models.llama import modeling_llama as llama

rng = np.random.default_rng(7)


def frequencies(dim, base=10000.0):
    return (1.0 / base ** (np.arange(0, dim, 2, dtype=np.float32) / np.float32(dim))).astype(np.float32)


def draw(*shape):
    return rng.standard_normal(shape).astype(np.float32)


def shortest(values):
    """Shortest decimals that read back as the same float32 numbers, eleven digits of float64 ones."""
    values = np.asarray(values)
    return [float(str(v)) if values.dtype == np.float32 else float(f"{v:.11g}") for v in values.flatten()]


cases = []


def add(name, by, x, want, omega, **rest):
    cases.append(
        {"name": name, "by": by, "shape": list(x.shape), "x": shortest(x), "want": shortest(want), "inv_freq": shortest(omega), **rest}
    )


# Transformers: [batch, heads, length, size] unless said otherwise, positions [batch, length].
positions = torch.tensor([[0, 1, 2, 3, 4], [131067, 131068, 131069, 131070, 131071]])


def tables(omega, interleaved):
    angles = positions[:, :, None].float() * torch.from_numpy(omega)[None, None, :]
    both = torch.repeat_interleave(angles, 2, -1) if interleaved else torch.cat((angles, angles), -1)
    return both.cos(), both.sin()


def transformers_cases():
    ids = positions.flatten().tolist()
    for name, module, size, dim, interleaved in (
        ("llama", llama, 12, 12, False),
        ("gpt_neox", gpt_neox, 12, 8, False),
        ("cohere", cohere, 12, 12, True),
    ):
        omega = frequencies(dim)
        cos, sin = tables(omega, interleaved)
        for form, axis, shape in (("bhsd", 1, (2, 3, 5, size)), ("bshd", 2, (2, 5, 3, size))):
            x = draw(*shape)
            want, _ = module.apply_rotary_pos_emb(torch.from_numpy(x), torch.from_numpy(x), cos, sin, unsqueeze_dim=axis)
            add(f"{name} {form}", "transformers", x, want.numpy(), omega, tensor_format=form, interleaved=interleaved, position_ids=ids)
    omega = frequencies(8)
    angles = positions[:, :, None].float() * torch.from_numpy(omega)[None, None, :]
    x = draw(2, 5, 3, 12)
    t = torch.from_numpy(x)
    turned = gptj.apply_rotary_pos_emb(t[..., :8], angles.sin(), angles.cos())
    want = torch.cat((turned, t[..., 8:]), -1)
    add("gptj partial", "transformers", x, want.numpy(), omega, tensor_format="bshd", interleaved=True, position_ids=ids)


def turn(x, at, omega, interleaved, offset=0, gain=1.0, inverse=False):
    """One head at positions of its pairs, in float64."""
    out = x.astype(np.float64)
    n = len(omega)
    inner = out[offset : offset + 2 * n].copy()
    z = inner[0::2] + 1j * inner[1::2] if interleaved else inner[:n] + 1j * inner[n:]
    z = z * gain * np.exp((-1j if inverse else 1j) * np.asarray(at, np.float64) * omega.astype(np.float64))
    if interleaved:
        inner[0::2], inner[1::2] = z.real, z.imag
    else:
        inner[:n], inner[n:] = z.real, z.imag
    out[offset : offset + 2 * n] = inner
    return out


def numpy_case(name, form, x, at, omega, interleaved, offset=0, gain=1.0, inverse=False, **rest):
    """at(row, place, pair) is where a pair stands; angles are exact."""
    want = np.zeros(x.shape, np.float64)
    for index in np.ndindex(*x.shape[:-1]):
        by = dict(zip(form, index))
        row, place = by.get("b", 0), by["t"] if "t" in by else by["s"]
        want[index] = turn(x[index], [at(row, place, i) for i in range(len(omega))], omega, interleaved, offset, gain, inverse)
    add(
        name, "numpy", x, want, omega, tensor_format=form, interleaved=interleaved, offset=offset, gain=gain, inverse=inverse, exact=True, **rest
    )


def numpy_cases():
    omega = frequencies(8)
    bounds = [0, 3, 3, 8]
    sequence = [0, 0, 0, 2, 2, 2, 2, 2]
    offsets = [5, 9, 131071 - 4]
    numpy_case("packed", "thd", draw(8, 2, 12), lambda b, t, i: t - bounds[sequence[t]], omega, False, cu_seqlens=bounds)
    numpy_case(
        "packed with offsets", "thd", draw(8, 2, 12), lambda b, t, i: t - bounds[sequence[t]] + offsets[sequence[t]], omega, True, 3, cu_seqlens=bounds, seqlen_offsets=offsets
    )
    ids = [7, 0, 131071, 2, 2, 1]
    numpy_case("packed, positions", "thd", draw(6, 1, 8), lambda b, t, i: ids[t], omega, False, position_ids=ids)
    numpy_case("offsets of rows", "sbhd", draw(5, 3, 2, 8), lambda b, s, i: s + offsets[b], omega, False, seqlen_offsets=offsets)
    numpy_case("inverse", "bshd", draw(3, 5, 2, 10), lambda b, s, i: s + offsets[b], omega, False, 1, 1.25, True, seqlen_offsets=offsets)
    numpy_case("inverse, neighbours", "bhsd", draw(1, 2, 5, 8), lambda b, s, i: s + 1000, omega, True, 0, 1.0, True, seqlen_offsets=[1000])
    axes = [0, 1, 2, 0]
    places = rng.integers(0, 500, (3, 2, 4))
    numpy_case("axes", "bshd", draw(2, 4, 2, 8), lambda b, s, i: places[axes[i], b, s], omega, False, position_ids=places.flatten().tolist(), axes=axes)
    # Context parallelism: of 2n chunks a rank has its own and that as far from the end.
    ranks = 2
    for rank in range(ranks):
        def held(whole):
            chunks = np.split(np.arange(whole), 2 * ranks)
            return np.concatenate((chunks[rank], chunks[2 * ranks - 1 - rank])).tolist()

        own = held(16)
        numpy_case(f"rank {rank}", "sbhd", draw(8, 2, 1, 8), lambda b, s, i: own[s], omega, False, cp_size=ranks, cp_rank=rank)
        packed = [p + o for n, o in ((4, 0), (12, 30)) for p in held(n)]
        numpy_case(
            f"rank {rank}, packed", "thd", draw(8, 1, 8), lambda b, t, i: packed[t], omega, True, cu_seqlens=[0, 4, 16], seqlen_offsets=[0, 30], cp_size=ranks, cp_rank=rank
        )


transformers_cases()
numpy_cases()
path = os.path.join(os.path.dirname(os.path.abspath(__file__)), "rotary.json")
with open(path, "w") as f:
    f.write("[\n" + ",\n".join(json.dumps(c) for c in cases) + "\n]\n")
print(len(cases), "cases,", os.path.getsize(path), "bytes")
