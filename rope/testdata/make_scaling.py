"""Writes scaling.json: frequencies of the scalings that transformers does not have.

The formulas are those of docs/methods.md, written out once more in float64 and without
the package under test; numpy alone is needed.

    python make_scaling.py
"""

import json
import math
import os

import numpy as np


def default(n, base):
    return base ** (-np.arange(0, n, 2) / n)


def ramp(n, base, original, fast, slow):
    """0 where pairs turn more than `fast` times within the original context, 1 below `slow`."""
    pair = lambda turns: n * math.log(original / (turns * 2 * math.pi)) / (2 * math.log(base))
    low, high = max(math.floor(pair(fast)), 0), min(math.ceil(pair(slow)), n - 1)
    if low == high:
        high += 0.001
    return np.clip((np.arange(n // 2) - low) / (high - low), 0, 1)


def partial_ntk(n, base, original, factor, ntk_factor=1.0, extrapolation_factor=1.0):
    plain = default(n, base)
    ntk = default(n, base * factor ** (n / (n - 2)))
    m = (1 - ramp(n, base, original, 1.25, 0.75)) * ntk_factor
    omega = plain / factor * (1 - m) + ntk * m
    m = (1 - ramp(n, base, original, 16, 2)) * extrapolation_factor
    return omega * (1 - m) + plain * m


def ntk_by_parts(n, base, original, factor):
    rho = ramp(n, base, original, 32, 1)
    return default(n, base) * (1 - rho) + default(n, base) / factor * rho


def yarn_ratio(n, base, original, factor, tau=32.0):
    theta = default(n, base)
    gamma = np.clip((theta * original / (2 * math.pi) - 1) / (tau - 1), 0, 1)
    return (gamma + (1 - gamma) / factor) * theta


def resonance(n, base):
    return 2 * math.pi / np.round(2 * math.pi / default(n, base))


def beta_ary(n, base, factor, b=0.625):
    a = math.log(factor) / (n / 2) ** b
    m = np.arange(1, n // 2 + 1)
    return base ** (-2 * (m - 1) / n) * np.exp(-a * m**b)


def cases():
    for n, base, original in ((64, 10000.0, 2048), (128, 500000.0, 8192), (16, 10000.0, 64), (8, 100000.0, 4096)):
        common = {"n": n, "base": base}
        yield {**common, "spec": "resonance", "inv_freq": resonance(n, base)}
        yield {**common, "spec": "nope", "inv_freq": np.zeros(n // 2)}
        for factor in (1, 2, 8, 32):
            context = f"factor={factor},original_max_position_embeddings={original}"
            yield {**common, "spec": f"partial-ntk:{context}", "inv_freq": partial_ntk(n, base, original, factor)}
            yield {**common, "spec": f"ntk-by-parts:{context}", "inv_freq": ntk_by_parts(n, base, original, factor)}
            yield {**common, "spec": f"yarn:ramp=ratio,{context},attention_factor=1", "inv_freq": yarn_ratio(n, base, original, factor)}
            yield {**common, "spec": f"beta-ary:factor={factor}", "inv_freq": beta_ary(n, base, factor)}
        yield {**common, "spec": f"partial-ntk:{context},ntk_factor=0.5,extrapolation_factor=0.75",
               "inv_freq": partial_ntk(n, base, original, factor, 0.5, 0.75)}
        yield {**common, "spec": f"yarn:ramp=ratio,tau=8,{context},attention_factor=1", "inv_freq": yarn_ratio(n, base, original, factor, 8.0)}
        yield {**common, "spec": "beta-ary:factor=4,b=0.75", "inv_freq": beta_ary(n, base, 4, 0.75)}


if __name__ == "__main__":
    with open(os.path.join(os.path.dirname(os.path.abspath(__file__)), "scaling.json"), "w") as f:
        f.write("[\n" + ",\n".join(json.dumps({**c, "inv_freq": c["inv_freq"].tolist()}) for c in cases()) + "\n]\n")
