"""Asks a folder of a chat model one question by ONNX Runtime GenAI: ask.py FOLDER QUESTION"""
import sys

import onnxruntime_genai as genai
from tokenizers import Tokenizer

folder, question = sys.argv[1:]
model, tokenizer = genai.Model(folder), Tokenizer.from_file(folder + "/tokenizer.json")
ids = tokenizer.encode(f"<|im_start|>user\n{question}<|im_end|>\n<|im_start|>assistant\n").ids
parameters = genai.GeneratorParams(model)
parameters.set_search_options(max_length=len(ids) + 48, do_sample=False)
generator = genai.Generator(model, parameters)
generator.append_tokens(ids)
while not generator.is_done():
    generator.generate_next_token()
print(tokenizer.decode(list(generator.get_sequence(0)[len(ids):])))
