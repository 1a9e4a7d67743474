#!/usr/bin/env python3
"""Makes the GGUF files of tests/data/gguf with the `gguf` package, and expected.json beside them.

types.gguf          a tensor of every element type, random blocks
llama_bf16.gguf     tests/data/fixtures of the same name as llama.cpp's converter stores them: rows of q and k interleaved
llama_untied.gguf   for rotary pairs, rope scaling of Llama 3 as a tensor of factors, output matrix left out if tied
qwen2.gguf          matrices as F16
qwen3_yarn.gguf
llama_quantized.gguf  the fixture `llama`, matrices in several block types
byte_level.gguf     the tokenizer tests/data/tokenizers/byte_level.json, without tensors
stories260k.gguf    the tokenizer stories260k.json, without tensors

expected.json: for every tensor of these files the CRC-32 of its values as little-endian float32, as the `gguf` package
dequantizes them, rows in the order of Hugging Face's checkpoints.

Usage: make_gguf_fixtures.py [--out tests/data/gguf]
Needs gguf 0.19 and numpy; no network. The files are the same on every run.
"""

import argparse
import json
import struct
import zlib
from pathlib import Path

import gguf
import numpy as np
from gguf import GGMLQuantizationType as Type
from gguf.quants import dequantize, quantize

DATA = Path(__file__).resolve().parent.parent / "tests" / "data"

PLAIN = [Type.F32, Type.F16, Type.BF16]
# Where a block of each type holds float16 scales.
F16_AT = {
    Type.Q8_0: [0], Type.Q4_0: [0], Type.Q4_1: [0, 2], Type.Q5_0: [0], Type.Q5_1: [0, 2], Type.IQ4_NL: [0],
    Type.Q2_K: [80, 82], Type.Q3_K: [108], Type.Q4_K: [0, 2], Type.Q5_K: [0, 2], Type.Q6_K: [208], Type.IQ4_XS: [0],
}
READABLE_BLOCKS = [*F16_AT, Type.MXFP4, Type.Q8_K]
UNREADABLE = [Type.Q8_1, Type.IQ2_XXS, Type.IQ2_XS, Type.IQ3_XXS, Type.IQ1_S, Type.IQ3_S, Type.IQ2_S, Type.IQ1_M,
              Type.TQ1_0, Type.TQ2_0, Type.NVFP4, Type.Q1_0]


def crc(values):
    return zlib.crc32(np.ascontiguousarray(values, dtype="<f4").tobytes())


def values_of(raw, kind):
    """float32 values as the package dequantizes them; of Q8_K, which it does not know, by the format's definition."""
    if kind == Type.Q8_K:
        blocks = raw.reshape(-1, 292)
        scales = blocks[:, :4].copy().view("<f4")
        codes = blocks[:, 4:260].copy().view(np.int8).astype(np.float32)
        return (scales * codes).reshape(raw.shape[0], -1)
    return dequantize(raw, kind)


# --- types.gguf -------------------------------------------------------------------------------------------------------


def random_blocks(rng, kind, n_rows, n_blocks):
    """Random bytes with scales of a sane size: both signs, one of zero, one below float16's normal range."""
    size = gguf.GGML_QUANT_SIZES[kind][1]
    blocks = rng.integers(0, 256, (n_rows * n_blocks, size), dtype=np.uint8)
    for at in F16_AT.get(kind, []):
        scales = rng.normal(0, 0.01, len(blocks)).astype("<f2")
        scales[0], scales[1] = 0, 3e-6
        blocks[:, at:at + 2] = scales.view(np.uint8).reshape(-1, 2)
    if kind == Type.MXFP4:
        blocks[:, 0] = rng.integers(110, 130, len(blocks))
        blocks[:4, 0] = [0, 1, 2, 252]  # the smallest exponents, and the largest that is finite for every code
    if kind == Type.Q8_K:
        blocks[:, :4] = rng.normal(0, 0.01, len(blocks)).astype("<f4").view(np.uint8).reshape(-1, 4)
    return blocks.reshape(n_rows, n_blocks * size)


def make_types(out):
    rng = np.random.default_rng(1)
    writer = gguf.GGUFWriter(out / "types.gguf", "types")
    expected = {}

    def add(kind, raw, readable=True):
        name = f"t.{kind.name.lower()}"
        writer.add_tensor(name, raw, raw_dtype=kind)
        if readable:
            expected[name] = crc(values_of(raw, kind))

    for kind in PLAIN:
        add(kind, quantize(rng.normal(0, 1, (17, 48)).astype(np.float32), kind))
    for kind in READABLE_BLOCKS:
        add(kind, random_blocks(rng, kind, n_rows=17, n_blocks=2))
    for kind in UNREADABLE:
        add(kind, random_blocks(rng, kind, n_rows=2, n_blocks=1), readable=False)
    for kind, dtype in ((Type.I8, np.int8), (Type.I16, np.int16), (Type.I32, np.int32), (Type.I64, np.int64),
                        (Type.F64, np.float64)):
        writer.add_tensor(f"t.{kind.name.lower()}", np.zeros((2, 4), dtype))
    finish(writer)
    return expected


# --- models -----------------------------------------------------------------------------------------------------------

NAMES = {
    "model.embed_tokens.weight": "token_embd.weight", "model.norm.weight": "output_norm.weight",
    "lm_head.weight": "output.weight",
}
LAYER_NAMES = {
    "input_layernorm": "attn_norm", "post_attention_layernorm": "ffn_norm", "self_attn.q_proj": "attn_q",
    "self_attn.k_proj": "attn_k", "self_attn.v_proj": "attn_v", "self_attn.o_proj": "attn_output",
    "self_attn.q_norm": "attn_q_norm", "self_attn.k_norm": "attn_k_norm", "mlp.gate_proj": "ffn_gate",
    "mlp.up_proj": "ffn_up", "mlp.down_proj": "ffn_down",
}


def gguf_name(name):
    if name in NAMES:
        return NAMES[name]
    _, _, layer, rest = name.split(".", 3)
    part, ending = rest.rsplit(".", 1)
    return f"blk.{layer}.{LAYER_NAMES[part]}.{ending}"


def interleave(values, head_dim):
    """Rows (j, i) of each head, j = 0 and 1, become (i, j): the two of a rotary pair side by side."""
    heads = values.reshape(-1, 2, head_dim // 2, *values.shape[1:])
    return heads.swapaxes(1, 2).reshape(values.shape)


def restore(values, head_dim):
    heads = values.reshape(-1, head_dim // 2, 2, *values.shape[1:])
    return heads.swapaxes(1, 2).reshape(values.shape)


def llama3_factors(rope, head_dim):
    """By how much each pair's wavelength is stretched, as llama.cpp's converter writes it."""
    exponents = np.arange(0, head_dim, 2, dtype=np.float32) / np.float32(head_dim)
    context, low, high = rope["original_max_position_embeddings"], rope["low_freq_factor"], rope["high_freq_factor"]
    factors = []
    for frequency in 1.0 / (rope["rope_theta"] ** exponents):
        wavelength = 2 * np.pi / frequency
        if wavelength < context / high:
            factors.append(1.0)
        elif wavelength > context / low:
            factors.append(rope["factor"])
        else:
            smooth = (context / wavelength - low) / (high - low)
            factors.append(1 / ((1 - smooth) / rope["factor"] + smooth))
    return np.array(factors, dtype=np.float32)


def add_hyper_parameters(writer, config, head_dim):
    writer.add_context_length(config["max_position_embeddings"])
    writer.add_embedding_length(config["hidden_size"])
    writer.add_block_count(config["num_hidden_layers"])
    writer.add_feed_forward_length(config["intermediate_size"])
    writer.add_head_count(config["num_attention_heads"])
    writer.add_head_count_kv(config["num_key_value_heads"])
    writer.add_layer_norm_rms_eps(config["rms_norm_eps"])
    writer.add_key_length(head_dim)
    writer.add_value_length(head_dim)
    writer.add_rope_dimension_count(head_dim)
    writer.add_vocab_size(config["vocab_size"])
    rope = config["rope_parameters"]
    writer.add_rope_freq_base(rope["rope_theta"])
    if rope["rope_type"] == "llama3":
        writer.add_tensor("rope_freqs.weight", llama3_factors(rope, head_dim))
    elif rope["rope_type"] == "yarn":
        writer.add_rope_scaling_type(gguf.RopeScalingType.YARN)
        writer.add_rope_scaling_factor(rope["factor"])
        writer.add_rope_scaling_orig_ctx_len(rope["original_max_position_embeddings"])
    elif rope["rope_type"] != "default":
        raise ValueError(rope["rope_type"])


def read_checkpoint(folder):
    """BF16 is exact in float32."""
    raw = (folder / "model.safetensors").read_bytes()
    (header_bytes,) = struct.unpack_from("<Q", raw)
    header = json.loads(raw[8:8 + header_bytes])
    tensors = {}
    for name, entry in sorted(header.items()):
        if name == "__metadata__":
            continue
        begin, end = (8 + header_bytes + at for at in entry["data_offsets"])
        data = raw[begin:end]
        if entry["dtype"] == "BF16":
            values = (np.frombuffer(data, "<u2").astype(np.uint32) << 16).view(np.float32)
        else:
            assert entry["dtype"] == "F32"
            values = np.frombuffer(data, "<f4")
        tensors[name] = values.reshape(entry["shape"])
    return tensors


def make_model(out, fixture, type_of, name=None):
    """type_of: GGUF name and shape of a matrix -> its type; everything of rank 1 is F32, as llama.cpp has it."""
    config = json.loads((DATA / "fixtures" / fixture / "config.json").read_text())
    head_dim = config.get("head_dim") or config["hidden_size"] // config["num_attention_heads"]
    interleaved = config["model_type"] == "llama"
    name = name or fixture
    writer = gguf.GGUFWriter(out / f"{name}.gguf", config["model_type"])
    writer.add_name(f"fixture {fixture}")
    add_hyper_parameters(writer, config, head_dim)
    expected = {}
    for source, values in read_checkpoint(DATA / "fixtures" / fixture).items():
        target = gguf_name(source)
        if target == "output.weight" and config["tie_word_embeddings"]:
            continue
        rotated = interleaved and (".attn_q." in target or ".attn_k." in target)
        if rotated:
            values = interleave(values, head_dim)
        kind = type_of(target, values.shape) if values.ndim > 1 else Type.F32
        raw = quantize(values, kind)
        stored = values_of(raw, kind).reshape(values.shape)
        writer.add_tensor(target, raw, raw_dtype=kind)
        expected[target] = crc(restore(stored, head_dim) if rotated else stored)
    finish(writer)
    return expected


def mixed_types(name, shape):
    if shape[-1] % 32:
        return Type.F16
    kinds = {"token_embd": Type.Q8_0, "attn_q": Type.Q8_0, "attn_k": Type.Q4_0, "attn_v": Type.Q4_1,
             "attn_output": Type.MXFP4, "ffn_gate": Type.Q8_0, "ffn_up": Type.Q4_0}
    return kinds[name.split(".")[-2]]


# --- tokenizers -------------------------------------------------------------------------------------------------------


def make_byte_level(out):
    tokenizer = json.loads((DATA / "tokenizers" / "byte_level.json").read_text())
    added = {token["id"]: token for token in tokenizer["added_tokens"]}
    spelling = {i: token for token, i in tokenizer["model"]["vocab"].items()}
    spelling.update((i, token["content"]) for i, token in added.items())
    kinds = []
    for i in range(max(spelling) + 1):
        kind = gguf.TokenType.NORMAL
        if i in added:
            kind = gguf.TokenType.CONTROL if added[i]["special"] else gguf.TokenType.USER_DEFINED
        kinds.append(kind if i in spelling else gguf.TokenType.UNUSED)
    writer = gguf.GGUFWriter(out / "byte_level.gguf", "qwen2")
    writer.add_tokenizer_model("gpt2")
    writer.add_tokenizer_pre("qwen2")
    writer.add_token_list([spelling.get(i, f"[PAD{i}]") for i in range(max(spelling) + 1)])
    writer.add_token_types(kinds)
    merges = tokenizer["model"]["merges"]
    writer.add_token_merges([m if isinstance(m, str) else " ".join(m) for m in merges])
    finish(writer)


def make_sentencepiece(out):
    tokenizer = json.loads((DATA / "tokenizers" / "stories260k.json").read_text())
    spelling = {i: token for token, i in tokenizer["model"]["vocab"].items()}
    tokens = [spelling[i] for i in range(len(spelling))]
    kinds = [gguf.TokenType.BYTE if t.startswith("<0x") else gguf.TokenType.NORMAL for t in tokens]
    kinds[:3] = [gguf.TokenType.UNKNOWN, gguf.TokenType.CONTROL, gguf.TokenType.CONTROL]
    writer = gguf.GGUFWriter(out / "stories260k.gguf", "llama")
    writer.add_tokenizer_model("llama")
    writer.add_tokenizer_pre("default")
    writer.add_token_list(tokens)
    writer.add_token_scores([0.0 if i < 259 else float(259 - i) for i in range(len(tokens))])
    writer.add_token_types(kinds)
    writer.add_bos_token_id(1)
    writer.add_eos_token_id(2)
    writer.add_unk_token_id(0)
    finish(writer)


def finish(writer):
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, default=DATA / "gguf")
    out = parser.parse_args().out
    out.mkdir(parents=True, exist_ok=True)
    expected = {
        "types": make_types(out),
        "llama_bf16": make_model(out, "llama_bf16", lambda *_: Type.BF16),
        "llama_untied": make_model(out, "llama_untied", lambda *_: Type.F32),
        "qwen2": make_model(out, "qwen2", lambda *_: Type.F16),
        "qwen3_yarn": make_model(out, "qwen3_yarn", lambda *_: Type.F32),
        "llama_quantized": make_model(out, "llama", mixed_types, name="llama_quantized"),
    }
    make_byte_level(out)
    make_sentencepiece(out)
    (out / "expected.json").write_text(json.dumps(expected, indent=1) + "\n")
    total = sum(file.stat().st_size for file in out.iterdir())
    print(f"{out}: {total / 1024:.0f} KiB")


if __name__ == "__main__":
    main()
