"""Make small exports whose attention has a bias by distance, and what they must give; needs torch 2.11 and transformers 5.17.

    export_distances.py TESTDATA [NAME ...] [--half]

Writes to TESTDATA/models, by torch.onnx.export(dynamo=True), all but the last two with golden.npz:

    bloom__dynamo18                ALiBi of four heads, positions counted by the padding mask, with a cache
    mpt__dynamo18                  ALiBi of three heads, a table of 64 distances cut at its end, with a cache
    falcon_rw__dynamo18            ALiBi divided by √head size and added to the mask, in float32 as BLOOM has it, with a cache:
                                   transformers multiplies it in bfloat16, for which ONNX Runtime has no kernel on the CPU
    t5_decoder__dynamo18           T5's causal buckets of distances: the decoder's stack without cross-attention, with a cache
    t5_encoder__dynamo18-nocache   T5's buckets for keys on both sides
    t5__dynamo18                   T5's decoder with a cache; keys and values of the cross-attention are inputs
    t5__dynamo18-nocache           the same without a cache; the encoder's states are an input

--half writes bloom__dynamo18-fp16 and t5_decoder__dynamo18-fp16 instead: model.half(), without goldens of their own.

golden.npz has ids [2, 48], documents [2, 48] and mask [2, 48], whose second row is padded on the left; mask_hole has four
hidden tokens more in the middle of each row. Logits [2, 48, vocabulary] are transformers' in float32:

    plain, hole        as exported, under mask and under mask_hole
    window8            a query sees the keys less than 8 tokens before it (on both sides in the encoder)
    first_keys         the same and the first 2 keys of each row, padding not counted
    anchor, intra      a query sees its document, with anchor also document 0
    linear4            slopes divided by 4 (ALiBi only)
"""
import os
import sys

import numpy as np
import onnx
import torch
import transformers
from transformers.cache_utils import DynamicCache, DynamicLayer, EncoderDecoderCache
from transformers.models.bloom import modeling_bloom
from transformers.models.falcon import modeling_falcon
from transformers.models.mpt import modeling_mpt
from transformers.models.t5 import modeling_t5

import small
from export_dynamo import without_metadata

VOCABULARY, LAYERS, LENGTH, PAD = 32, 2, 48, 10
WINDOW, FIRST, FACTOR = 8, 2, 4
LIMIT = 1e-4  # how far decoding may be from one call
TOKENS = dict(vocab_size=VOCABULARY, bos_token_id=1, eos_token_id=2, pad_token_id=0)
T5 = dict(TOKENS, d_model=32, d_kv=8, d_ff=32, num_layers=LAYERS, num_heads=4, relative_attention_num_buckets=16, relative_attention_max_distance=24)
LINEAR = ("plain", "window8", "first_keys", "anchor", "intra", "linear4", "hole")


class T5Text(torch.nn.Module):
    """A stack of T5 with the embedding as its vocabulary's matrix."""

    def __init__(self, decoder):
        super().__init__()
        config = transformers.T5Config(**T5, is_decoder=decoder, is_encoder_decoder=False, use_cache=decoder)
        self.config, self.decoder = config, decoder
        self.stack = modeling_t5.T5Stack._from_config(config, attn_implementation="eager")

    def forward(self, input_ids, attention_mask, past_key_values=None, use_cache=False, **more):
        out = self.stack(input_ids=input_ids, attention_mask=attention_mask, past_key_values=past_key_values, use_cache=use_cache or None, **more)
        logits = out.last_hidden_state @ self.stack.embed_tokens.weight.T * self.config.d_model ** -0.5
        return transformers.modeling_outputs.CausalLMOutputWithPast(logits=logits, past_key_values=out.past_key_values)


def auto(config, attention="eager"):
    return transformers.AutoModelForCausalLM.from_config(config, attn_implementation=attention)


modeling_falcon.build_alibi_tensor = modeling_bloom.build_alibi_tensor
# Each with its module of transformers, where masks and slopes are replaced for the goldens of changes.
MODELS = {
    "bloom": (modeling_bloom, lambda: auto(transformers.BloomConfig(**TOKENS, hidden_size=32, n_layer=LAYERS, n_head=4))),
    "mpt": (modeling_mpt, lambda: auto(transformers.MptConfig(**TOKENS, d_model=24, n_heads=3, n_layers=LAYERS, max_seq_len=64))),
    # Eager attention of transformers 5.17 adds this model's bias twice.
    "falcon_rw": (modeling_falcon, lambda: auto(transformers.FalconConfig(
        **TOKENS, hidden_size=32, num_hidden_layers=LAYERS, num_attention_heads=4, alibi=True, new_decoder_architecture=False,
        multi_query=False, parallel_attn=False, bias=True), "sdpa")),
    "t5_decoder": (modeling_t5, lambda: T5Text(True)),
    "t5_encoder": (modeling_t5, lambda: T5Text(False)),
}


def model(name):
    torch.manual_seed(0)
    m = MODELS[name][1]().float().eval()
    small.randomise(m)
    with torch.no_grad():
        for key, weight in m.named_parameters():
            if key.endswith("SelfAttention.q.weight"):  # T5 does not divide its scores
                weight.mul_(0.25)
    return m


def growing(pairs):
    """A cache of these keys and values."""
    cache = DynamicCache()
    for key, value in pairs:
        layer = DynamicLayer()
        layer.dtype, layer.device, layer.keys, layer.values, layer.is_initialized = key.dtype, key.device, key, value, True
        cache.layers.append(layer)
    return cache


def flat(cache):
    return [t for layer in cache.layers for t in (layer.keys, layer.values)]


class Cached(torch.nn.Module):
    def __init__(self, model):
        super().__init__()
        self.model = model

    def forward(self, input_ids, attention_mask, past_key_values):
        out = self.model(input_ids=input_ids, attention_mask=attention_mask, past_key_values=growing(past_key_values), use_cache=True)
        return (out.logits, *flat(out.past_key_values))


class Plain(torch.nn.Module):
    def __init__(self, model):
        super().__init__()
        self.model = model

    def forward(self, input_ids, attention_mask):
        return self.model(input_ids=input_ids, attention_mask=attention_mask).logits


class Decoder(torch.nn.Module):
    """T5's decoder after an encoder: with caches of both attentions, or with the encoder's states."""

    def __init__(self):
        super().__init__()
        torch.manual_seed(0)
        self.model = transformers.T5ForConditionalGeneration._from_config(transformers.T5Config(**T5, decoder_start_token_id=0), attn_implementation="eager")
        self.model.float().eval()
        small.randomise(self.model)

    def run(self, ids, states, cache):
        out = self.model.decoder(input_ids=ids, encoder_hidden_states=states, past_key_values=cache, use_cache=cache is not None)
        return self.model.lm_head(out.last_hidden_state), out.past_key_values


class DecoderCached(Decoder):
    def forward(self, input_ids, past_key_values, cross_key_values):
        own, cross = growing(past_key_values), growing(cross_key_values)
        cache = EncoderDecoderCache(own, cross)
        cache.is_updated = {i: True for i in range(LAYERS)}
        keys = cross_key_values[0][0]
        logits, _ = self.run(input_ids, keys.new_zeros(keys.shape[0], keys.shape[2], T5["d_model"]), cache)
        return (logits, *flat(own))


class DecoderPlain(Decoder):
    def forward(self, input_ids, encoder_hidden_states):
        return self.run(input_ids, encoder_hidden_states, None)[0]


def export(folder, module, config, arguments, shapes, inputs, outputs, deferred=False):
    with torch.no_grad():
        if deferred:
            free = torch.utils._pytree.tree_map(lambda _: torch.export.Dim.DYNAMIC, shapes)
            module = torch.export.export(module, arguments, dynamic_shapes=free, strict=False, prefer_deferred_runtime_asserts_over_guards=True)
        program = torch.onnx.export(module, arguments, dynamo=True, opset_version=18, dynamic_shapes=shapes, verbose=False,
                                    report=False, input_names=inputs, output_names=outputs)
    os.makedirs(folder, exist_ok=True)
    path = os.path.join(folder, "model.onnx")
    program.save(path, external_data=False)
    onnx.save(without_metadata(onnx.load(path)), path)
    config.save_pretrained(folder)
    print("wrote", path, os.path.getsize(path))


def write(root, name, half=False):
    """Exports a model."""
    generator = torch.Generator().manual_seed(3)
    batch, length, past, frames = 3, 7, 5, 6
    parts = [f"{i}.{t}" for i in range(LAYERS) for t in ("key", "value")]
    kind = torch.float16 if half else torch.float32
    def caches(heads, size, rows): return [tuple(torch.randn(batch, heads, rows, size, generator=generator).to(kind) for _ in "kv") for _ in range(LAYERS)]
    def axes(rows): return [({0: "batch", 2: rows},) * 2] * LAYERS
    ids = torch.randint(3, VOCABULARY, (batch, length), generator=generator)
    row = {0: "batch", 1: "sequence"}
    pasts, presents = ["past_key_values." + p for p in parts], ["present." + p for p in parts]
    if name == "t5":
        cached = DecoderCached()
        export(os.path.join(root, "t5__dynamo18"), cached, cached.model.config, (ids, caches(4, 8, past), caches(4, 8, frames)),
               (row, axes("past_sequence"), axes("frames")), ["input_ids"] + pasts + ["cross_key_values." + p for p in parts], ["logits"] + presents)
        plain = DecoderPlain()
        export(os.path.join(root, "t5__dynamo18-nocache"), plain, plain.model.config, (ids, torch.randn(batch, frames, T5["d_model"], generator=generator)),
               (row, {0: "batch", 1: "frames"}), ["input_ids", "encoder_hidden_states"], ["logits"])
        return
    m = model(name)
    if name == "t5_encoder":
        export(os.path.join(root, name + "__dynamo18-nocache"), Plain(m), m.config, (ids, torch.ones_like(ids)), (row, row),
               ["input_ids", "attention_mask"], ["logits"])
        return
    heads = 3 if name == "mpt" else 4
    export(os.path.join(root, name + "__dynamo18" + ("-fp16" if half else "")), Cached(m.half() if half else m), m.config,
           (ids, torch.ones(batch, past + length, dtype=torch.int64), caches(heads, 8, past)),
           (row, {0: "batch", 1: "total_sequence"}, axes("past_sequence")), ["input_ids", "attention_mask"] + pasts, ["logits"] + presents,
           deferred=name == "mpt")  # MPT cuts its table by a number that is 0 in every call, which torch.export cannot prove


def texts():
    ids = torch.randint(3, VOCABULARY, (2, LENGTH), generator=torch.Generator().manual_seed(5))
    mask = torch.ones_like(ids)
    mask[1, :PAD] = 0
    hole = mask.clone()
    hole[0, 20:24] = 0
    hole[1, 27:31] = 0
    rows = []
    for lengths, start in (((15, 16, 16), 0), ((7, 20, 20), PAD)):
        rows.append(torch.cat([torch.zeros(start + 1), *(torch.full((n,), i + 1.0) for i, n in enumerate(lengths))])[:LENGTH].long())
    return ids, mask, hole, torch.stack(rows)


def visible(case, mask, documents, causal):
    """Who sees whom [2, query, key], entry by entry."""
    index = torch.arange(LENGTH)
    distance = index[:, None] - index
    see = mask[:, None, :].bool() & (distance >= 0 if causal else distance == distance)
    near = distance.abs() < WINDOW
    query, key = documents[:, :, None], documents[:, None, :]
    if case == "window8":
        see = see & near
    if case == "first_keys":
        see = see & (near | (mask.cumsum(-1) <= FIRST)[:, None, :])
    if case in ("anchor", "intra"):
        see = see & ((query == key) | ((key == 0) & (case == "anchor")))
    return see


class Changed:
    """transformers' module with another mask and other slopes while a golden is computed."""

    def __init__(self, module, see, factor):
        self.module, self.see, self.factor, self.old = module, see, factor, {}

    def mask(self, inputs_embeds=None, past_key_values=None, **_):
        past = past_key_values.get_seq_length() if past_key_values is not None else 0
        see = self.see[:, past:past + inputs_embeds.shape[1], :past + inputs_embeds.shape[1]]
        return torch.zeros(see.shape, dtype=inputs_embeds.dtype).masked_fill(~see, torch.finfo(inputs_embeds.dtype).min)[:, None]

    def __enter__(self):
        new = {f: self.mask for f in ("create_causal_mask", "create_bidirectional_mask") if hasattr(self.module, f)}
        for name in ("build_alibi_tensor", "build_mpt_alibi_tensor"):
            if hasattr(self.module, name):
                slopes = getattr(self.module, name)
                new[name] = lambda *a, slopes=slopes, **k: slopes(*a, **k) / self.factor
        for name, f in new.items():
            self.old[name] = getattr(self.module, name)
            setattr(self.module, name, f)

    def __exit__(self, *_):
        for name, f in self.old.items():
            setattr(self.module, name, f)


def decoded(m, ids, mask, prefill=32):
    cache, parts = DynamicCache(), []
    for start, stop in [(0, prefill), *((i, i + 1) for i in range(prefill, LENGTH))]:
        parts.append(m(input_ids=ids[:, start:stop], attention_mask=mask[:, :stop], past_key_values=cache, use_cache=True).logits)
    return torch.cat(parts, 1)


def goldens(name):
    module, m = MODELS[name][0], model(name)
    ids, mask, hole, documents = texts()
    keys = dict(ids=ids, mask=mask, mask_hole=hole, documents=documents)
    with torch.no_grad():
        own = {case: m(input_ids=ids, attention_mask=shown).logits for case, shown in (("plain", mask), ("hole", hole))}
        for case in LINEAR:
            if case == "linear4" and name.startswith("t5"):
                continue
            shown = hole if case == "hole" else mask
            seen = shown.bool()
            with Changed(module, visible(case, shown, documents, name != "t5_encoder"), FACTOR if case == "linear4" else 1):
                keys[case] = m(input_ids=ids, attention_mask=shown).logits
                if name != "t5_encoder":
                    apart = float((decoded(m, ids, shown) - keys[case])[seen].abs().max())
                    assert apart < LIMIT, (name, case, apart)
            if case in own:  # the table of who sees whom is transformers' own
                apart = float((own[case] - keys[case])[seen].abs().max())
                assert apart < LIMIT, (name, case, apart)
            change = float((keys[case] - keys["plain"])[mask.bool() & hole.bool()].abs().max())
            print(name, case, f"{change:.2g} from plain")
            assert case == "plain" or change > 0.1, (name, case, change)
    return {k: v.float().numpy() if v.is_floating_point() else v.numpy() for k, v in keys.items()}


if __name__ == "__main__":
    root, names = os.path.join(sys.argv[1], "models"), [n for n in sys.argv[2:] if n != "--half"]
    if "--half" in sys.argv:
        for name in names or ["bloom", "t5_decoder"]:
            write(root, name, half=True)
        sys.exit()
    for name in names or [*MODELS, "t5"]:
        write(root, name)
        if name in MODELS:
            folder = os.path.join(root, name + ("__dynamo18-nocache" if name == "t5_encoder" else "__dynamo18"))
            np.savez_compressed(os.path.join(folder, "golden.npz"), **goldens(name))
