"""Times torch's scaled_dot_product_attention on the works of rope_bench, for docs/results/speed.md.

    python scripts/bench_sdpa.py [rounds]

One thread, float32, the processor's time, medians. It is a process of its own:
run it right after rope_bench on the same quiet machine, and mind the peak beside it.
"""

import statistics
import sys
import time

import torch

WORKS = [
    # name, query heads, key heads, head size, new tokens, keys
    ("prefill 32/8 d128 L2048", 32, 8, 128, 2048, 2048),
    ("prefill 9/3 d64 L4096", 9, 3, 64, 4096, 4096),
    ("decode 32/8 d128 16384 keys", 32, 8, 128, 1, 16384),
    ("decode 9/3 d64 16384 keys", 9, 3, 64, 1, 16384),
]


def main():
    rounds = int(sys.argv[1]) if len(sys.argv) > 1 else 5
    torch.set_num_threads(1)
    torch.manual_seed(1)
    for name, heads, kv_heads, size, new, keys in WORKS:
        q = torch.randn(1, heads, new, size)
        k = torch.randn(1, kv_heads, keys, size)
        v = torch.randn(1, kv_heads, keys, size)
        times = []
        for round in range(rounds + 1):
            start = time.process_time()
            with torch.inference_mode():
                torch.nn.functional.scaled_dot_product_attention(q, k, v, is_causal=new > 1, enable_gqa=True)
            if round > 0:
                times.append(time.process_time() - start)
        t = statistics.median(times)
        pairs = new * (new + 1) / 2 if new > 1 else keys
        flops = 4 * heads * size * pairs / t / 1e9
        bytes_read = 2 * kv_heads * size * keys * 4 / t / 1e9
        print(f"{name}: {1e3 * t:.2f} ms, {flops:.1f} GF/s, {bytes_read:.2f} GB/s of K and V (torch {torch.__version__})")


if __name__ == "__main__":
    main()
