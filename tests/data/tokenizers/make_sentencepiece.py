#!/usr/bin/env python3
"""Trains the SentencePiece models in this folder on corpus.json and writes what SentencePiece itself makes of the corpus; the
same for Mistral's files in real/, with tiktoken for tekken.json.

    pip install sentencepiece==0.2.3 tiktoken zstandard && python3 make_sentencepiece.py
"""
import base64
import json
import os
import shutil
import tempfile

import sentencepiece
import tiktoken
import zstandard

HERE = os.path.dirname(os.path.abspath(__file__))
# One rule of every kind: a character, a sequence with a mark, a mark by itself, longer, shorter and empty results.
RULES = {"\uff21": "A", "\u00a0": " ", "\r": " ", "\t": " ", "\u200b": "", "e\u0301": "\u00e9", "\ufb01": "fi", "\u2026": "...", "\u3000": " ", "\u00bd": "1/2",
         "s\u0323\u0307": "\u1e69", "\u0301": "'", "\u2581": "_", "\u4e2d\u6587": "zh"}


def hexadecimal(text):
    return " ".join(f"{ord(c):X}" for c in text)


def train(name, corpus, folder, **options):
    os.chdir(folder)  # the model keeps the names of the trainer's files
    with open("corpus.txt", "w", encoding="utf-8") as out:
        out.write("\n".join(t.replace("\n", " ") for t in corpus if t.strip()))
    sentencepiece.SentencePieceTrainer.train(input="corpus.txt", model_prefix=name, character_coverage=0.98, hard_vocab_limit=False, minloglevel=2, **options)
    shutil.copy(name + ".model", HERE)
    if "normalization_rule_tsv" in options:  # Hugging Face applies such rules otherwise; its side is in make_fixtures.py
        return
    model = sentencepiece.SentencePieceProcessor(model_file=os.path.join(HERE, name + ".model"))
    rows = [[model.encode(t), model.decode(model.encode(t))] for t in corpus]
    with open(os.path.join(HERE, name + "_expected.json"), "w", encoding="utf-8") as out:
        out.write("[\n" + ",\n".join(json.dumps(r, separators=(",", ":")) for r in rows) + "\n]\n")


def read_zstd(name):
    with open(os.path.join(HERE, "real", name), "rb") as file:
        return zstandard.ZstdDecompressor().stream_reader(file).read()


def real_models(corpus):
    spm = sentencepiece.SentencePieceProcessor(model_proto=read_zstd("mistral-v1/tokenizer.model.zst"))
    tekken = json.loads(read_zstd("tekken/tekken.json.zst"))
    config = tekken["config"]
    n_special = config["default_num_special_tokens"]
    ranks = {base64.b64decode(v["token_bytes"]): v["rank"] for v in tekken["vocab"][:config["default_vocab_size"] - n_special]}
    encoding = tiktoken.Encoding(name="tekken", pat_str=config["pattern"], mergeable_ranks=ranks, special_tokens={})
    rows = {"mistral-v1": [spm.encode(t) for t in corpus], "tekken": [[i + n_special for i in encoding.encode_ordinary(t)] for t in corpus]}
    with open(os.path.join(HERE, "real", "model_files_expected.json"), "w", encoding="utf-8") as out:
        json.dump(rows, out, separators=(",", ":"))
        out.write("\n")


def main():
    with open(os.path.join(HERE, "corpus.json"), encoding="utf-8") as file:
        corpus = json.load(file)
    with tempfile.TemporaryDirectory() as folder:
        rules = "rules.tsv"
        os.chdir(folder)
        with open(rules, "w", encoding="utf-8") as out:
            out.writelines(f"{hexadecimal(a)}\t{hexadecimal(b)}\n" for a, b in RULES.items())
        train("sp_unigram", corpus, folder, vocab_size=450, model_type="unigram", normalization_rule_tsv=rules)
        real_models(corpus)
        train("sp_unigram_bytes", corpus, folder, vocab_size=800, model_type="unigram", byte_fallback=True, normalization_rule_name="identity")
        train("sp_bpe", corpus, folder, vocab_size=900, model_type="bpe", byte_fallback=True, remove_extra_whitespaces=False,
              normalization_rule_name="identity", user_defined_symbols=["<sep>"])


if __name__ == "__main__":
    main()
