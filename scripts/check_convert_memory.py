#!/usr/bin/env python3
"""The converter's memory does not grow with the model: converts a sparse checkpoint of 8 GiB in a child whose address
space has room for its mapped files and little more, and samples the child's anonymous memory meanwhile.

Usage: check_convert_memory.py GGMLX [GIB]     exit code 0: passed; 1: failed; 77: cannot run here (the reason is printed)

The bound: twice the largest source tensor plus 512 MiB. Weights are zeros, so the result is q8_0 of zeros: about half the
size of the bf16 source, written to the temporary folder (TMPDIR).
"""
import json
import os
import resource
import shutil
import struct
import subprocess
import sys
import tempfile
import threading
import time

MIB = 1 << 20
GIB = 1 << 30
HIDDEN, FEED_FORWARD, VOCAB, HEADS = 4096, 16384, 32768, 32


def tensors(n_layers):
    """name -> shape of a Llama checkpoint."""
    yield "model.embed_tokens.weight", (VOCAB, HIDDEN)
    for layer in range(n_layers):
        prefix = f"model.layers.{layer}."
        for name in ("q", "k", "v", "o"):
            yield f"{prefix}self_attn.{name}_proj.weight", (HIDDEN, HIDDEN)
        yield f"{prefix}mlp.gate_proj.weight", (FEED_FORWARD, HIDDEN)
        yield f"{prefix}mlp.up_proj.weight", (FEED_FORWARD, HIDDEN)
        yield f"{prefix}mlp.down_proj.weight", (HIDDEN, FEED_FORWARD)
        yield f"{prefix}input_layernorm.weight", (HIDDEN,)
        yield f"{prefix}post_attention_layernorm.weight", (HIDDEN,)
    yield "model.norm.weight", (HIDDEN,)


def write_checkpoint(folder, size_bytes):
    """A sparse checkpoint of at least that size; returns the bytes of its weights and of its largest tensor."""
    per_layer = 2 * (4 * HIDDEN * HIDDEN + 3 * HIDDEN * FEED_FORWARD)
    n_layers = -(-size_bytes // per_layer)
    header, offset, largest = {}, 0, 0
    for name, shape in tensors(n_layers):
        n = 2
        for extent in shape:
            n *= extent
        header[name] = {"dtype": "BF16", "shape": shape, "data_offsets": [offset, offset + n]}
        offset += n
        largest = max(largest, n)
    text = json.dumps(header).encode()
    with open(os.path.join(folder, "model.safetensors"), "wb") as file:
        file.write(struct.pack("<Q", len(text)) + text)
        file.truncate(8 + len(text) + offset)
    config = {"model_type": "llama", "num_hidden_layers": n_layers, "hidden_size": HIDDEN, "vocab_size": VOCAB,
              "intermediate_size": FEED_FORWARD, "num_attention_heads": HEADS, "tie_word_embeddings": True}
    with open(os.path.join(folder, "config.json"), "w", encoding="utf-8") as file:
        json.dump(config, file)
    return offset, largest


def anonymous_bytes(pid):
    """RssAnon of a process, 0 when it is gone."""
    try:
        with open(f"/proc/{pid}/status", encoding="ascii") as file:
            for line in file:
                if line.startswith("RssAnon:"):
                    return int(line.split()[1]) * 1024
    except OSError:
        pass
    return 0


def main():
    program = os.path.abspath(sys.argv[1])
    size = int(float(sys.argv[2]) * GIB) if len(sys.argv) > 2 else 8 * GIB
    with tempfile.TemporaryDirectory() as folder:
        if shutil.disk_usage(folder).free < size * 0.6:
            print(f"{folder} has less than {size * 0.6 / GIB:.1f} GiB free for the result; set TMPDIR")
            return 77
        total, largest = write_checkpoint(folder, size)
        bound = 2 * largest + 512 * MIB
        # Everything that is mapped counts: the source file, thread stacks and arenas, and what the bound allows.
        limit = total + bound + 1024 * MIB
        peak = [0]
        started = time.monotonic()
        with subprocess.Popen(
                [program, "convert", folder, "-o", os.path.join(folder, "model.ggmx"), "--type", "q8_0"],
                preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_AS, (limit, limit))) as child:
            def sample():
                while child.poll() is None:
                    peak[0] = max(peak[0], anonymous_bytes(child.pid))
                    time.sleep(0.005)

            sampler = threading.Thread(target=sample)
            sampler.start()
            code = child.wait()
            sampler.join()
        print(f"source {total / GIB:.2f} GiB, largest tensor {largest / MIB:.0f} MiB, {time.monotonic() - started:.0f} s")
        print(f"peak anonymous memory {peak[0] / MIB:.0f} MiB, bound {bound / MIB:.0f} MiB, exit code {code}")
        return 0 if code == 0 and 0 < peak[0] <= bound else 1


if __name__ == "__main__":
    sys.exit(main())
