"""ONNX Runtime GenAI, with the caches in shared buffers as it has them on a CPU.

    genai.py FOLDER LENGTH TOKENS THREADS CAPACITY

FOLDER holds a model of GenAI's builder. Its genai_config.json is read, and the number of threads put into it in a folder
of its own.
"""
import json
import os
import sys
import tempfile

import onnxruntime_genai

from measure import measure, prompt


def main(folder, length, tokens, threads, capacity):
    with open(os.path.join(folder, "genai_config.json")) as file:
        config = json.load(file)
    config["model"]["decoder"].setdefault("session_options", {})["intra_op_num_threads"] = threads
    with tempfile.TemporaryDirectory() as place:
        for name in os.listdir(folder):
            if name != "genai_config.json":
                os.symlink(os.path.join(os.path.abspath(folder), name), os.path.join(place, name))
        with open(os.path.join(place, "genai_config.json"), "w") as file:
            json.dump(config, file)
        model = onnxruntime_genai.Model(place)
    parameters = onnxruntime_genai.GeneratorParams(model)
    parameters.set_search_options(max_length=capacity, do_sample=False)
    onnxruntime_genai.Generator(model, parameters).append_tokens(prompt(16))  # the first call is slower than the others
    generator = onnxruntime_genai.Generator(model, parameters)

    def forward(ids):
        if len(ids) == length:
            generator.append_tokens(ids)
        generator.generate_next_token()  # computes the token before, where there is one
        return int(generator.get_sequence(0)[-1])

    measure(length, tokens, forward)


if __name__ == "__main__":
    main(sys.argv[1], *map(int, sys.argv[2:]))
