"""Runs a whole decoder under ONNX Runtime's CUDA execution provider: as it was exported, and patched.

    make build cuda
    python3 scripts/big_models.py MODELS llama-1b
    build/rope-rewrite MODELS/llama-1b/model.onnx -o MODELS/llama-1b/growing.onnx --precision fast
    build/rope-rewrite MODELS/llama-1b/model.onnx -o MODELS/llama-1b/fixed.onnx --precision fast --kv fixed:capacity=4096
    python3 native/cuda/bench/model_gpu.py build/librope_ops_cuda.so MODELS/llama-1b

Needs numpy, torch and onnxruntime-gpu. A prompt of 2,000 tokens and then 40 single tokens, the same for all; caches stay
on the GPU. Prints the milliseconds of the prompt (the second time) and of a token (the median), and how far the
logits of the last tokens are from the exported model's in this precision, relative to the largest.
"""

import argparse
import os
import sys
import time

import numpy as np
import onnxruntime as ort
import torch

from sessions import CUDA, median, need, session

PROMPT, STEPS = 2000, 40
TYPES = {"tensor(float16)": torch.float16, "tensor(float)": torch.float32}
NUMPY = {torch.float16: np.float16, torch.float32: np.float32, torch.int64: np.int64, torch.int32: np.int32}


class Decoder:
    def __init__(self, path, library=None, device_inputs=False, graph=False):
        self.session = session(path, library, device_inputs=device_inputs, graph=graph, fallback=True)
        self.inputs = {i.name: i for i in self.session.get_inputs()}
        self.numbers = "cuda" if device_inputs else "cpu"
        caches = [i for name, i in self.inputs.items() if name.startswith("past_key_values.")]
        self.element, self.fixed = TYPES[caches[0].type], "cache_length" in self.inputs
        self.capacity = caches[0].shape[2] if self.fixed else 0
        self.past = {c.name: torch.zeros(1, c.shape[1], self.capacity, c.shape[3], dtype=self.element, device="cuda") for c in caches}
        self.vocabulary, self.length, self.steps = self.session.get_outputs()[0].shape[2], 0, {}

    def feeds(self, ids):
        whole = lambda numbers: torch.tensor(numbers, dtype=torch.int64)[None]
        mask = self.capacity or self.length + len(ids)
        made = {"input_ids": whole(ids), "attention_mask": torch.ones(1, mask, dtype=torch.int64),
                "position_ids": whole(list(range(self.length, self.length + len(ids)))),
                "cache_length": torch.tensor([self.length], dtype=torch.int32)}
        return {n: t for n, t in made.items() if n in self.inputs}

    def bind(self, binding, how, name, tensor):
        how(name, tensor.device.type, 0, NUMPY[tensor.dtype], list(tensor.shape), tensor.data_ptr())

    def prepare(self, ids):
        """The tensors of a call and their binding: the same ones for each single token where numbers are on the GPU. Elsewhere
        a binding copies what is on the host, once."""
        feeds = self.feeds(ids)
        if self.numbers == "cuda" and len(ids) in self.steps:
            tensors, binding = self.steps[len(ids)]
            for name, tensor in feeds.items():
                tensors[name].copy_(tensor)
            return tensors, binding
        tensors = {n: t.to(self.numbers) for n, t in feeds.items()}
        tensors["logits"] = torch.empty(1, len(ids), self.vocabulary, dtype=self.element, device="cuda")
        binding = self.session.io_binding()
        for name, tensor in tensors.items():
            self.bind(binding, binding.bind_output if name == "logits" else binding.bind_input, name, tensor)
        for name, past in self.past.items():
            self.bind(binding, binding.bind_input, name, past)
            present = past
            if not self.fixed:
                present = torch.empty(1, past.shape[1], past.shape[2] + len(ids), past.shape[3], dtype=self.element, device="cuda")
                tensors[name] = present
            self.bind(binding, binding.bind_output, name.replace("past_key_values.", "present."), present)
        self.steps[len(ids)] = tensors, binding
        return tensors, binding

    def step(self, ids):
        """The last token's logits, and the milliseconds that they took."""
        tensors, binding = self.prepare(ids)
        options = ort.RunOptions()
        options.add_run_config_entry("gpu_graph_id", "1" if len(ids) == 1 else "-1")
        torch.cuda.synchronize()
        start = time.perf_counter()
        self.session.run_with_iobinding(binding, options)
        torch.cuda.synchronize()
        took = (time.perf_counter() - start) * 1e3
        if not self.fixed:
            self.past = {n: tensors[n] for n in self.past}
        self.length += len(ids)
        return tensors["logits"][0, -1].float().cpu().clone(), took

    def forget(self):
        self.length = 0
        if not self.fixed:
            self.past = {n: p[:, :, :0].contiguous() for n, p in self.past.items()}


def run(decoder):
    random = np.random.default_rng(1)
    prompt = random.integers(0, decoder.vocabulary, PROMPT).tolist()
    decoder.step(prompt)
    decoder.forget()
    last, of_prompt = decoder.step(prompt)
    logits, times = [last], []
    for token in random.integers(0, decoder.vocabulary, STEPS).tolist():
        last, took = decoder.step([token])
        logits.append(last)
        times.append(took)
    return torch.stack(logits), of_prompt, median(times)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("library")
    parser.add_argument("folder", help="with model.onnx, growing.onnx and fixed.onnx")
    options = parser.parse_args()
    need(CUDA)
    at = lambda name: os.path.join(options.folder, name)
    ways = {
        "as exported": (at("model.onnx"), {}),
        "patched, growing cache": (at("growing.onnx"), {"library": options.library}),
        "patched, fixed cache": (at("fixed.onnx"), {"library": options.library}),
        "patched, fixed cache, numbers on the GPU": (at("fixed.onnx"), {"library": options.library, "device_inputs": True}),
        "patched, fixed cache, CUDA graph": (at("fixed.onnx"), {"library": options.library, "device_inputs": True, "graph": True}),
    }
    first, failed = None, False
    for name, (path, settings) in ways.items():
        try:
            logits, of_prompt, of_token = run(Decoder(path, **settings))
        except Exception as error:  # the other ways are worth knowing
            print(f"{name}: FAILED: {str(error)[:600]}", flush=True)
            failed = True
            continue
        first = logits if first is None else first
        off = float((logits - first).abs().max() / first.abs().max())
        same = int((logits.argmax(1) == first.argmax(1)).sum())
        failed |= not off <= 2e-2
        print(f"{name}: prompt {of_prompt:.1f} ms, token {of_token:.2f} ms; logits off by {off:.1e}, the same largest in {same} of {len(logits)}", flush=True)
    if failed:
        sys.exit("model_gpu.py: not all ways gave the exported model's logits")


if __name__ == "__main__":
    main()
