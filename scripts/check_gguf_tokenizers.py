#!/usr/bin/env python3
"""Takes real tokenizers through GGUF and compares the tokens with those of Hugging Face's tokenizers.

    scripts/check_gguf_tokenizers.py build/release NAME=TOKENIZER.json [NAME=TOKENIZER.json ...] [--count 2000] [--seed 1]

NAME is what tokenizer.ggml.pre says ("qwen2", "llama-bpe" ...). For each: vocabulary, kinds of tokens and merges are
written into a GGUF file, as llama.cpp's converter does, with a model that is 32 wide beside them; `ggmlx convert` makes a
model of it. Compared with the original, by scripts/compare_tokenizers.py's strings: the ids that the made tokenizer.json
gives in the package `tokenizers`, and those that ggmlx gives.

Needs the packages gguf, numpy and tokenizers.
"""

import argparse
import json
import subprocess
import sys
import tempfile
from pathlib import Path

import gguf
import numpy as np
from tokenizers import Tokenizer

sys.path.insert(0, str(Path(__file__).resolve().parent))
sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "gguf-like-spec"))
import compare_tokenizers  # noqa: E402
import read_ggmx  # noqa: E402

WIDE = 32
LAYER = {"attn_norm": (), "attn_q": (WIDE,), "attn_k": (WIDE,), "attn_v": (WIDE,), "attn_output": (WIDE,), "ffn_norm": (),
         "ffn_gate": (WIDE,), "ffn_up": (WIDE,), "ffn_down": (WIDE,)}


def write_gguf(path, pre, original):
    tree = json.loads(original)
    added = {token["id"]: token for token in tree["added_tokens"]}
    spelling = {i: token for token, i in tree["model"]["vocab"].items()}
    spelling.update((i, token["content"]) for i, token in added.items())
    n_tokens = max(spelling) + 1
    kinds = []
    for i in range(n_tokens):
        if i in added:
            kinds.append(gguf.TokenType.CONTROL if added[i]["special"] else gguf.TokenType.USER_DEFINED)
        else:
            kinds.append(gguf.TokenType.NORMAL if i in spelling else gguf.TokenType.UNUSED)
    writer = gguf.GGUFWriter(path, "llama")
    writer.add_context_length(64)
    writer.add_embedding_length(WIDE)
    writer.add_block_count(1)
    writer.add_feed_forward_length(WIDE)
    writer.add_head_count(1)
    writer.add_layer_norm_rms_eps(1e-5)
    writer.add_tokenizer_model("gpt2")
    writer.add_tokenizer_pre(pre)
    writer.add_token_list([spelling.get(i, f"[PAD{i}]") for i in range(n_tokens)])
    writer.add_token_types(kinds)
    writer.add_token_merges([m if isinstance(m, str) else " ".join(m) for m in tree["model"]["merges"]])
    writer.add_add_bos_token(False)
    writer.add_tensor("token_embd.weight", np.zeros((n_tokens, WIDE), np.float16))
    for name, rows in LAYER.items():
        writer.add_tensor(f"blk.0.{name}.weight", np.zeros((*rows, WIDE), np.float32))
    writer.add_tensor("output_norm.weight", np.zeros(WIDE, np.float32))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


def our_ids(program, tokenizer_json, texts):
    lines = "".join(json.dumps(text) + "\n" for text in texts)
    result = subprocess.run([program, tokenizer_json], input=lines, capture_output=True, text=True, check=True)
    return [json.loads(line)["ids"] for line in result.stdout.split("\n")[:-1]]


def check(build, pre, path, count, seed, folder):
    original = Tokenizer.from_file(str(path))
    source, model = folder / f"{pre}.gguf", folder / f"{pre}.ggmx"
    write_gguf(source, pre, Path(path).read_text(encoding="utf-8"))
    subprocess.run([build / "tools" / "ggmlx", "convert", source, "-o", model], check=True, capture_output=True)
    made = folder / f"{pre}.json"
    made.write_bytes(read_ggmx.ModelFile(str(model)).document("tokenizer.json"))

    mixer = compare_tokenizers.Mixer(seed, original, [])
    texts = [mixer.text() for _ in range(count)]
    expected = [e.ids for e in original.encode_batch(texts, add_special_tokens=False)]
    theirs = [e.ids for e in Tokenizer.from_file(str(made)).encode_batch(texts, add_special_tokens=False)]
    ours = our_ids(build / "tests" / "tokenize_lines", made, texts)
    n_wrong = 0
    for text, e, t, o in zip(texts, expected, theirs, ours, strict=True):
        if e == t == o:
            continue
        n_wrong += 1
        if n_wrong <= 3:
            print(f"  {text!r}\n    original   {e}\n    made       {t}\n    ggmlx      {o}")
    print(f"{pre}: {count} texts, {n_wrong} differ")
    return n_wrong


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("build", type=Path)
    parser.add_argument("tokenizers", nargs="+", metavar="NAME=TOKENIZER.json")
    parser.add_argument("--count", type=int, default=2000)
    parser.add_argument("--seed", type=int, default=1)
    args = parser.parse_args()
    n_wrong = 0
    with tempfile.TemporaryDirectory() as folder:
        for pair in args.tokenizers:
            pre, path = pair.split("=", 1)
            n_wrong += check(args.build, pre, path, args.count, args.seed, Path(folder))
    sys.exit(n_wrong > 0)


if __name__ == "__main__":
    main()
