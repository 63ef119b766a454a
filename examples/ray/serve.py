"""A patched model behind HTTP, by N replicas on one machine or many. It keeps no state between calls, so any
replica answers any call, and one that dies loses only the calls that it was answering.

    pip install "ray[serve]" onnxruntime tokenizers
    MODEL=long OPS=librope_ops.so serve run serve:application         # in this folder
    curl -s localhost:8000 -d '{"prompt": "Why is the sky blue?", "tokens": 32}'

MODEL is a folder with model.onnx and tokenizer.json, as `rope-rewrite FOLDER -o long` writes it. OPS is the op
library; without it the model runs on its fallback, more slowly.
"""
import os

os.environ.setdefault("ORT_DISABLE_TELEMETRY", "1")  # before the library is loaded

import numpy as np
import onnxruntime
from ray import serve
from starlette.requests import Request
from tokenizers import Tokenizer


@serve.deployment(num_replicas=int(os.environ.get("REPLICAS", "2")), ray_actor_options={"num_cpus": float(os.environ.get("CPUS", "1"))},
                  health_check_period_s=1, health_check_timeout_s=5)
class Generator:
    def __init__(self, folder: str, library: str):
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = 1  # replicas share the machine
        if library:
            options.register_custom_ops_library(library)
        self.session = onnxruntime.InferenceSession(os.path.join(folder, "model.onnx"), options)
        self.tokenizer = Tokenizer.from_file(os.path.join(folder, "tokenizer.json"))
        self.inputs = {i.name: i for i in self.session.get_inputs()}
        self.outputs = [o.name for o in self.session.get_outputs()]

    async def __call__(self, request: Request) -> dict:
        asked = await request.json()
        ids = self.tokenizer.encode(asked["prompt"]).ids
        new = self.generate(ids, int(asked.get("tokens", 32)))
        return {"text": self.tokenizer.decode(new), "tokens": len(new), "process": os.getpid()}

    def generate(self, ids: list[int], most: int) -> list[int]:
        """Greedy, with a cache that grows; the whole state of a call is in this function."""
        caches = {n: np.zeros((1, i.shape[1], 0, i.shape[3]), np.float32) for n, i in self.inputs.items() if n.startswith("past_key_values.")}
        new, step, held = [], ids, 0
        for _ in range(most):
            feeds = {"input_ids": np.array([step]), "attention_mask": np.ones((1, held + len(step)), np.int64), **caches}
            if "position_ids" in self.inputs:
                feeds["position_ids"] = np.arange(held, held + len(step))[None]
            results = dict(zip(self.outputs, self.session.run(None, feeds)))
            caches = {n: results[n.replace("past_key_values", "present")] for n in caches}
            held += len(step)
            step = [int(results["logits"][0, -1].argmax())]
            new += step
        return new


application = Generator.bind(os.environ.get("MODEL", "."), os.environ.get("OPS", ""))
