"""Models of the table with deterministic weights, as modules that exporters take, and what transformers makes of inputs."""
import contextlib
import inspect

import numpy as np
import torch
import transformers
from transformers.cache_utils import DynamicCache, DynamicLayer, EncoderDecoderCache, StaticCache

from architectures import ARCHITECTURES, OLDER, VOCABULARY

torch.set_num_threads(1)  # one thread: the same sums in the same order everywhere
BATCH, LENGTH, PREFILL, PADDING = 2, 32, 20, 7


def randomise(model, seed=1234):
    """Weights from one seed, wide enough that attention is not flat; all rounded to bfloat16."""
    generator = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for name, weight in sorted(model.named_parameters()):
            if not weight.requires_grad:  # a table of sines
                continue
            random = torch.randn(weight.shape, generator=generator)
            if weight.ndim >= 2:
                scale = 1.0 if "emb" in name or "wte" in name or "wpe" in name or "shared" in name else 1.6 / weight.shape[-1] ** 0.5
                if any(part in name for part in ("q_proj", "k_proj", "qkv", "query", "key", "c_attn", "q_b_proj", "kv_b_proj")):
                    scale *= 1.5
                weight.copy_(random * scale)
            elif "norm" in name.lower() or "ln_" in name:
                centred = name.endswith("weight") and not type(model).__name__.startswith(("Gemma", "Nemotron"))
                weight.copy_((1.0 if centred else 0.0) + 0.1 * random)
            else:
                weight.copy_(0.2 * random)
            weight.copy_(weight.to(torch.bfloat16).to(weight.dtype))
    return model


class Text(torch.nn.Module):
    """A text model with its embedding and a product with it as logits."""

    def __init__(self, body):
        super().__init__()
        self.body, self.config = body, body.config

    def forward(self, input_ids, attention_mask, position_ids=None, past_key_values=None, use_cache=None):
        out = self.body(input_ids=input_ids, attention_mask=attention_mask, position_ids=position_ids,
                        past_key_values=past_key_values, use_cache=use_cache)
        out.logits = out.last_hidden_state @ self.body.get_input_embeddings().weight.T
        return out


class SpeechDecoder(torch.nn.Module):
    """The decoder of an encoder-decoder with its product with the vocabulary."""

    def __init__(self, whole):
        super().__init__()
        self.body, self.vocabulary, self.config = whole.get_decoder(), whole.get_output_embeddings(), whole.config

    def forward(self, input_ids, encoder_hidden_states, past_key_values=None, use_cache=False):
        out = self.body(input_ids=input_ids, encoder_hidden_states=encoder_hidden_states, past_key_values=past_key_values, use_cache=use_cache)
        return self.vocabulary(out.last_hidden_state), out.past_key_values


def build(name, attention):
    """The model in float32. What transformers has only one attention for, exporters export with that."""
    a = ARCHITECTURES[name]
    torch.manual_seed(0)
    config = a.config(attention)
    auto = {"causal": transformers.AutoModelForCausalLM, "masked": transformers.AutoModelForMaskedLM,
            "text": transformers.AutoModel}.get(a.head)
    make = {"encoder": transformers.T5EncoderModel, "whisper-encoder": transformers.WhisperModel, "whisper-decoder": transformers.WhisperModel,
            "speech-decoder": getattr(transformers, "MoonshineForConditionalGeneration", None)}.get(a.head)
    # Weights are made below; transformers 4 fails to make those of norms without a bias.
    bare = getattr(transformers.modeling_utils, "no_init_weights", contextlib.nullcontext) if OLDER else contextlib.nullcontext
    try:
        with bare():
            m = auto.from_config(config, attn_implementation=attention) if auto else make._from_config(config, attn_implementation=attention)
    except ValueError as e:
        if attention == "eager" or "scaled_dot_product" not in str(e):
            raise
        return build(name, "eager")
    for part in m.modules():
        if OLDER and hasattr(part, "_init_weight"):  # a table of sines is no weight
            part._init_weight()
    m = randomise(m.float().eval())
    m = {"whisper-encoder": lambda m: m.get_encoder(), "whisper-decoder": lambda m: m.get_decoder(), "text": Text, "speech-decoder": SpeechDecoder}.get(a.head, lambda m: m)(m)
    return m


class Skip(Exception):
    """Why an export cannot be made."""


def half(model):
    """float16 weights; tables that a model keeps beside them stay float32, as when a checkpoint is loaded."""
    for weight in model.parameters():
        weight.data = weight.data.half()
    return model


def layers(cache):
    return [t for layer in cache.layers for t in (layer.keys, layer.values)]


def growing(flat):
    """A cache of these keys and values."""
    cache = DynamicCache()
    for keys, values in zip(flat[::2], flat[1::2]):
        layer = DynamicLayer()  # DynamicCache.update would join them to an empty tensor first
        layer.dtype, layer.device, layer.keys, layer.values, layer.is_initialized = keys.dtype, keys.device, keys, values, True
        cache.layers.append(layer)
    return cache


class Cached(torch.nn.Module):
    """ids, mask, positions and flat caches in; logits and flat caches out."""

    def __init__(self, model, positions):
        super().__init__()
        self.model, self.positions = model, positions

    def forward(self, input_ids, attention_mask, position_ids, *past):
        cache = growing(past)
        more = dict(position_ids=position_ids) if self.positions else {}
        out = self.model(input_ids=input_ids, attention_mask=attention_mask, past_key_values=cache, use_cache=True, **more)
        return (out.logits, *layers(out.past_key_values))


class Slots(torch.nn.Module):
    """ids, the places of the new tokens and buffers in; logits and buffers out: transformers' StaticCache."""

    def __init__(self, model):
        super().__init__()
        self.model = model

    def forward(self, input_ids, cache_position, *past):
        cache = StaticCache(config=self.model.config, max_cache_len=past[0].shape[2])
        for layer, keys, values in zip(cache.layers, past[::2], past[1::2]):
            layer.dtype, layer.device, layer.is_initialized = keys.dtype, keys.device, True
            layer.keys, layer.values, layer.max_batch_size = keys.clone(), values.clone(), keys.shape[0]
            layer.cumulative_length = cache_position[0:1].clone()
        out = self.model(input_ids=input_ids, position_ids=cache_position[None], past_key_values=cache, use_cache=True)
        return (out.logits, *layers(cache))


class CachedSpeech(torch.nn.Module):
    """ids and flat caches in, those of the self-attention and then those of the cross-attention; logits and the former out."""

    def __init__(self, model):
        super().__init__()
        self.model = model

    def forward(self, input_ids, *past):
        own, cross = growing(past[:len(past) // 2]), growing(past[len(past) // 2:])
        cache = EncoderDecoderCache(own, cross)
        cache.is_updated = {i: True for i in range(len(cross.layers))}
        logits, _ = self.model(input_ids, past[-1].new_zeros(past[-1].shape[0], past[-1].shape[2], self.model.config.hidden_size), cache, True)
        return (logits, *layers(own))


class PlainSpeech(torch.nn.Module):
    def __init__(self, model):
        super().__init__()
        self.model = model

    def forward(self, input_ids, encoder_hidden_states):
        return self.model(input_ids, encoder_hidden_states)[0]


class Plain(torch.nn.Module):
    """ids and mask in; logits out."""

    def __init__(self, model, cache):
        super().__init__()
        self.model, self.more = model, dict(use_cache=False) if cache else {}

    def forward(self, input_ids, attention_mask):
        out = self.model(input_ids=input_ids, attention_mask=attention_mask, **self.more)
        return out.logits if hasattr(out, "logits") else out.last_hidden_state


class WhisperDecoder(torch.nn.Module):
    def __init__(self, model):
        super().__init__()
        self.model = model

    def forward(self, input_ids, encoder_hidden_states):
        out = self.model(input_ids=input_ids, encoder_hidden_states=encoder_hidden_states, use_cache=False).last_hidden_state
        return out @ self.model.get_input_embeddings().weight.T


class WhisperEncoder(torch.nn.Module):
    def __init__(self, model):
        super().__init__()
        self.model = model

    def forward(self, input_features):
        return self.model(input_features=input_features).last_hidden_state


def takes_positions(model):
    return "position_ids" in inspect.signature(model.forward).parameters


def inputs(name, seed=7):
    """Token ids, masks and positions; the *_pad ones have the second row padded on the left."""
    generator = torch.Generator().manual_seed(seed)
    ids = torch.randint(4, VOCABULARY, (BATCH, LENGTH), generator=generator)
    mask = torch.ones(BATCH, LENGTH, dtype=torch.int64)
    pad = mask.clone()
    pad[1, :PADDING] = 0
    ids_pad = torch.where(pad == 1, ids, 0)
    pos, pos_pad = (((m.cumsum(-1) - 1).clamp(min=0)) for m in (mask, pad))
    if ARCHITECTURES[name].head == "text":  # time, height and width: ten tokens of text, a picture of 3 × 4, text again
        pos, pos_pad = picture(pos), picture(pos_pad)
    return dict(ids=ids, mask=mask, pos=pos, ids_pad=ids_pad, mask_pad=pad, pos_pad=pos_pad)


def picture(pos, first=12, height=3, width=4):
    pos = pos.expand(3, *pos.shape).clone()
    start = pos[:, :, first:first + 1].clone()
    count = height * width
    place = torch.stack([torch.zeros(count), torch.arange(count) // width, torch.arange(count) % width]).long()
    pos[:, :, first:first + count] = start + place[:, None]
    after = pos.shape[-1] - first - count
    pos[:, :, first + count:] = start + max(height, width) + torch.arange(after)
    return pos


def alone(model, ids, mask, pos, positions):
    """Logits of rows without their padding; zero for padding."""
    rows = []
    for row, real, at in zip(ids, mask, pos.movedim(-2, 0)):  # a token may have three positions
        place = dict(position_ids=at[..., real == 1].unsqueeze(-2)) if positions else {}
        y = model(input_ids=row[None, real == 1], attention_mask=real[None, real == 1], **place)
        y = y.logits if hasattr(y, "logits") else y.last_hidden_state
        rows.append(torch.cat([y.new_zeros(int((real == 0).sum()), y.shape[-1]), y[0]]))
    return torch.stack(rows)


def reference(name, model, cached, positions):
    """What transformers computes in float64 (angles in float32, as always): one call, and a prefill with single tokens
    after it through its own cache."""
    x, out = inputs(name), {}
    model, other = model.double(), ARCHITECTURES[name].reference
    if other:
        exported, model.config._attn_implementation = model.config._attn_implementation, other
    causal = ARCHITECTURES[name].head in ("causal", "text")
    with torch.no_grad():
        for pad in ("", "_pad"):
            ids, mask, pos = x["ids" + pad], x["mask" + pad], x["pos" + pad]
            place = lambda i, j: dict(position_ids=pos[..., i:j]) if positions else {}
            more = dict(use_cache=False, **place(0, LENGTH)) if causal else {}
            y = model(input_ids=ids, attention_mask=mask, **more)
            out["logits" + pad] = y.logits if hasattr(y, "logits") else y.last_hidden_state
            if out["logits" + pad][mask == 1].isnan().any():  # eager attention of rows that see no key overflows in float64
                out["logits" + pad] = alone(model, ids, mask, pos, positions)
            if cached:
                cache, parts = DynamicCache(), []
                for start, stop in zip([0, *range(PREFILL, LENGTH)], range(PREFILL, LENGTH + 1)):
                    y = model(input_ids=ids[:, start:stop], attention_mask=mask[:, :stop], past_key_values=cache, use_cache=True, **place(start, stop))
                    parts.append(y.logits)
                out["decode" + pad] = torch.cat(parts, 1)
                if out["decode" + pad][mask == 1].isnan().any():
                    out["decode" + pad] = out["logits" + pad]
    model.float()
    if other:
        model.config._attn_implementation = exported
    return {k: v.float().numpy() if v.is_floating_point() else v.numpy() for k, v in {**x, **out}.items()}
