"""The architectures of the coverage table: small configurations with random weights.

Two layers, hidden size 64 (or COVERAGE_HIDDEN), four heads (two for keys where they may differ), 128 tokens of
vocabulary. Windows are 8 tokens wide and scaled models were trained on 16, so that sequences of 32 tokens meet both.
"""
import os
from dataclasses import dataclass, field

import transformers
from transformers import CONFIG_MAPPING, AutoConfig

OLDER = int(transformers.__version__.split(".")[0]) < 5  # Optimum's exporter needs 4.57

HIDDEN = int(os.environ.get("COVERAGE_HIDDEN", 64))
HEAD, WIDE, VOCABULARY = HIDDEN // 4, HIDDEN * 3 // 4, HIDDEN * 2
SHAPE = dict(vocab_size=VOCABULARY, hidden_size=HIDDEN, intermediate_size=WIDE, num_hidden_layers=2, num_attention_heads=4,
             num_key_value_heads=2, max_position_embeddings=64, tie_word_embeddings=False,
             bos_token_id=1, eos_token_id=2, pad_token_id=0)
GPT = dict(vocab_size=VOCABULARY, n_embd=HIDDEN, n_layer=2, n_head=4, n_inner=WIDE, n_positions=64, tie_word_embeddings=False,
           bos_token_id=1, eos_token_id=2, pad_token_id=0)
EXPERTS = dict(num_experts_per_tok=2, moe_intermediate_size=32)
MIXED = ["sliding_attention", "full_attention"]


def rope(theta=10000.0, kind="default", **more):
    return dict(rope_parameters=dict(rope_theta=theta, rope_type=kind, **more))


def two_ropes(local, whole):
    return dict(rope_parameters=dict(sliding_attention=dict(rope_type="default", rope_theta=local),
                                     full_attention=dict(rope_type="default", rope_theta=whole)))


def scaled(kind, **more):
    return rope(kind=kind, factor=4.0, original_max_position_embeddings=16, **more)


def older(values):
    """The configuration as transformers 4 spells it."""
    values = dict(values)
    parameters = values.pop("rope_parameters", None)
    if parameters is None:
        return values
    if "full_attention" in parameters:
        local, whole = (parameters[k]["rope_theta"] for k in ("sliding_attention", "full_attention"))
        return dict(rope_theta=whole, rope_local_base_freq=local, global_rope_theta=whole, local_rope_theta=local,
                    global_attn_every_n_layers=2, reference_compile=False, **values)
    parameters = dict(parameters)
    theta, partial = parameters.pop("rope_theta"), parameters.pop("partial_rotary_factor", None)
    values["rope_theta"] = theta
    if partial is not None:
        values.update(partial_rotary_factor=partial, rotary_pct=partial, rotary_emb_base=theta)
    if parameters["rope_type"] == "longrope":
        parameters = {k: parameters[k] for k in ("type", "short_factor", "long_factor")}
    if parameters.get("rope_type") != "default":
        values["rope_scaling"] = parameters
    return values


@dataclass
class Architecture:
    model_type: str
    head: str = "causal"  # causal | masked | encoder | text | speech-decoder | whisper-encoder | whisper-decoder
    rotary: bool = True
    values: dict = field(default_factory=dict)
    experts: str = "batched_mm"  # one loop over experts ("eager") is traced for one routing only
    reference: str = ""  # the attention of the reference, where it is not the exported one's: "eager" for a model whose sdpa forgets causality

    def config(self, attention):
        config = AutoConfig.for_model(self.model_type, **(older(self.values) if OLDER else self.values))
        config._attn_implementation = attention
        config._experts_implementation = self.experts
        return config


def of(model_type, head="causal", rotary=True, base=SHAPE, without=(), experts=Architecture.experts, reference="", **values):
    merged = {k: v for k, v in {**base, **values}.items() if k not in without}
    return Architecture(model_type, head, rotary, merged, experts, reference)


MLA = dict(q_lora_rank=24, kv_lora_rank=16, qk_nope_head_dim=8, qk_rope_head_dim=8, v_head_dim=12, num_key_value_heads=4,
           n_routed_experts=4, n_shared_experts=1, n_group=1, topk_group=1, first_k_dense_replace=1, **EXPERTS)

ARCHITECTURES = {
    "llama": of("llama", head_dim=HEAD, **rope()),
    "llama_linear": of("llama", head_dim=HEAD, **scaled("linear")),
    "llama_dynamic": of("llama", head_dim=HEAD, **{**rope(kind="dynamic", factor=4.0), "max_position_embeddings": 16}),
    "llama_yarn": of("llama", head_dim=HEAD, **scaled("yarn")),
    "llama_llama3": of("llama", head_dim=HEAD, **scaled("llama3", low_freq_factor=1.0, high_freq_factor=4.0)),
    "mistral": of("mistral", head_dim=HEAD, sliding_window=8, **rope()),
    "mixtral": of("mixtral", head_dim=HEAD, num_local_experts=4, num_experts_per_tok=2, **rope(1e6)),
    "mixtral_loop": of("mixtral", head_dim=HEAD, num_local_experts=4, num_experts_per_tok=2, experts="eager", **rope(1e6)),
    "qwen2": of("qwen2", **rope(1e6)),
    "qwen3": of("qwen3", head_dim=HEAD, **rope(1e6)),
    "qwen2_moe": of("qwen2_moe", num_experts=4, shared_expert_intermediate_size=32, **EXPERTS, **rope()),
    "gemma": of("gemma", head_dim=2 * HEAD, **rope()),
    "gemma2": of("gemma2", head_dim=2 * HEAD, query_pre_attn_scalar=48, sliding_window=8, layer_types=MIXED,
                 attn_logit_softcapping=5.0, final_logit_softcapping=30.0, **rope()),
    "gemma3": of("gemma3_text", head_dim=HEAD, query_pre_attn_scalar=32, sliding_window=8, layer_types=MIXED, **two_ropes(1e4, 1e5)),
    "phi": of("phi", num_key_value_heads=4, **rope(partial_rotary_factor=0.5)),
    # Four heads for keys, none shared, as Phi-3 mini has them.
    "phi3": of("phi3", num_key_value_heads=4, sliding_window=8, original_max_position_embeddings=64, **rope()),
    "phi3_longrope": of("phi3", num_key_value_heads=4, original_max_position_embeddings=16,
                        **rope(kind="longrope", type="longrope", short_factor=[1 + 0.1 * i for i in range(HEAD // 2)],
                               long_factor=[1.5 + 0.75 * i for i in range(HEAD // 2)], original_max_position_embeddings=16, factor=4.0)),
    "gpt_neox": of("gpt_neox", without=["num_key_value_heads"], **rope(partial_rotary_factor=0.5)),
    # Its scores have three dimensions, [batch · heads, length, length].
    "gpt_neox_japanese": of("gpt_neox_japanese", without=["num_key_value_heads", "intermediate_size"], intermediate_multiple_size=2, **rope()),
    "gptj": of("gptj", base=GPT, rotary_dim=HEAD // 2),
    "codegen": of("codegen", base=GPT, rotary_dim=HEAD // 2, n_ctx=64),
    "falcon": of("falcon", without=["num_key_value_heads", "intermediate_size"], ffn_hidden_size=WIDE, multi_query=True,
                 new_decoder_architecture=False, parallel_attn=True, alibi=False, bias=False, **rope()),
    "falcon_new": of("falcon", without=["num_key_value_heads", "intermediate_size"], ffn_hidden_size=WIDE, num_kv_heads=2,
                     new_decoder_architecture=True, alibi=False, bias=False, **rope()),
    "cohere": of("cohere", **rope()),
    "cohere2": of("cohere2", head_dim=HEAD, sliding_window=8, layer_types=MIXED, **rope()),
    "stablelm": of("stablelm", use_qkv_bias=True, qk_layernorm=True, **rope(partial_rotary_factor=0.5)),
    "olmo": of("olmo", clip_qkv=4.0, **rope()),
    "olmo2": of("olmo2", **rope()),
    "olmo3": of("olmo3", sliding_window=8, layer_types=MIXED, **two_ropes(1e4, 5e5)),
    "starcoder2": of("starcoder2", sliding_window=8, **rope()),
    "glm": of("glm", head_dim=HEAD, **rope(partial_rotary_factor=0.5)),
    "glm4": of("glm4", head_dim=HEAD, **rope(partial_rotary_factor=0.5)),
    "granite": of("granite", attention_multiplier=0.2, embedding_multiplier=2.0, residual_multiplier=0.5, logits_scaling=2.0, **rope()),
    "smollm3": of("smollm3", no_rope_layer_interval=2, no_rope_layers=[1, 0], **rope(2e6)),
    "gpt_oss": of("gpt_oss", head_dim=HEAD, sliding_window=8, layer_types=MIXED, num_local_experts=4, num_experts_per_tok=2,
                  **rope(kind="yarn", factor=4.0, beta_fast=32.0, beta_slow=1.0, truncate=False, original_max_position_embeddings=16)),
    # As published: the model builder's frequencies need more than a few trained tokens, and float16 tables many rows to be
    # told apart.
    "gpt_oss_4096": of("gpt_oss", head_dim=HEAD, sliding_window=8, layer_types=MIXED, num_local_experts=4, num_experts_per_tok=2, max_position_embeddings=131072,
                       **rope(theta=10000.0, kind="yarn", factor=32.0, beta_fast=32.0, beta_slow=1.0, truncate=False, original_max_position_embeddings=4096)),
    "exaone4": of("exaone4", head_dim=HEAD, sliding_window=8, layer_types=MIXED, **rope()),
    "nemotron": of("nemotron", head_dim=HEAD, **rope(partial_rotary_factor=0.5)),
    "ernie4_5": of("ernie4_5", head_dim=HEAD, **rope(5e5)),
    "persimmon": of("persimmon", without=["num_key_value_heads"], **rope(partial_rotary_factor=0.5)),
    "deepseek_v2": of("deepseek_v2", topk_method="greedy", **MLA, **rope()),
    "deepseek_v3": of("deepseek_v3", **MLA, **rope()),
    "qwen2_vl": of("qwen2_vl_text", "text", **rope(1e4, mrope_section=[HEAD // 8, HEAD // 8 + (HEAD > 8), HEAD // 4 - (HEAD > 8)])),
    "qwen2_5_vl": of("qwen2_5_vl_text", "text", **rope(1e6, mrope_section=[HEAD // 8, HEAD // 8 + (HEAD > 8), HEAD // 4 - (HEAD > 8)])),
    # Sections interleaved pair by pair.
    "qwen3_vl": of("qwen3_vl_text", "text", head_dim=HEAD, **rope(5e6, mrope_section=[HEAD // 4, HEAD // 8, HEAD // 8], mrope_interleaved=True)),
    "nanochat": of("nanochat", **rope()),
    "llama4": of("llama4_text", head_dim=HEAD, num_local_experts=4, interleave_moe_layer_step=2, intermediate_size_mlp=WIDE,
                 no_rope_layers=[1, 0], attention_chunk_size=8, floor_scale=8, attn_scale=0.1,
                 layer_types=["chunked_attention", "full_attention"], **rope()),
    # A temperature by position, and norms with weights, behind the rotation.
    "ministral3": of("ministral3", head_dim=HEAD, **rope(kind="yarn", factor=4.0, original_max_position_embeddings=16, beta_fast=32.0,
                                                         beta_slow=1.0, mscale=1.0, mscale_all_dim=1.0, llama_4_scaling_beta=0.1)),
    "hunyuan": of("hunyuan_v1_dense", head_dim=HEAD, **rope()),
    "modernbert": of("modernbert", "masked", without=["num_key_value_heads"], local_attention=16, cls_token_id=1, sep_token_id=2,
                     layer_types=MIXED, **two_ropes(1e4, 1.6e5)),
    "esm": of("esm", "masked", without=["num_key_value_heads"], position_embedding_type="rotary", mask_token_id=3),
    "roformer": of("roformer", "masked", without=["num_key_value_heads"], embedding_size=HIDDEN, type_vocab_size=2),
    "nomic_bert": of("nomic_bert", "masked", without=["num_key_value_heads"], head_dim=HEAD, type_vocab_size=2, **rope(1e3)),
    "jina_bert": of("jina_embeddings_v3", "masked", without=["num_key_value_heads"], type_vocab_size=1, **rope(2e4)),
    "eurobert": of("eurobert", "masked", head_dim=HEAD, mask_token_id=3, **rope()),
    # No rotation: the rewriter says what positions these use.
    "bert": of("bert", "masked", rotary=False, without=["num_key_value_heads"], type_vocab_size=2),
    "gpt2": of("gpt2", rotary=False, base=GPT),
    "bloom": of("bloom", rotary=False, base=dict(vocab_size=VOCABULARY, hidden_size=HIDDEN, n_layer=2, n_head=4, bos_token_id=1, eos_token_id=2, pad_token_id=0)),
    "mpt": of("mpt", rotary=False, base=dict(vocab_size=VOCABULARY, d_model=HIDDEN, n_heads=4, n_layers=2, expansion_ratio=1, max_seq_len=64,
                                             bos_token_id=1, eos_token_id=2, pad_token_id=0)),
    "t5": of("t5", "encoder", rotary=False, base=dict(vocab_size=VOCABULARY, d_model=HIDDEN, d_kv=HEAD, d_ff=WIDE, num_layers=2, num_heads=4, pad_token_id=0,
                                                      eos_token_id=1, relative_attention_num_buckets=16, relative_attention_max_distance=24)),
    "whisper_encoder": of("whisper", "whisper-encoder", rotary=False, base=dict(
        vocab_size=VOCABULARY, d_model=HIDDEN, num_mel_bins=16, max_source_positions=32, max_target_positions=64, encoder_layers=2, decoder_layers=2,
        encoder_attention_heads=4, decoder_attention_heads=4, encoder_ffn_dim=WIDE, decoder_ffn_dim=WIDE, pad_token_id=0, bos_token_id=1,
        eos_token_id=2, decoder_start_token_id=1)),
}
# An encoder-decoder whose self-attention rotates and whose cross-attention does not.
ARCHITECTURES["moonshine"] = of("moonshine", "speech-decoder", base=dict(
    vocab_size=VOCABULARY, hidden_size=HIDDEN, intermediate_size=WIDE, encoder_num_hidden_layers=1, decoder_num_hidden_layers=2,
    encoder_num_attention_heads=4, decoder_num_attention_heads=4, encoder_num_key_value_heads=4, decoder_num_key_value_heads=4, max_position_embeddings=64,
    pad_token_id=0, bos_token_id=1, eos_token_id=2, decoder_start_token_id=1), **rope(partial_rotary_factor=0.75))
# Chosen, and named in docs/results/coverage.md, before the rewriter saw an export of them.
UNSEEN = {
    "apertus": of("apertus", **scaled("llama3", low_freq_factor=1.0, high_freq_factor=4.0)),
    "arcee": of("arcee", head_dim=HEAD, **scaled("yarn")),
    "bitnet": of("bitnet", **rope(5e5)),
    "dbrx": of("dbrx", base=dict(vocab_size=VOCABULARY, d_model=HIDDEN, n_heads=4, n_layers=2, max_seq_len=64, tie_word_embeddings=False,
                                 bos_token_id=1, eos_token_id=2, pad_token_id=0),
               attn_config=dict(kv_n_heads=2, clip_qkv=4.0, rope_theta=5e5), ffn_config=dict(ffn_hidden_size=32, moe_num_experts=4, moe_top_k=2), **rope(5e5)),
    "diffllama": of("diffllama", head_dim=HEAD, **rope()),
    "doge": of("doge", keep_window_size=64, reference="eager", **rope()),
    "helium": of("helium", head_dim=HEAD, **rope()),
    "modernbert_decoder": of("modernbert-decoder", without=["num_key_value_heads"], local_attention=8, cls_token_id=1, sep_token_id=2,
                             layer_types=MIXED, **two_ropes(1e4, 1.6e5)),
    "olmoe": of("olmoe", num_experts=4, num_experts_per_tok=2, **rope()),
    "seed_oss": of("seed_oss", head_dim=HEAD, **rope(1e7)),
}
ARCHITECTURES.update(UNSEEN)
# Of 2026, by transformers 5.24. Older versions do not know them.
NEWER = {
    "afmoe": of("afmoe", head_dim=HEAD, sliding_window=8, layer_types=MIXED, num_experts=4, num_shared_experts=1, num_dense_layers=1,
        **EXPERTS, **rope()),
    "exaone_moe": of("exaone_moe", head_dim=HEAD, sliding_window=8, layer_types=MIXED, num_experts=4, num_shared_experts=1,
        first_k_dense_replace=1, n_group=1, topk_group=1, is_moe_layer=[False, True], **EXPERTS, **rope()),
    "flex_olmo": of("flex_olmo", num_experts=4, num_experts_per_tok=2, **rope()),
    "gemma3n": of("gemma3n_text", head_dim=HEAD, sliding_window=8, layer_types=MIXED, num_kv_shared_layers=0,
        vocab_size_per_layer_input=VOCABULARY, hidden_size_per_layer_input=16, laurel_rank=8, altup_num_inputs=2, activation_sparsity_pattern=[0.0, 0.0], **two_ropes(1e4, 1e6)),
    "gemma4": of("gemma4_text", head_dim=HEAD, global_head_dim=HEAD, sliding_window=8, layer_types=MIXED, num_kv_shared_layers=0,
        vocab_size_per_layer_input=VOCABULARY, hidden_size_per_layer_input=16, **two_ropes(1e4, 1e6)),
    "glm4_moe": of("glm4_moe", head_dim=HEAD, n_routed_experts=4, n_shared_experts=1, n_group=1, topk_group=1, first_k_dense_replace=1,
        **EXPERTS, **rope(partial_rotary_factor=0.5)),
    "glm4_moe_lite": of("glm4_moe_lite", **MLA, **rope()),
    "hy_v3": of("hy_v3", head_dim=HEAD, num_experts=4, num_shared_experts=1, first_k_dense_replace=1, **EXPERTS, **rope()),
    "hrm_text": of("hrm_text", head_dim=HEAD, **rope()),
    "jais2": of("jais2", head_dim=HEAD, **rope()),
    "kolibri1": of("kolibri1", head_dim=HEAD, **rope()),
    "laguna": of("laguna", head_dim=HEAD, num_experts=4, sliding_window=8, layer_types=MIXED, **EXPERTS, **two_ropes(1e4, 1e6)),
    "mellum": of("mellum", head_dim=HEAD, num_experts=4, sliding_window=8, layer_types=MIXED, **EXPERTS, **two_ropes(1e4, 1e6)),
    "mimo_v2_flash": of("mimo_v2_flash", head_dim=HEAD, v_head_dim=HEAD, sliding_window=8, swa_num_attention_heads=4,
        swa_num_key_value_heads=2, swa_head_dim=HEAD, swa_v_head_dim=HEAD, layer_types=MIXED, n_routed_experts=4, n_group=1, topk_group=1, **EXPERTS, **two_ropes(1e4, 1e6)),
    "minimax_m2": of("minimax_m2", head_dim=HEAD, rotary_dim=HEAD//2, num_local_experts=4, num_experts_per_tok=2, **rope()),
    "minimax_m3": of("minimax_m3_vl_text", head_dim=HEAD, num_local_experts=4, num_experts_per_tok=2, **rope()),
    "ministral": of("ministral", head_dim=HEAD, sliding_window=8, layer_types=MIXED, **rope()),
    "phimoe": of("phimoe", num_local_experts=4, num_experts_per_tok=2, **rope()),
    "solar_open": of("solar_open", head_dim=HEAD, n_routed_experts=4, n_shared_experts=1, n_group=1, topk_group=1, first_k_dense_replace=1,
        **EXPERTS, **rope()),
    "vaultgemma": of("vaultgemma", head_dim=HEAD, query_pre_attn_scalar=16, sliding_window=8, layer_types=MIXED, **rope()),
    "youtu": of("youtu", **MLA, **rope()),
    "neomme": of("neomme", "masked", head_dim=HEAD, sliding_window=8, layer_types=MIXED, **two_ropes(1e4, 1e6)),
    "ultrabert": of("ultrabert", "masked", sliding_window=8, layer_types=MIXED, **two_ropes(1e4, 1e6)),
    "gte": of("gte", "masked", without=["num_key_value_heads"], **rope()),
    "beam": of("beam", head_dim=HEAD, sliding_window=8, layer_types=MIXED, **two_ropes(1e4, 1e6)),
    "axk1": of("axk1", **MLA, **rope()),
    "granite_swa": of("granite_swa", head_dim=HEAD, sliding_window=8, **rope()),
}
ARCHITECTURES.update({name: a for name, a in NEWER.items() if a.model_type in CONFIG_MAPPING})
ARCHITECTURES["whisper_decoder"] = Architecture("whisper", "whisper-decoder", False, ARCHITECTURES["whisper_encoder"].values)
