"""Models of GenAI's builder, as the targets wrote them, generate what the unpatched model generates, in ONNX Runtime
GenAI with shared buffers and without; and the exports of others, which grow their caches.

    genai.py ROPE_REWRITE LIBRARY TESTDATA WORK
"""
import json
import os
import shutil
import subprocess
import sys

import onnxruntime_genai as genai

PROMPT, TOKENS = [5, 9, 17, 4, 31, 8, 22], 40
MODELS = ("llama__genai-fp32", "llama__genai-int4", "llama__optimum")
TARGETS = {
    "ops": [],
    "onnx": ["--target", "onnx", "--angles", "exact"],  # which the model's own tables cannot hold: the op's body
    "contrib": ["--target", "contrib", "--context", "64"],
    "last logits": ["--logits", "last"],
}


def main(rewriter, library, testdata, work):
    failed = 0
    for model in MODELS:
        folder = os.path.join(testdata, "models", model)
        for shared in (True, False) if "genai" in model else (False,):
            want = generate(place(work, folder, os.path.join(folder, "model.onnx"), shared))
            for target, flags in TARGETS.items():
                patched = os.path.join(work, f"{model}.{target}.onnx")
                subprocess.run([rewriter, os.path.join(folder, "model.onnx"), "-o", patched, "--force", *flags], check=True,
                               stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
                failed += not report(model, target, shared, place(work, folder, patched, shared, library if target in ("ops", "last logits") else None), want)
    sys.exit(1 if failed else 0)


def report(model, target, shared, folder, want):
    caches = "shared buffers" if shared else "growing caches"
    try:
        got = generate(folder)
    except Exception as error:
        got = " ".join(str(error).split())[:200]
    good = got == want
    text = f"{len(want)} tokens" if good else f"{got} instead of {want}"
    print(f"{'pass' if good else 'FAIL':5} {'onnxruntime-genai ' + genai.__version__:34} {model:24} {target:10} {caches}: {text}", flush=True)
    return good


def place(work, folder, model, shared, library=None):
    """A folder as GenAI reads it."""
    to = os.path.join(work, "folder")
    shutil.rmtree(to, ignore_errors=True)
    os.makedirs(to)
    shutil.copy(model, os.path.join(to, "model.onnx"))
    config = configuration(folder)
    config["search"]["past_present_share_buffer"] = shared
    if library:
        shutil.copy(library, os.path.join(to, "librope_ops.so"))
        config["model"]["decoder"].setdefault("session_options", {})["custom_ops_library"] = "librope_ops.so"
    with open(os.path.join(to, "genai_config.json"), "w") as f:
        json.dump(config, f)
    return to


def configuration(folder):
    """The export's own, or for exports of others that of GenAI's builder with their names."""
    path = os.path.join(folder, "genai_config.json")
    own = os.path.exists(path)
    with open(path if own else os.path.join(os.path.dirname(folder), "llama__genai-fp32", "genai_config.json")) as f:
        config = json.load(f)
    decoder = config["model"]["decoder"]
    decoder["filename"] = "model.onnx"
    if not own:
        decoder["inputs"]["position_ids"] = "position_ids"
    return config


def generate(folder):
    model = genai.Model(folder)
    parameters = genai.GeneratorParams(model)
    parameters.set_search_options(max_length=len(PROMPT) + TOKENS, min_length=len(PROMPT) + TOKENS, do_sample=False)
    generator = genai.Generator(model, parameters)
    generator.append_tokens(PROMPT)
    while not generator.is_done():
        generator.generate_next_token()
    return [int(t) for t in generator.get_sequence(0)]


if __name__ == "__main__":
    main(*sys.argv[1:])
