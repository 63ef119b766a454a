"""A folder of SmolLM2 by GenAI's builder and what rope-rewrite made of it, in ONNX Runtime GenAI.

    folder_genai.py ROPE_REWRITE FOLDER WORK

Without a method the text must be the original's, token for token, with shared buffers on and off, also where the model stands in
a folder onnx below genai_config.json. With YaRN x 2 a pass key is asked for in a prompt beyond the original's context_length, which
the original refuses.
"""
import json
import os
import shutil
import subprocess
import sys

import onnxruntime_genai as genai
from tokenizers import Tokenizer  # GenAI's own does not know the class that transformers 5 writes (TokenizersBackend), and gives -1

KEY, TOKENS = "71432", 9500
FILLER = "The grass is green. The sky is blue. The sun is yellow. Here we go. There and back again. "


def main(rewriter, folder, work):
    def patched(folder, name, *flags):
        to = os.path.join(work, name)
        subprocess.run([rewriter, folder, "-o", to, "--force", *flags], check=True, stdout=subprocess.DEVNULL)
        return to

    same, yarn = patched(folder, "same"), patched(folder, "yarn", "--scaling", "yarn:factor=2")
    hub = patched(below(folder, work), "below-same")
    good = True
    for shared in (True, False):
        want, got = (generate(share(f, shared, work), chat("Why is the sky blue?"), 64) for f in (folder, same))
        good &= say(got == want, f"64 tokens as the original's, buffers {'shared' if shared else 'not shared'}", got)
    want, got = (generate(f, chat("Why is the sky blue?"), 64) for f in (folder, hub))
    good &= say(got == want, "64 tokens as the original's, the model in a folder onnx", got)
    prompt = passkey(folder)
    try:
        text = generate(folder, prompt, 8)
    except Exception as error:
        text = " ".join(str(error).split())[:120]
    print(f"      the original, beyond its context: {text!r}", flush=True)
    text = generate(yarn, prompt, 8)
    good &= say(KEY in text, f"YaRN x 2, {TOKENS} tokens, the pass key {KEY}", text)
    sys.exit(0 if good else 1)


def say(good, what, got):
    print(f"{'pass' if good else 'FAIL'}  onnxruntime-genai {genai.__version__}: {what}: {got!r}"[:200], flush=True)
    return good


def share(folder, shared, work):
    """The folder with another past_present_share_buffer."""
    to = os.path.join(work, "share")
    shutil.rmtree(to, ignore_errors=True)
    shutil.copytree(folder, to, copy_function=os.link)
    path = os.path.join(to, "genai_config.json")
    with open(path) as f:
        config = json.load(f)
    config["search"]["past_present_share_buffer"] = shared
    os.remove(path)
    with open(path, "w") as f:
        json.dump(config, f)
    return to


def below(folder, work):
    """The folder as model hubs have it: the model in a folder onnx, which genai_config.json names."""
    to = os.path.join(work, "below")
    shutil.rmtree(to, ignore_errors=True)
    shutil.copytree(folder, to, copy_function=os.link)
    os.mkdir(os.path.join(to, "onnx"))
    for name in os.listdir(to):
        if ".onnx" in name:
            os.rename(os.path.join(to, name), os.path.join(to, "onnx", name))
    path = os.path.join(to, "genai_config.json")
    with open(path) as f:
        config = json.load(f)
    config["model"]["decoder"]["filename"] = "onnx/" + config["model"]["decoder"]["filename"]
    os.remove(path)
    with open(path, "w") as f:
        json.dump(config, f)
    return to


def passkey(folder):
    count = len(tokens_of(folder).encode(FILLER * 10).ids) / 10
    times = int((TOKENS - 100) / count)
    hidden = f"The pass key is {KEY}. Remember it. {KEY} is the pass key. "
    place = int(times * 0.3)
    text = FILLER * place + hidden + FILLER * (times - place)
    before = "There is a pass key hidden in a lot of irrelevant text. Find the pass key and memorise it. I will ask you about it.\n"
    return chat(f"{before}{text}\n\nWhat is the pass key number in the text above?") + "The pass key number in the text above is"


def chat(question):
    """SmolLM2's form."""
    system = "You are a helpful AI assistant named SmolLM, trained by Hugging Face"
    return f"<|im_start|>system\n{system}<|im_end|>\n<|im_start|>user\n{question}<|im_end|>\n<|im_start|>assistant\n"


def tokens_of(folder):
    return Tokenizer.from_file(os.path.join(folder, "tokenizer.json"))


def generate(folder, prompt, tokens):
    model, tokenizer = genai.Model(folder), tokens_of(folder)
    ids = tokenizer.encode(prompt).ids
    parameters = genai.GeneratorParams(model)
    parameters.set_search_options(max_length=len(ids) + tokens, do_sample=False)
    generator = genai.Generator(model, parameters)
    generator.append_tokens(ids)
    while not generator.is_done():
        generator.generate_next_token()
    return tokenizer.decode(list(generator.get_sequence(0)[len(ids):]))


if __name__ == "__main__":
    main(*sys.argv[1:])
