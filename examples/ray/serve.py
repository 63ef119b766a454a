"""A patched model behind HTTP, by N replicas on one machine or many. It keeps no state between calls, so any
replica answers any call, and one that dies loses only the calls that it was answering.

    pip install -r requirements.txt
    MODEL=long OPS=librope_ops.so serve run serve:application         # in this folder
    curl -s localhost:8000 -d '{"prompt": "The sky is", "tokens": 32}'
    curl -s localhost:8000 -d '{"messages": [{"role": "user", "content": "Why is the sky blue?"}]}'

MODEL is a folder with model.onnx and tokenizer.json, as `rope-rewrite FOLDER -o long` writes it. OPS is the op
library; without it the model runs on its fallback, more slowly.
"""
import json
import os

os.environ.setdefault("ORT_DISABLE_TELEMETRY", "1")  # before the library is loaded

import jinja2
import numpy as np
import onnxruntime
from jinja2.sandbox import ImmutableSandboxedEnvironment
from ray import serve
from starlette.requests import Request
from starlette.responses import JSONResponse
from tokenizers import Tokenizer


class Refused(Exception):
    """A call that cannot be answered; the message is one sentence for the caller."""


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
        config, generation, self.words = (read(folder, name) for name in ("config.json", "generation_config.json", "tokenizer_config.json"))
        ends = generation.get("eos_token_id", config.get("eos_token_id"))
        self.ends = set(ends if isinstance(ends, list) else [ends])
        self.context = config["max_position_embeddings"]
        self.template = chat_template(folder, self.words)

    async def __call__(self, request: Request):
        try:
            ids, most = self.asked(await request.body())
        except Refused as error:
            return JSONResponse({"error": str(error)}, 400)
        new, end = self.generate(ids, most)
        return {"text": self.tokenizer.decode(new), "tokens": len(new), "end": end, "process": os.getpid()}

    def asked(self, body: bytes) -> tuple[list[int], int]:
        """The prompt's tokens, and how many are wanted at most."""
        try:
            asked = json.loads(body)
        except ValueError as error:
            raise Refused(f"The body is not JSON: {error}.")
        if not isinstance(asked, dict) or ("prompt" in asked) == ("messages" in asked):
            raise Refused('Send an object with either "prompt" or "messages".')
        most = asked.get("tokens", 256)
        if type(most) is not int or most < 1:
            raise Refused('"tokens" must be a whole number from 1 on.')
        if "messages" in asked:
            # The template writes the special tokens itself.
            ids = self.tokenizer.encode(self.conversation(asked["messages"]), add_special_tokens=False).ids
        elif isinstance(asked["prompt"], str):
            ids = self.tokenizer.encode(asked["prompt"]).ids
        else:
            raise Refused('"prompt" must be a text.')
        if not ids:
            raise Refused("The prompt has no tokens.")
        if len(ids) > self.context:
            raise Refused(f"The prompt has {len(ids)} tokens, and the model's context is {self.context}.")
        return ids, most

    def conversation(self, messages) -> str:
        if self.template is None:
            raise Refused('The model has no chat template: send a "prompt".')
        if not isinstance(messages, list) or not messages or not all(
                isinstance(m, dict) and isinstance(m.get("role"), str) and isinstance(m.get("content"), str) for m in messages):
            raise Refused('"messages" must be a list of objects with "role" and "content".')
        tokens = {name: value for name in ("bos_token", "eos_token") if isinstance(value := self.words.get(name), str)}
        try:
            return self.template.render(messages=messages, add_generation_prompt=True, **tokens)
        except jinja2.TemplateError as error:
            raise Refused(f"The model's chat template refuses the messages: {error}.")

    def generate(self, ids: list[int], most: int) -> tuple[list[int], str]:
        """Greedy, with a cache that grows; the whole state of a call is in this function. The text ends at the model's end
        token ("stop"), after the most tokens ("tokens") or where the context ends ("context")."""
        caches = {n: np.zeros((1, i.shape[1], 0, i.shape[3]), np.float32) for n, i in self.inputs.items() if n.startswith("past_key_values.")}
        new, step, held = [], ids, 0
        while len(new) < most:
            if held + len(step) > self.context:
                return new, "context"
            feeds = {"input_ids": np.array([step]), "attention_mask": np.ones((1, held + len(step)), np.int64), **caches}
            if "position_ids" in self.inputs:
                feeds["position_ids"] = np.arange(held, held + len(step))[None]
            results = dict(zip(self.outputs, self.session.run(None, feeds)))
            caches = {n: results[n.replace("past_key_values", "present")] for n in caches}
            held += len(step)
            step = [int(results["logits"][0, -1].argmax())]
            if step[0] in self.ends:
                return new, "stop"
            new += step
        return new, "tokens"


def read(folder: str, name: str) -> dict:
    """A configuration; most are optional."""
    path = os.path.join(folder, name)
    if not os.path.exists(path):
        return {}
    with open(path) as file:
        return json.load(file)


def chat_template(folder: str, words: dict):
    """As transformers renders it. A template may come from a download, so it runs in Jinja's sandbox."""
    path = os.path.join(folder, "chat_template.jinja")
    if os.path.exists(path):
        with open(path) as file:
            text = file.read()
    else:
        text = words.get("chat_template")
    if not isinstance(text, str):
        return None
    environment = ImmutableSandboxedEnvironment(trim_blocks=True, lstrip_blocks=True, extensions=["jinja2.ext.loopcontrols"])
    environment.globals["raise_exception"] = refuse
    return environment.from_string(text)


def refuse(message: str):
    raise jinja2.TemplateError(message)


application = Generator.bind(os.environ.get("MODEL", "."), os.environ.get("OPS", ""))
