"""Times the CUDA kernels, without ONNX Runtime, beside torch on the same GPU.

    make cuda-bench
    python3 native/cuda/bench/compare.py build/librope_cuda_bench.so

Needs torch with CUDA. Prints one line for each case: milliseconds of both, their
ratio, the goal, and the largest difference from torch in float32 (relative to the
output's largest number, beside torch's own in the same precision).

    python3 native/cuda/bench/compare.py --device cpu build/native/cuda_test/librope_cuda_bench_emulated.so

runs small cases on the kernels emulated on the host: it checks this script and the
kernels' results, and times nothing.
"""

import argparse
import ctypes
import sys
import time

import torch

ELEMENTS = {torch.float32: 0, torch.float16: 1, torch.bfloat16: 2}


class BenchCall(ctypes.Structure):  # the same in calls.cc
    _fields_ = (
        [(n, ctypes.c_int64) for n in ("element", "batch", "length", "past", "capacity", "num_heads", "kv_num_heads", "head_size")]
        + [(n, ctypes.c_void_p) for n in ("query", "key", "value", "past_key", "past_value", "output", "present_key", "present_value", "frequencies")]
        + [("pairs", ctypes.c_int64), ("band_starts", ctypes.c_void_p), ("band_offsets", ctypes.c_void_p), ("bands", ctypes.c_int64)]
        + [("documents", ctypes.c_void_p), ("anchor", ctypes.c_int64), ("fast", ctypes.c_int64), ("window", ctypes.c_int64)]
    )


class Case:
    """One call: heads as in Llama 3 8B unless said otherwise, batch 1."""

    def __init__(self, device, dtype, length, past=0, heads=32, kv_heads=8, size=128, bands=((0, 0.0),), documents=None, fast=True, in_place=False):
        self.device, self.dtype, self.length, self.past = device, dtype, length, past
        self.heads, self.kv_heads, self.size = heads, kv_heads, size
        self.bands, self.documents = bands, documents
        draw = lambda h, n: torch.randn(1, h, n, size, device=device, dtype=torch.float32).to(dtype)
        self.query, self.key, self.value = draw(heads, length), draw(kv_heads, length), draw(kv_heads, length)
        total = past + length
        rows = total if in_place else past
        self.past_key, self.past_value = draw(kv_heads, rows), draw(kv_heads, rows)
        self.output = torch.empty_like(self.query)
        if in_place:
            self.present_key, self.present_value = self.past_key, self.past_value
        else:
            self.present_key = torch.empty(1, kv_heads, total, size, device=device, dtype=dtype)
            self.present_value = torch.empty_like(self.present_key)
        # What the C side reads on the host.
        self.frequencies = (10000.0 ** (-torch.arange(0, size, 2, dtype=torch.float64) / size)).float()
        self.starts = torch.tensor([b[0] for b in bands], dtype=torch.int64)
        self.offsets = torch.tensor([b[1] for b in bands], dtype=torch.float64)
        self.call = BenchCall(
            ELEMENTS[dtype], 1, length, past, total if in_place else 0, heads, kv_heads, size,
            *(t.data_ptr() for t in (self.query, self.key, self.value, self.past_key, self.past_value, self.output, self.present_key, self.present_value)),
            self.frequencies.data_ptr(), size // 2, self.starts.data_ptr(), self.offsets.data_ptr(), len(bands),
            documents.data_ptr() if documents is not None else None, 1, int(fast), 0,
        )

    def rotated(self, x, positions, dtype=torch.float32):
        """Rotated in float32, angles rounded to float32 as exporters have them."""
        angles = (positions.to(self.device, torch.float32)[:, None] * self.frequencies.to(self.device)).double()
        cosine, sine = angles.cos().float(), angles.sin().float()
        first, second = x.float().chunk(2, dim=-1)
        return torch.cat((first * cosine - second * sine, second * cosine + first * sine), dim=-1).to(dtype)

    def keys_and_values(self, dtype):
        positions = torch.arange(self.past, self.past + self.length)
        key = torch.cat((self.past_key[:, :, : self.past].to(dtype), self.rotated(self.key, positions, dtype)), dim=2)
        value = torch.cat((self.past_value[:, :, : self.past], self.value), dim=2).to(dtype)
        return key, value

    def reference(self, places, dtype=torch.float32):
        """Attention of some queries, every score written out, in the given precision."""
        key, value = self.keys_and_values(self.dtype if dtype != torch.float32 else torch.float32)
        group = self.heads // self.kv_heads
        key, value = (t.repeat_interleave(group, dim=1) for t in (key, value))
        i = (self.past + places)[:, None].to(self.device)
        j = torch.arange(self.past + self.length, device=self.device)[None, :]
        scores = None
        for start, offset in self.bands:
            query = self.rotated(self.query[:, :, places], self.past + places + offset, self.dtype if dtype != torch.float32 else torch.float32)
            of_band = (query.to(dtype) @ key.to(dtype).transpose(-1, -2)) * self.size**-0.5
            scores = of_band if scores is None else torch.where(i - j >= start, of_band, scores)
        hidden = j > i
        if self.documents is not None:
            ids = self.documents.to(self.device)
            own = ids[self.past + places][:, None]
            hidden = hidden | ((own != ids[None, :]) & (ids[None, :] != 0) & (own != -1))
        return torch.softmax(scores.float().masked_fill(hidden, float("-inf")), dim=-1).to(dtype) @ value.to(dtype)


def run(library, case):
    error = ctypes.create_string_buffer(1024)
    if not library.RopeBenchRun(ctypes.byref(case.call), error, len(error)):
        sys.exit(f"compare.py: {error.value.decode()}")


def milliseconds(device, body):
    """The median of enough runs to fill half a second."""
    if device == "cpu":
        start = time.perf_counter()
        body()
        return (time.perf_counter() - start) * 1e3
    for _ in range(3):
        body()
    times, spent = [], 0.0
    while spent < 500 or len(times) < 5:
        start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        start.record()
        body()
        end.record()
        end.synchronize()
        times.append(start.elapsed_time(end))
        spent += times[-1]
    return sorted(times)[len(times) // 2]


def difference(library, case):
    """Our largest difference from float32, and torch's in the case's precision."""
    run(library, case)
    if case.device == "cuda":
        torch.cuda.synchronize()
    places = torch.unique(torch.cat((torch.arange(min(8, case.length)), torch.randint(case.length, (24,)), torch.tensor([case.length - 1]))))
    truth = case.reference(places)
    scale = truth.abs().max().item()
    ours = (case.output[:, :, places].float() - truth).abs().max().item() / scale
    plain = (case.reference(places, case.dtype).float() - truth).abs().max().item() / scale
    return ours, plain


def report(name, library, case, other, unit, goal):
    ours, plain = difference(library, case)
    sentence = f"{name}: off by {ours:.1e} (torch {plain:.1e})"
    if case.device == "cuda":
        time_of_ours = milliseconds(case.device, lambda: run(library, case))
        sentence += f"; {time_of_ours:.3f} ms, {unit} {other(time_of_ours):.3f} (goal {goal})"
    print(sentence, flush=True)
    return ours <= 2 * max(plain, 2**-24)


def torch_causal(case):
    """Torch's FlashAttention on the same heads, keys rotated and repeated beforehand."""
    from torch.nn.attention import SDPBackend, sdpa_kernel

    key, value = case.keys_and_values(case.dtype)
    group = case.heads // case.kv_heads
    key, value = (t.repeat_interleave(group, dim=1).contiguous() for t in (key, value))

    def body():
        with sdpa_kernel(SDPBackend.FLASH_ATTENTION):
            torch.nn.functional.scaled_dot_product_attention(case.query, key, value, is_causal=True)

    return milliseconds(case.device, body)


def copy_bandwidth():
    """Bytes per millisecond that the card reads and writes when it copies 1 GiB."""
    source = torch.empty(1 << 30, dtype=torch.uint8, device="cuda")
    target = torch.empty_like(source)
    return 2 * source.numel() / milliseconds("cuda", lambda: target.copy_(source))


def steps(library, device, count):
    """Decodes so many tokens into one cache: the memory of the card must not grow, nor must results change."""
    sizes = {} if device == "cuda" else {"heads": 4, "kv_heads": 2, "size": 64}
    case = Case(device, torch.bfloat16, 1, past=count, in_place=True, **sizes)
    free = lambda: torch.cuda.mem_get_info()[0] if device == "cuda" else 0
    first = None
    for repeat in range(2):
        for past in range(count):
            case.call.past = past
            run(library, case)
            if repeat == 0 and past == min(100, count - 1):
                before = free()
        if device == "cuda":
            torch.cuda.synchronize()
        if first is None:
            first = case.output.clone()
    grown = before - free()
    same = torch.equal(first, case.output)
    print(f"2 × {count} tokens: {grown} bytes more than after the first hundred; the last token's output {'is the same' if same else 'DIFFERS'} the second time")
    return grown <= 0 and same


def packed(length, count):
    """Document ids: the anchor, then `count` documents of the same length."""
    ids = torch.arange(length) * count // length + 1
    ids[0] = 0
    return ids


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("library")
    parser.add_argument("--device", choices=("cuda", "cpu"), default="cuda")
    parser.add_argument("--first", action="store_true", help="one case, in seconds: a prefill of 8,192 tokens in float16")
    parser.add_argument("--steps", type=int, default=0, help="decode so many tokens and look for growth; nothing else is run")
    options = parser.parse_args()
    if options.device == "cuda" and not torch.cuda.is_available():
        sys.exit("compare.py: torch sees no GPU here; --device cpu checks results on the emulated kernels")
    library = ctypes.CDLL(options.library)
    library.RopeBenchRun.restype = ctypes.c_bool
    library.RopeBenchRun.argtypes = (ctypes.c_void_p, ctypes.c_char_p, ctypes.c_size_t)
    if options.steps:
        sys.exit(0 if steps(library, options.device, options.steps) else "compare.py: memory grew, or a result changed")
    on_gpu = options.device == "cuda"
    heads = {} if on_gpu else {"heads": 4, "kv_heads": 2, "size": 64}
    lengths = (2048, 8192, 16384, 65536) if on_gpu else (150,)
    kept = True
    torch.manual_seed(1)
    if options.first:
        case = Case(options.device, torch.float16, 8192 if on_gpu else 150, **heads)
        plain = torch_causal(case) if on_gpu else 0
        kept = report(f"prefill {case.length} {case.dtype} fast", library, case, lambda t: plain / t, "torch / ours", "0.9")
        sys.exit(0 if kept else "compare.py: the result is off by more than twice what torch is")
    for dtype in (torch.float16, torch.bfloat16):
        for length in lengths:
            for fast in (True, False):
                case = Case(options.device, dtype, length, fast=fast, **heads)
                plain = torch_causal(case) if on_gpu else 0
                precision = "fast" if fast else "exact"
                kept &= report(f"prefill {length} {dtype} {precision}", library, case, lambda t: plain / t, "torch / ours", "0.9")
                causal = milliseconds(options.device, lambda: run(library, case)) if on_gpu else 0
                third = length // 3
                case = Case(options.device, dtype, length, bands=((0, 0.0), (third, 128.0 - third)), fast=fast, **heads)
                kept &= report(f"STRING  {length} {dtype} {precision}", library, case, lambda t: t / causal, "over causal", "1.05")
            case = Case(options.device, dtype, length, documents=packed(length, 8), **heads)
            kept &= report(f"anchor  {length} {dtype} of 8 documents", library, case, lambda t: t / causal, "over causal", "0.3")
        for past in (16383, 65535) if on_gpu else (301,):
            case = Case(options.device, dtype, 1, past, in_place=True, **heads)
            read = 2 * case.past_key.numel() * case.past_key.element_size()
            bandwidth = copy_bandwidth() if on_gpu else 1
            kept &= report(f"decode  {past + 1} {dtype}", library, case, lambda t: read / t / bandwidth, "of copy bandwidth", "0.8")
    if not kept:
        sys.exit("compare.py: some results are off by more than twice what torch is")


if __name__ == "__main__":
    main()
