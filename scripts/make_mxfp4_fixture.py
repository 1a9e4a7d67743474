#!/usr/bin/env python3
"""Makes one tiny random gpt_oss checkpoint twice: with experts packed in MXFP4 as published (NAME_blocks, NAME_scales),
and with the same values as floats in the layout that transformers computes with (NAME, outputs last).

  packed    u8 [n_expert, n_out, n_in / 32, 16]: byte j of a block holds value 2j in its low half, 2j + 1 in its high
            half; scales u8 [n_expert, n_out, n_in / 32]; value = E2M1(code) * 2^(scale - 127)
  floats    f32 [n_expert, n_in, n_out]
Source: OCP Microscaling Formats (MX) Specification v1.0 for E2M1 and E8M0.

Usage: make_mxfp4_fixture.py --out DIR    writes DIR/gpt_oss_packed and DIR/gpt_oss_unpacked
Needs numpy; no network.
"""

import argparse
import json
from pathlib import Path

import numpy as np

E2M1 = np.array([0, 0.5, 1, 1.5, 2, 3, 4, 6, -0.0, -0.5, -1, -1.5, -2, -3, -4, -6], dtype=np.float32)

N_EMBD, N_FF, N_EXPERT, N_HEAD, N_HEAD_KV, HEAD_DIM, N_VOCAB = 64, 96, 3, 2, 1, 32, 40

CONFIG = {
    "architectures": ["GptOssForCausalLM"],
    "model_type": "gpt_oss",
    "num_hidden_layers": 1,
    "hidden_size": N_EMBD,
    "intermediate_size": N_FF,
    "num_attention_heads": N_HEAD,
    "num_key_value_heads": N_HEAD_KV,
    "head_dim": HEAD_DIM,
    "vocab_size": N_VOCAB,
    "num_local_experts": N_EXPERT,
    "num_experts_per_tok": 2,
    "attention_bias": True,
    "layer_types": ["full_attention"],
    "sliding_window": 128,
    "max_position_embeddings": 256,
    "rms_norm_eps": 1e-05,
    "rope_theta": 150000,
    "rope_scaling": {
        "rope_type": "yarn",
        "factor": 8.0,
        "beta_fast": 32.0,
        "beta_slow": 1.0,
        "original_max_position_embeddings": 32,
        "truncate": False,
    },
    "swiglu_limit": 7.0,
    "tie_word_embeddings": False,
}


def random_mxfp4(rng, n_out, n_in):
    """Codes [n_expert, n_out, n_in] and scales [n_expert, n_out, n_in / 32], corner cases among them."""
    codes = rng.integers(0, 16, (N_EXPERT, n_out, n_in), dtype=np.uint8)
    scales = rng.integers(120, 125, (N_EXPERT, n_out, n_in // 32), dtype=np.uint8)
    codes[0, 0, :32] = 0  # a block of zeros keeps its scale
    codes[0, 1, :32] = 8  # negative zeros
    scales[1, 0, 0] = 0  # 2^-127, subnormal
    codes[1, 1, :32] = rng.choice(np.array([0, 1, 2], dtype=np.uint8), 32)  # an encoder would choose another scale
    return codes, scales


def unpack(codes, scales):
    factors = np.ldexp(np.float32(1), scales.astype(np.int32) - 127).astype(np.float32)
    return E2M1[codes] * np.repeat(factors, 32, axis=-1)


def pack(codes):
    pairs = codes.reshape(*codes.shape[:-1], codes.shape[-1] // 32, 16, 2)
    return pairs[..., 0] | (pairs[..., 1] << 4)


def common_tensors(rng):
    def matrix(*shape):
        return (rng.standard_normal(shape) / np.sqrt(shape[-1])).astype(np.float32)

    def vector(n, mean=0.0):
        return (mean + 0.2 * rng.standard_normal(n)).astype(np.float32)

    layer, n_q, n_kv = "model.layers.0.", N_HEAD * HEAD_DIM, N_HEAD_KV * HEAD_DIM
    tensors = {
        "model.embed_tokens.weight": matrix(N_VOCAB, N_EMBD) * 8,
        "lm_head.weight": matrix(N_VOCAB, N_EMBD),
        "model.norm.weight": vector(N_EMBD, 1.0),
        layer + "input_layernorm.weight": vector(N_EMBD, 1.0),
        layer + "post_attention_layernorm.weight": vector(N_EMBD, 1.0),
        layer + "self_attn.sinks": vector(N_HEAD, 1.0),
        layer + "mlp.router.weight": matrix(N_EXPERT, N_EMBD),
        layer + "mlp.router.bias": vector(N_EXPERT),
        layer + "mlp.experts.gate_up_proj_bias": (2 * rng.standard_normal((N_EXPERT, 2 * N_FF))).astype(np.float32),
        layer + "mlp.experts.down_proj_bias": (0.2 * rng.standard_normal((N_EXPERT, N_EMBD))).astype(np.float32),
    }
    for name, n_out, n_in in [("q", n_q, N_EMBD), ("k", n_kv, N_EMBD), ("v", n_kv, N_EMBD), ("o", N_EMBD, n_q)]:
        tensors[f"{layer}self_attn.{name}_proj.weight"] = matrix(n_out, n_in)
        tensors[f"{layer}self_attn.{name}_proj.bias"] = vector(n_out)
    return tensors


def save(folder, tensors):
    folder.mkdir(parents=True, exist_ok=True)
    header, data = {}, b""
    for name, array in sorted(tensors.items()):
        raw = np.ascontiguousarray(array).tobytes()
        dtype = {"float32": "F32", "uint8": "U8"}[array.dtype.name]
        header[name] = {"dtype": dtype, "shape": array.shape, "data_offsets": [len(data), len(data) + len(raw)]}
        data += raw
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    (folder / "model.safetensors").write_bytes(len(text).to_bytes(8, "little") + text + data)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, required=True, help="folder to write the two fixtures into")
    out = parser.parse_args().out
    rng = np.random.default_rng(20260101)
    packed = common_tensors(rng)
    unpacked = dict(packed)
    for name, n_out, n_in in [("gate_up_proj", 2 * N_FF, N_EMBD), ("down_proj", N_EMBD, N_FF)]:
        codes, scales = random_mxfp4(rng, n_out, n_in)
        name = f"model.layers.0.mlp.experts.{name}"
        packed[name + "_blocks"], packed[name + "_scales"] = pack(codes), scales
        unpacked[name] = unpack(codes, scales).transpose(0, 2, 1)
    quantization = {
        "quant_method": "mxfp4",
        "modules_to_not_convert": ["model.layers.*.self_attn", "model.layers.*.mlp.router", "model.embed_tokens", "lm_head"],
    }
    save(out / "gpt_oss_packed", packed)
    save(out / "gpt_oss_unpacked", unpacked)
    (out / "gpt_oss_packed/config.json").write_text(json.dumps(CONFIG | {"quantization_config": quantization}, indent=2) + "\n")
    (out / "gpt_oss_unpacked/config.json").write_text(json.dumps(CONFIG, indent=2) + "\n")


if __name__ == "__main__":
    main()
