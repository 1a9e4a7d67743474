#!/usr/bin/env python3
"""Compares the logits of an imported GGUF model with those of a plain float64 forward pass over the same weights.

    scripts/check_gguf_logits.py build/release MODEL.gguf [--text FILE] [--tokens 64]

The forward pass is numpy alone: weights as the `gguf` package dequantizes them, rotary pairs where GGUF has them, so it
shares nothing with the importer. Two models are made: one with --type f32, whose logits differ by rounding only, and one
with the file's own types, where activations are rounded to int8 besides. Printed for each: the largest and the root mean
square difference, and how often the most likely token is the same. Llama family only, without rope scaling.

Needs the packages gguf and numpy, some GB of memory, and disk space for the model in float32.
"""

import argparse
import json
import struct
import subprocess
import sys
import tempfile
from pathlib import Path

import gguf
import numpy as np
from gguf.quants import dequantize

TEXT = """The capital of France is Paris, and the capital of Germany is Berlin. A list of prime numbers begins with 2, 3, 5, 7.
def add(a, b):
    return a + b
"""


class Model:
    def __init__(self, path):
        reader = gguf.GGUFReader(path)
        self.fields = {name: field.contents() for name, field in reader.fields.items() if not name.startswith("tokenizer.")}
        if self.fields["general.architecture"] != "llama":
            sys.exit("only the llama family is written down here")
        self.tensors = {tensor.name: tensor for tensor in reader.tensors}
        if "rope_freqs.weight" in self.tensors or self.fields.get("llama.rope.scaling.type", "none") != "none":
            sys.exit("rope scaling is not written down here")

    def number(self, name):
        return self.fields[f"llama.{name}"]

    def weight(self, name):
        tensor = self.tensors[name]
        values = dequantize(tensor.data, tensor.tensor_type).astype(np.float64)
        return values.reshape([int(n) for n in reversed(tensor.shape)])

    def logits(self, ids):
        n_head, n_head_kv = self.number("attention.head_count"), self.number("attention.head_count_kv")
        head_dim = self.number("embedding_length") // n_head
        embedding = self.weight("token_embd.weight")
        x = embedding[ids]
        n = len(ids)
        pairs = np.arange(0, head_dim, 2) / head_dim
        angles = np.arange(n)[:, None] / self.fields.get("llama.rope.freq_base", 10000.0) ** pairs
        cos, sin = np.cos(angles)[:, None, :], np.sin(angles)[:, None, :]

        def norm(values, name):
            epsilon = self.number("attention.layer_norm_rms_epsilon")
            return values / np.sqrt((values * values).mean(-1, keepdims=True) + epsilon) * self.weight(name)

        def rotate(values):
            even, odd = values[..., 0::2], values[..., 1::2]
            turned = np.stack([even * cos - odd * sin, even * sin + odd * cos], -1)
            return turned.reshape(values.shape)

        hidden = np.triu(np.full((n, n), -np.inf), 1)
        for il in range(self.number("block_count")):
            y = norm(x, f"blk.{il}.attn_norm.weight")
            q = rotate((y @ self.weight(f"blk.{il}.attn_q.weight").T).reshape(n, n_head, head_dim))
            k = rotate((y @ self.weight(f"blk.{il}.attn_k.weight").T).reshape(n, n_head_kv, head_dim))
            v = (y @ self.weight(f"blk.{il}.attn_v.weight").T).reshape(n, n_head_kv, head_dim)
            k, v = (np.repeat(t, n_head // n_head_kv, axis=1) for t in (k, v))
            scores = np.einsum("qhd,khd->hqk", q, k) / np.sqrt(head_dim) + hidden
            scores = np.exp(scores - scores.max(-1, keepdims=True))
            scores /= scores.sum(-1, keepdims=True)
            y = np.einsum("hqk,khd->qhd", scores, v).reshape(n, n_head * head_dim)
            x = x + y @ self.weight(f"blk.{il}.attn_output.weight").T
            y = norm(x, f"blk.{il}.ffn_norm.weight")
            gate = y @ self.weight(f"blk.{il}.ffn_gate.weight").T
            gate = gate / (1 + np.exp(-gate)) * (y @ self.weight(f"blk.{il}.ffn_up.weight").T)
            x = x + gate @ self.weight(f"blk.{il}.ffn_down.weight").T
        head = self.weight("output.weight") if "output.weight" in self.tensors else embedding
        return norm(x, "output_norm.weight") @ head.T


def run(*command):
    return subprocess.run([str(part) for part in command], check=True, capture_output=True, text=True).stdout


def ggmlx_logits(program, model, ids, folder):
    ids_file, out = folder / "ids.json", folder / "logits.safetensors"
    ids_file.write_text(json.dumps(ids))
    run(program, "eval", model, "--ids", ids_file, "--last", len(ids), "--logits", out)
    raw = out.read_bytes()
    (header_bytes,) = struct.unpack_from("<Q", raw)
    entry = json.loads(raw[8:8 + header_bytes])["logits"]
    begin, end = (8 + header_bytes + at for at in entry["data_offsets"])
    return np.frombuffer(raw[begin:end], "<f4").reshape(entry["shape"]).astype(np.float64)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("build", type=Path)
    parser.add_argument("model", type=Path)
    parser.add_argument("--text", type=Path)
    parser.add_argument("--tokens", type=int, default=64)
    args = parser.parse_args()
    program = args.build / "tools" / "ggmlx"
    text = args.text.read_text(encoding="utf-8") if args.text else TEXT
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        exact, own = folder / "f32.ggmx", folder / "own.ggmx"
        run(program, "convert", args.model, "-o", own)
        run(program, "convert", args.model, "-o", exact, "--type", "f32")
        ids = json.loads(run(program, "tokenize", own, text, "--ids-only"))[:args.tokens]
        expected = Model(args.model).logits(ids)
        print(f"{len(ids)} tokens; logits from {expected.min():.1f} to {expected.max():.1f}, "
              f"standard deviation {expected.std():.2f}")
        for what, model in (("as f32", exact), ("as stored", own)):
            found = ggmlx_logits(program, model, ids, folder)
            difference = np.abs(found - expected)
            same = (found.argmax(-1) == expected.argmax(-1)).sum()
            print(f"{what:10} largest difference {difference.max():.2e}, rms {np.sqrt((difference ** 2).mean()):.2e}, "
                  f"same most likely token {same} of {len(ids)}")


if __name__ == "__main__":
    main()
