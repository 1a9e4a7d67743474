#!/usr/bin/env python3
"""Checks that the converter's memory depends on the largest tensor and the threads, not on the size of the model.

Usage: check_convert_memory.py PATH/TO/ggmlx
Writes a Llama checkpoint of 8 and one of 40 equal layers (0.3 and 1.4 GB, bf16, in a temporary folder), converts both to
q4_0, and watches the anonymous memory of the converter (pages of a mapped file can be dropped and do not count). Exit
code 1 if the larger model takes more than 10 % and 16 MiB above the smaller one; 77 if the disk lacks the space.
"""
import array
import json
import os
import random
import shutil
import subprocess
import sys
import tempfile
import time

HIDDEN, FEED_FORWARD, HEADS, VOCABULARY = 1024, 4096, 16, 512
SPACE_BYTES = 4 << 30
FIXTURE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "tests", "data", "stories260k")


def tensors_of(n_layers):
    """[(name, shape)] of a Llama checkpoint."""
    tensors = [("model.embed_tokens.weight", (VOCABULARY, HIDDEN)), ("model.norm.weight", (HIDDEN,)),
               ("lm_head.weight", (VOCABULARY, HIDDEN))]
    for layer in range(n_layers):
        prefix = f"model.layers.{layer}."
        tensors += [(f"{prefix}self_attn.{part}_proj.weight", (HIDDEN, HIDDEN)) for part in "qkvo"]
        tensors += [(f"{prefix}mlp.{part}_proj.weight", (FEED_FORWARD, HIDDEN)) for part in ("gate", "up")]
        tensors += [(f"{prefix}mlp.down_proj.weight", (HIDDEN, FEED_FORWARD))]
        tensors += [(f"{prefix}{part}_layernorm.weight", (HIDDEN,)) for part in ("input", "post_attention")]
    return tensors


def write_checkpoint(folder, n_layers):
    os.makedirs(folder)
    for name in ("tokenizer.json", "tokenizer_config.json", "special_tokens_map.json", "generation_config.json"):
        if os.path.exists(os.path.join(FIXTURE, name)):
            shutil.copy(os.path.join(FIXTURE, name), folder)
    config = {"architectures": ["LlamaForCausalLM"], "model_type": "llama", "hidden_size": HIDDEN,
              "intermediate_size": FEED_FORWARD, "num_hidden_layers": n_layers, "num_attention_heads": HEADS,
              "num_key_value_heads": HEADS, "vocab_size": VOCABULARY, "max_position_embeddings": 512,
              "rms_norm_eps": 1e-5, "rope_theta": 10000.0, "hidden_act": "silu", "tie_word_embeddings": False,
              "torch_dtype": "bfloat16", "bos_token_id": 1, "eos_token_id": 2}
    with open(os.path.join(folder, "config.json"), "w", encoding="utf-8") as file:
        json.dump(config, file)

    index, offset = {}, 0
    for name, shape in tensors_of(n_layers):
        size = 2 * shape[0] * (shape[1] if len(shape) == 2 else 1)
        index[name] = {"dtype": "BF16", "shape": list(shape), "data_offsets": [offset, offset + size]}
        offset += size
    header = json.dumps(index).encode()
    header += b" " * (-len(header) % 8)
    rng = random.Random(1)
    # bf16 numbers of either sign between 1/128 and 1/32
    block = array.array("H", (rng.randrange(0x3C00, 0x3D00) | rng.choice((0, 0x8000)) for _ in range(1 << 19))).tobytes()
    with open(os.path.join(folder, "model.safetensors"), "wb") as file:
        file.write(len(header).to_bytes(8, "little") + header)
        while offset > 0:
            file.write(block[:offset])
            offset -= len(block)


def peak_anonymous_bytes(command):
    """Runs command and returns the largest RssAnon seen, looking every 10 ms."""
    peak = 0
    process = subprocess.Popen(command, stdin=subprocess.DEVNULL)
    while process.poll() is None:
        try:
            with open(f"/proc/{process.pid}/status", encoding="utf-8") as status:
                for line in status:
                    if line.startswith("RssAnon:"):
                        peak = max(peak, int(line.split()[1]) * 1024)
        except OSError:
            pass
        time.sleep(0.01)
    if process.returncode != 0:
        sys.exit(f"check_convert_memory: {' '.join(command)} failed with exit code {process.returncode}")
    return peak


def main(program):
    with tempfile.TemporaryDirectory() as folder:
        if shutil.disk_usage(folder).free < SPACE_BYTES:
            print(f"{folder} has less than {SPACE_BYTES >> 30} GiB free")
            return 77
        peaks = []
        for n_layers in (8, 40):
            checkpoint = os.path.join(folder, f"layers{n_layers}")
            write_checkpoint(checkpoint, n_layers)
            peaks.append(peak_anonymous_bytes([program, "convert", checkpoint, "-o", checkpoint + ".ggmx", "--type", "q4_0"]))
            size = os.path.getsize(os.path.join(checkpoint, "model.safetensors"))
            print(f"{n_layers} layers, {size / 2**20:.0f} MiB: at most {peaks[-1] / 2**20:.1f} MiB of memory")
            shutil.rmtree(checkpoint)
    bounded = peaks[1] <= peaks[0] * 1.1 + (16 << 20)
    print(f"check_convert_memory: {'memory is bounded' if bounded else 'FAILED: memory grows with the model'}")
    return 0 if bounded else 1


if __name__ == "__main__":
    sys.exit(main(os.path.abspath(sys.argv[1])) if len(sys.argv) == 2 else __doc__)
