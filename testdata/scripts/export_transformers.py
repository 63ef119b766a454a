"""Export the small models by transformers' own exporter, as export_for_generation saves them.

    export_transformers.py OUT [ARCHITECTURE ...] [--route ROUTE]

Writes OUT/models/ARCHITECTURE__transformers[-ROUTE]/: config.json, export.json, and a graph with its weights for each
component. A text model has prefill.onnx, without a cache, and decode.onnx, with one. An encoder has model.onnx. A model
of texts and pictures has language_model.onnx, which takes embeddings, in the place of prefill.onnx, and parts for pictures.

Routes beside the usual one, whose decode takes any number of tokens and left padding:
  step    decode takes one token (multi_token_decode=False, the exporter's default)
  static  a cache of fixed size (cache_implementation="static", 64 tokens)
  fused   ONNX Runtime's ops (ort_fusions="cpu")
  opset23 the opset of ONNX's Attention and RotaryEmbedding
"""
import argparse
import os

import onnx
import torch
import transformers
from transformers import GenerationConfig
from transformers.exporters.exporter_onnx import OnnxConfig, OnnxExporter

import small
from export_dynamo import without_metadata

ROUTES = {
    "": {},
    "step": dict(multi_token_decode=False),
    "static": dict(generation_config=GenerationConfig(cache_implementation="static", max_cache_len=64)),
    "fused": dict(config=dict(ort_fusions="cpu")),
    "opset23": dict(config=dict(opset_version=23)),
}


def sample(length=12, padding=3):
    """Two texts, the second with padding on the left: the exporter drops a mask that hides nothing."""
    ids = torch.randint(4, 128, (2, length), generator=torch.Generator().manual_seed(3))
    mask = torch.ones_like(ids)
    ids[1, :padding] = mask[1, :padding] = 0
    return dict(input_ids=ids, attention_mask=mask)


TOKENS = dict(pad_token_id=0, bos_token_id=1, eos_token_id=2)


def qwen2_5_vl():
    """A text of ten tokens around a picture of four, in two rows."""
    text = dict(small.SHAPE, num_key_value_heads=2, tie_word_embeddings=True,
                rope_parameters=dict(rope_type="default", rope_theta=small.THETA, mrope_section=[2, 3, 3]))
    vision = dict(depth=1, hidden_size=32, intermediate_size=32, num_heads=2, out_hidden_size=64, patch_size=4, spatial_merge_size=2,
                  temporal_patch_size=1, in_channels=3, window_size=16, fullatt_block_indexes=[0])
    model = transformers.Qwen2_5_VLForConditionalGeneration(transformers.Qwen2_5_VLConfig(
        text_config=text, vision_config=vision, image_token_id=5, vision_start_token_id=6, vision_end_token_id=7, video_token_id=8))
    ids = torch.tensor([[9, 10, 6, 5, 5, 5, 5, 7, 11, 12]] * 2)
    pixels = torch.randn(32, 48, generator=torch.Generator().manual_seed(3))
    return model, dict(input_ids=ids, attention_mask=torch.ones_like(ids), pixel_values=pixels,
                       image_grid_thw=torch.tensor([[1, 4, 4]] * 2), mm_token_type_ids=(ids == 5).int())


def whisper():
    """Its positions are a table: nothing rotates."""
    model = transformers.WhisperForConditionalGeneration(transformers.WhisperConfig(
        vocab_size=128, d_model=64, encoder_layers=1, decoder_layers=2, encoder_attention_heads=4, decoder_attention_heads=4,
        encoder_ffn_dim=32, decoder_ffn_dim=32, max_source_positions=32, max_target_positions=64, num_mel_bins=16,
        decoder_start_token_id=3, **TOKENS))
    return model, dict(input_features=torch.randn(2, 16, 64, generator=torch.Generator().manual_seed(3)),
                       decoder_input_ids=torch.tensor([[3, 5]] * 2))


def modernbert():
    model = transformers.ModernBertForMaskedLM(transformers.ModernBertConfig(
        vocab_size=128, hidden_size=64, intermediate_size=32, num_hidden_layers=2, num_attention_heads=4, max_position_embeddings=64,
        local_attention=16, global_attn_every_n_layers=2, cls_token_id=1, sep_token_id=2, **TOKENS))
    return model, sample()


OTHERS = {f.__name__: f for f in (qwen2_5_vl, whisper, modernbert)}


def export(name, out, route):
    more = dict(ROUTES[route])
    config = OnnxConfig(dynamic=True, **more.pop("config", {}))
    if name in OTHERS:
        torch.manual_seed(0)
        model, inputs = OTHERS[name]()
        model.eval()
        small.randomise(model)
    else:
        model, inputs = small.model(name, out, "eager" if name == "gpt_oss" else "sdpa"), sample()
    with torch.no_grad():
        if model.can_generate():
            made = OnnxExporter().export_for_generation(model, inputs, config, **{"multi_token_decode": True, **more})
        else:
            made = OnnxExporter().export(model, inputs, config)
    folder = os.path.join(out, "models", f"{name}__transformers" + (f"-{route}" if route else ""))
    made.save_pretrained(folder)
    for component in made.components:
        path = os.path.join(folder, component + ".onnx")
        onnx.save(without_metadata(onnx.load(path, load_external_data=False)), path)
    print("wrote", folder, *made.components)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("out")
    parser.add_argument("architectures", nargs="*", default=["llama", "qwen3", "gemma3_text", "gpt_oss", *OTHERS])
    parser.add_argument("--route", default="", choices=ROUTES)
    a = parser.parse_args()
    for architecture in a.architectures:
        export(architecture, a.out, a.route)
