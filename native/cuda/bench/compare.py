"""Times the CUDA kernels, without ONNX Runtime, beside torch on the same GPU.

    make cuda-bench
    python3 native/cuda/bench/compare.py build/librope_cuda_bench.so

Needs torch with CUDA. Prints one line for each case: milliseconds of a call, a
ratio, its goal, and the largest difference from torch in float32 (relative to the
output's largest number, beside torch's own in the same precision). Calls are timed
one behind the other, as the layers of a model are: the host is not waited for.

    python3 native/cuda/bench/compare.py --device cpu build/native/cuda_test/librope_cuda_bench_emulated.so

runs small cases on the kernels emulated on the host: it checks this script and the
kernels' results, and times nothing.
"""

import argparse
import ctypes
import sys
import time

import torch

SECONDS = 0.5  # that a figure is measured for
DEVICE_INPUTS = False  # a kernel plans each call
ELEMENTS = {torch.float32: 0, torch.float16: 1, torch.bfloat16: 2}


class BenchCall(ctypes.Structure):  # the same in calls.cc
    _fields_ = (
        [(n, ctypes.c_int64) for n in ("element", "batch", "length", "past", "capacity", "num_heads", "kv_num_heads", "head_size")]
        + [(n, ctypes.c_void_p) for n in ("query", "key", "value", "past_key", "past_value", "output", "present_key", "present_value", "frequencies")]
        + [("pairs", ctypes.c_int64), ("band_starts", ctypes.c_void_p), ("band_offsets", ctypes.c_void_p), ("bands", ctypes.c_int64)]
        + [("documents", ctypes.c_void_p), ("anchor", ctypes.c_int64), ("fast", ctypes.c_int64), ("window", ctypes.c_int64), ("device_inputs", ctypes.c_int64)]
    )


class Case:
    """One call: heads as in Llama 3 8B unless said otherwise."""

    def __init__(self, device, dtype, length, past=0, batch=1, heads=32, kv_heads=8, size=128, bands=((0, 0.0),), documents=None, fast=True, in_place=False):
        self.device, self.dtype, self.length, self.past = device, dtype, length, past
        self.heads, self.kv_heads, self.size = heads, kv_heads, size
        self.bands, self.documents = bands, documents
        draw = lambda h, n: torch.randn(batch, h, n, size, device=device, dtype=torch.float32).to(dtype)
        self.query, self.key, self.value = draw(heads, length), draw(kv_heads, length), draw(kv_heads, length)
        total = past + length
        rows = total if in_place else past
        self.past_key, self.past_value = draw(kv_heads, rows), draw(kv_heads, rows)
        self.output = torch.empty_like(self.query)
        if in_place:
            self.present_key, self.present_value = self.past_key, self.past_value
        else:
            self.present_key = torch.empty(batch, kv_heads, total, size, device=device, dtype=dtype)
            self.present_value = torch.empty_like(self.present_key)
        # What the C side reads on the host.
        self.frequencies = (10000.0 ** (-torch.arange(0, size, 2, dtype=torch.float64) / size)).float()
        self.starts = torch.tensor([b[0] for b in bands], dtype=torch.int64)
        self.offsets = torch.tensor([b[1] for b in bands], dtype=torch.float64)
        self.ids = documents.to(device) if documents is not None and DEVICE_INPUTS else documents
        self.call = BenchCall(
            ELEMENTS[dtype], batch, length, past, total if in_place else 0, heads, kv_heads, size,
            *(t.data_ptr() for t in (self.query, self.key, self.value, self.past_key, self.past_value, self.output, self.present_key, self.present_value)),
            self.frequencies.data_ptr(), size // 2, self.starts.data_ptr(), self.offsets.data_ptr(), len(bands),
            self.ids.data_ptr() if documents is not None else None, 1, int(fast), 0, int(DEVICE_INPUTS),
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


def milliseconds(device, *bodies):
    """Of a body, which are called by turns: the median of so many rounds that they fill SECONDS."""
    if device == "cpu":
        start = time.perf_counter()
        bodies[0]()
        return (time.perf_counter() - start) * 1e3

    def timed(rounds):
        start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        start.record()
        for _ in range(rounds):
            for body in bodies:
                body()
        end.record()
        end.synchronize()
        return start.elapsed_time(end)

    timed(1)
    rounds = max(1, min(100, int(4 / timed(1))))  # of about 4 ms
    times, spent = [], 0.0
    while spent < 1e3 * SECONDS or len(times) < 3:
        times.append(timed(rounds) / rounds / len(bodies))
        spent += times[-1] * rounds * len(bodies)
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


def report(name, library, cases, other, unit, goal):
    """Whether the result is near enough, and milliseconds, of cases that differ in their tensors alone: called by
    turns, they find none of them in the GPU's cache."""
    ours, plain = difference(library, cases[0])
    time_of_ours = 0.0
    sentence = f"{name}: off by {ours:.1e} (torch {plain:.1e})"
    if cases[0].device == "cuda":
        time_of_ours = milliseconds("cuda", *((lambda case=case: run(library, case)) for case in cases))
        sentence += f"; {time_of_ours:.3f} ms, {unit} {other(time_of_ours):.3f} (goal {goal})"
    print(sentence, flush=True)
    return ours <= 2 * max(plain, 2**-24), time_of_ours


def torch_causal(case, backend="FLASH_ATTENTION"):
    """Torch's attention on the same heads, keys rotated and repeated beforehand."""
    from torch.nn.attention import SDPBackend, sdpa_kernel

    key, value = case.keys_and_values(case.dtype)
    group = case.heads // case.kv_heads
    key, value = (t.repeat_interleave(group, dim=1).contiguous() for t in (key, value))

    def body():
        with sdpa_kernel(getattr(SDPBackend, backend)):
            torch.nn.functional.scaled_dot_product_attention(case.query, key, value, is_causal=True)

    return milliseconds(case.device, body)


def kernels(library, name, case):
    """Prints how long each kernel of a call takes, as the profiler saw it."""
    from torch.profiler import ProfilerActivity, profile

    run(library, case)
    torch.cuda.synchronize()
    with profile(activities=[ProfilerActivity.CUDA]) as seen:
        for _ in range(5):
            run(library, case)
        torch.cuda.synchronize()
    for event in sorted(seen.key_averages(), key=lambda e: -e.device_time_total):
        if event.device_time_total == 0:  # what the host called
            continue
        kernel = event.key.replace("rope::cuda::", "")
        print(f"{name}: {event.device_time_total / 5:10.1f} µs in {event.count / 5:g} × {kernel[:90]}", flush=True)


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


def cases_of_decoding(device, dtype, past, batch, heads):
    """As many as hold 1 GiB of cache."""
    first = Case(device, dtype, 1, past, batch=batch, in_place=True, **heads)
    read = 2 * first.past_key.numel() * first.past_key.element_size()
    count = min(8, -(-(1 << 30) // read)) if device == "cuda" else 1
    return [first] + [Case(device, dtype, 1, past, batch=batch, in_place=True, **heads) for _ in range(count - 1)], read


def profile_all(library, decode):
    """Where the time of a call goes, kernel by kernel."""
    string = lambda n: ((0, 0.0), (n // 3, 128.0 - n // 3))
    for dtype, fast in ((torch.float16, True), (torch.float16, False)):
        precision = "fast" if fast else "exact"
        for n in () if decode else (2048, 16384):
            kernels(library, f"prefill {n} {precision}", Case("cuda", dtype, n, fast=fast))
            kernels(library, f"STRING {n} {precision}", Case("cuda", dtype, n, bands=string(n), fast=fast))
            kernels(library, f"anchor {n} {precision}", Case("cuda", dtype, n, documents=packed(n, 8), fast=fast))
        for past in (16383, 65535):
            kernels(library, f"decode {past + 1} {precision}", Case("cuda", dtype, 1, past, in_place=True, fast=fast))
        kernels(library, f"decode 16 × 16384 {precision}", Case("cuda", dtype, 1, 16383, batch=16, in_place=True, fast=fast))


def main():
    global SECONDS, DEVICE_INPUTS
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("library")
    parser.add_argument("--device", choices=("cuda", "cpu"), default="cuda")
    parser.add_argument("--first", action="store_true", help="one case, in seconds: a prefill of 8,192 tokens in float16")
    parser.add_argument("--profile", action="store_true", help="how long each kernel takes; nothing else is run")
    parser.add_argument("--decode", action="store_true", help="decoding alone")
    parser.add_argument("--types", default="float16,bfloat16", help="of tensors")
    parser.add_argument("--seconds", type=float, default=SECONDS, help="that each figure is measured for")
    parser.add_argument("--steps", type=int, default=0, help="decode so many tokens and look for growth; nothing else is run")
    parser.add_argument("--device-inputs", action="store_true", help="document ids lie on the GPU, and a kernel plans each call there")
    options = parser.parse_args()
    SECONDS, DEVICE_INPUTS = options.seconds, options.device_inputs
    if options.device == "cuda" and not torch.cuda.is_available():
        sys.exit("compare.py: torch sees no GPU here; --device cpu checks results on the emulated kernels")
    library = ctypes.CDLL(options.library)
    library.RopeBenchRun.restype = ctypes.c_bool
    library.RopeBenchRun.argtypes = (ctypes.c_void_p, ctypes.c_char_p, ctypes.c_size_t)
    if options.steps:
        sys.exit(0 if steps(library, options.device, options.steps) else "compare.py: memory grew, or a result changed")
    on_gpu = options.device == "cuda"
    torch.manual_seed(1)
    if options.profile:
        sys.exit(profile_all(library, options.decode) if on_gpu else "compare.py: --profile wants a GPU")
    heads = {} if on_gpu else {"heads": 4, "kv_heads": 2, "size": 64}
    kept = True
    if options.first:
        case = Case(options.device, torch.float16, 8192 if on_gpu else 150, **heads)
        plain = torch_causal(case) if on_gpu else 0
        kept, _ = report(f"prefill {case.length} {case.dtype} fast", library, [case], lambda t: plain / t, "torch / ours", "0.9")
        sys.exit(0 if kept else "compare.py: the result is off by more than twice what torch is")
    bandwidth = copy_bandwidth() if on_gpu else 1
    if on_gpu:
        print(f"copying moves {bandwidth / 1e9:.2f} TB/s, read and written")
    lengths = ((2048, 1), (2048, 16), (8192, 1), (16384, 1), (65536, 1)) if on_gpu else ((150, 1), (70, 2))
    lengths = () if options.decode else lengths
    for dtype in (getattr(torch, name) for name in options.types.split(",")):
        for length, batch in lengths:
            size = f"{batch} × {length} {dtype}"
            for fast in (True, False):
                case = Case(options.device, dtype, length, batch=batch, fast=fast, **heads)
                plain = torch_causal(case) if on_gpu else 0
                if on_gpu and fast:
                    operations = 2 * batch * case.heads * length * length * case.size  # half of them are hidden
                    cudnn = torch_causal(case, "CUDNN_ATTENTION")
                    print(f"torch   {size}: FlashAttention-2 {plain:.3f} ms, {operations / plain / 1e9:.0f} TFLOP/s; "
                          f"cuDNN {cudnn:.3f} ms, {operations / cudnn / 1e9:.0f}", flush=True)
                precision = "fast" if fast else "exact"
                near, causal = report(f"prefill {size} {precision}", library, [case], lambda t: plain / t, "torch / ours", "0.9")
                fast_causal = causal if fast else fast_causal
                kept &= near
                third = length // 3
                case = Case(options.device, dtype, length, batch=batch, bands=((0, 0.0), (third, 128.0 - third)), fast=fast, **heads)
                kept &= report(f"STRING  {size} {precision}", library, [case], lambda t: t / causal, "over causal", "1.05")[0]
            if batch > 1:
                continue
            case = Case(options.device, dtype, length, documents=packed(length, 8), **heads)
            kept &= report(f"anchor  1 × {length} {dtype} of 8 documents", library, [case], lambda t: t / fast_causal, "over causal", "0.3")[0]
        for past, batch in ((16383, 1), (65535, 1), (16383, 16)) if on_gpu else ((301, 1), (70, 2)):
            cases, read = cases_of_decoding(options.device, dtype, past, batch, heads)
            kept &= report(f"decode  {batch} × {past + 1} {dtype}", library, cases, lambda t: read / t / bandwidth, "of copy bandwidth", "0.8")[0]
    if not kept:
        sys.exit("compare.py: some results are off by more than twice what torch is")


if __name__ == "__main__":
    main()
