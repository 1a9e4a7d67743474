#!/usr/bin/env python3
"""Compares ggmlx's tokenizer with Hugging Face's on tokenizers that nobody would make: random normalizers, pre-tokenizers,
decoders, post-processors, added tokens and models, put together as they come.

    scripts/compare_random_tokenizers.py build/release/tests/tokenize_lines [--count 300] [--texts 60] [--seed 1]

Needs the Python package `tokenizers`. Every tokenizer gives the same ids and the same text on both sides, or is refused by
ggmlx with the name of what it does not support. Left out are texts on which the package itself panics, and decoded text in
which byte tokens do not form UTF-8 (ggmlx keeps the characters among them, see src/tokenizer/README.md).
"""
import argparse
import collections
import json
import os
import random
import subprocess
import sys
import tempfile

from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers, processors

from compare_tokenizers import SAMPLES

MARK = "\u2581"
BEHAVIORS = ["removed", "isolated", "merged_with_previous", "merged_with_next", "contiguous"]
REGEXES = [r"\s+", r"\p{L}+", r"\d", r"\p{N}{1,3}", r"[^\s\p{L}\p{N}]+", r"\s+(?!\S)|\s+", r"'s|'t| ?\p{L}+| ?\p{N}+", "[aeiou]", "x*", r"\p{Han}|\p{Hiragana}", "ab?", r"(?<=\d)(?=\D)",
           r"[\r\n]+", MARK + "+", r"\P{L}", "a|b|", r"^\s", r"\S$"]
STRINGS = [" ", "a", "ab", MARK, "\n", "e", "--", "\u4e2d", "<s>"]
WORDS = ["the", "an", "in", "ing", "on", "ab", "abc", "1", "12", "  ", "\n\n", MARK + "the", MARK + "a", "\u4e2d\u6587", "\u00e9", "e\u0301", "ist", "\u0120the", "\u0120a", "\u00c3", "\u00c3\u00a9", "==", "<s>", "</s>"]
TEXTS = SAMPLES + ["a b  c   d", "the thing in the king's ring", "abcabc ab abc", "<s>a</s> b <s>", "x<l> y <r> z", "cat cats concat cat.", "The THE the", "  the  ", "a\n\nb", "", "-- a --", "\u2581the \u2581", "12ab34cd"]


class Maker:
    def __init__(self, seed):
        self.r = random.Random(seed)

    def flag(self):
        return self.r.random() < 0.5

    def some(self, make, most):
        return [make() for _ in range(self.r.randint(0, most))]

    def pattern(self):
        return Regex(self.r.choice(REGEXES)) if self.flag() else self.r.choice(STRINGS)

    def normalizer(self):
        kind = self.r.randrange(9)
        if kind < 4:
            return [normalizers.NFC, normalizers.NFD, normalizers.NFKC, normalizers.NFKD][kind]()
        if kind == 4:
            return normalizers.Lowercase()
        if kind == 5:
            return normalizers.Prepend(self.r.choice([MARK, "a", " "]))
        if kind == 6:
            return normalizers.Strip(left=self.flag(), right=self.flag())
        return normalizers.Replace(self.pattern(), self.r.choice([MARK, "", " ", "ab"]))

    def scheme(self):
        return self.r.choice(["always", "first", "never"])

    def pre_tokenizer(self):
        kind = self.r.randrange(9)
        if kind == 0:
            return pre_tokenizers.ByteLevel(add_prefix_space=self.flag(), use_regex=self.flag())
        if kind == 1:
            return pre_tokenizers.Digits(individual_digits=self.flag())
        if kind == 2:
            return pre_tokenizers.Metaspace(replacement=self.r.choice([MARK, "_"]), prepend_scheme=self.scheme(), split=self.flag())
        if kind == 3:
            return pre_tokenizers.Punctuation(self.r.choice(BEHAVIORS))
        if kind == 4:
            return pre_tokenizers.Whitespace()
        if kind == 5:
            return pre_tokenizers.WhitespaceSplit()
        if kind == 6:
            return pre_tokenizers.CharDelimiterSplit(self.r.choice("a -"))
        return pre_tokenizers.Split(self.pattern(), self.r.choice(BEHAVIORS), invert=self.flag())

    def decoder(self):
        kind = self.r.randrange(6)
        if kind == 0:
            return decoders.Metaspace(replacement=MARK, prepend_scheme=self.scheme())
        if kind == 1:
            return decoders.Strip(self.r.choice([" ", "a"]), self.r.randint(0, 1), 0)
        return [decoders.ByteLevel(), decoders.ByteFallback(), decoders.Fuse(), decoders.Replace(self.pattern(), self.r.choice([" ", "", "z"]))][kind - 2]

    def characters(self):
        characters = sorted({c for t in TEXTS + WORDS for c in t} | set(pre_tokenizers.ByteLevel.alphabet()))
        return [c for c in characters if self.r.random() < 0.85]

    def bpe(self):
        byte_tokens = [f"<0x{b:02X}>" for b in range(256)] if self.flag() else []
        vocab = {t: i for i, t in enumerate(["<unk>"] + byte_tokens + self.characters())}
        merges = []
        for _ in range(self.r.randint(0, 60)):
            word = self.r.choice(WORDS + TEXTS)
            if len(word) < 2:
                continue
            at = self.r.randrange(len(word) - 1)
            begin, end = max(0, at - self.r.randint(0, 2)), min(len(word), at + 2 + self.r.randint(0, 2))
            left, right = word[begin:at + 1], word[at + 1:end]
            if left in vocab and right in vocab and (left, right) not in merges:
                vocab.setdefault(left + right, len(vocab))
                merges.append((left, right))
        if self.flag():
            for w in self.r.sample(WORDS, 5):
                vocab.setdefault(w, len(vocab))
        return models.BPE(vocab, merges, unk_token=self.r.choice([None, "<unk>", "<unk>"]), fuse_unk=self.flag(), byte_fallback=self.flag(), ignore_merges=self.flag())

    def unigram(self):
        byte_tokens = [f"<0x{b:02X}>" for b in range(256)] if self.flag() else []
        tokens = ["<unk>"] + byte_tokens + self.characters() + self.r.sample(WORDS, self.r.randint(0, len(WORDS)))
        tokens = list(dict.fromkeys(tokens))
        tokens += self.some(lambda: self.r.choice(tokens), 2)
        scores = [-0.5 * self.r.randint(0, 12) if self.flag() else -12 * self.r.random() for _ in tokens]
        return models.Unigram(list(zip(tokens, scores)), unk_id=0, byte_fallback=self.flag())

    def added_token(self):
        content = self.r.choice(["<l>", "<r>", "<s>", "cat", "the", "  ", "\n\n", "THE", "a b", "\u00e9", "\u4e2d", MARK, "<", "12"])
        return AddedToken(content, lstrip=self.flag(), rstrip=self.flag(), single_word=self.r.random() < 0.3, normalized=self.flag())

    def tokenizer(self):
        t = Tokenizer(self.bpe() if self.flag() else self.unigram())
        steps = self.some(self.normalizer, 3)
        if steps:
            t.normalizer = normalizers.Sequence(steps) if len(steps) > 1 or self.flag() else steps[0]
        steps = self.some(self.pre_tokenizer, 3)
        if steps:
            t.pre_tokenizer = pre_tokenizers.Sequence(steps) if len(steps) > 1 or self.flag() else steps[0]
        steps = self.some(self.decoder, 4)
        if steps:
            t.decoder = decoders.Sequence(steps) if len(steps) > 1 or self.flag() else steps[0]
        t.add_tokens(self.some(self.added_token, 4))
        t.add_special_tokens(self.some(self.added_token, 2))
        if self.flag():
            t.add_special_tokens(["<bos>", "<eos>"])
            template = processors.TemplateProcessing(single="<bos> $A <eos>", pair=None, special_tokens=[(s, t.token_to_id(s)) for s in ("<bos>", "<eos>")])
            t.post_processor = template if self.flag() else processors.Sequence([processors.ByteLevel(), template])
        return t

    def text(self):
        return "".join(self.r.choice(TEXTS) + self.r.choice(["", " ", "  ", "\n"]) for _ in range(self.r.randint(1, 4)))


def without_panics(call):
    try:
        return call()
    except BaseException as error:  # the package's panics are no Exception
        if type(error).__name__ != "PanicException":
            raise
        return None


def prints_special_tokens(tokenizer):
    """The package prints special tokens that are found in normalized text and that the normalizer changes; ggmlx never does."""
    special = [t for t in tokenizer.get_added_tokens_decoder().values() if t.special and t.normalized]
    return tokenizer.normalizer is not None and any(tokenizer.normalizer.normalize_str(t.content) != t.content for t in special)


def first_difference(tokenizer, text, ours):
    """What differs, None, or "left out"."""
    encoded = without_panics(lambda: tokenizer.encode(text))
    if encoded is None:
        return "left out"
    if ours["ids"] != encoded.ids:
        return f"ids {ours['ids']} instead of {encoded.ids}"
    if "".join(ours["pieces"]) != ours["all"]:
        return f"streamed {''.join(ours['pieces'])!r} instead of {ours['all']!r}"
    for key, skip in (("all", False), ("visible", True)):
        if skip and prints_special_tokens(tokenizer):
            return "left out"
        decoded = without_panics(lambda: tokenizer.decode(encoded.ids, skip_special_tokens=skip))
        if decoded is None or "\ufffd" in decoded:
            return "left out"
        if ours[key] != decoded:
            return f"decoded ({key}) {ours[key]!r} instead of {decoded!r}"
    return None


def compare(program, seed, n_texts, counts):
    maker = Maker(seed)
    tokenizer = without_panics(maker.tokenizer)
    if tokenizer is None:
        counts["refused by the package, which panics"] += 1
        return
    texts = [maker.text() for _ in range(n_texts)]
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "tokenizer.json")
        tokenizer.save(path)
        tokenizer = Tokenizer.from_file(path)  # what a file cannot say is gone
        stdin = "".join(json.dumps(t) + "\n" for t in texts)
        run = subprocess.run([program, path], input=stdin, capture_output=True, text=True, encoding="utf-8")
    if run.returncode != 0:
        if "not supported" not in run.stderr:
            counts["differ"] += 1
            print(f"seed {seed}: {run.stderr.strip()}")
        else:
            counts["refused: " + run.stderr.strip()] += 1
        return
    counts["tokenizers"] += 1
    for text, line in zip(texts, run.stdout.split("\n")[:-1], strict=True):
        difference = first_difference(tokenizer, text, json.loads(line))
        counts["left out" if difference == "left out" else "differ" if difference else "equal"] += 1
        if difference and difference != "left out":
            print(f"seed {seed}: {text!r}: {difference}")
            break


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("program")
    parser.add_argument("--count", type=int, default=300)
    parser.add_argument("--texts", type=int, default=60)
    parser.add_argument("--seed", type=int, default=1)
    arguments = parser.parse_args()
    counts = collections.Counter()
    for seed in range(arguments.seed, arguments.seed + arguments.count):
        compare(arguments.program, seed, arguments.texts, counts)
    for what, n in sorted(counts.items()):
        print(f"{n:8} {what}")
    return 1 if counts["differ"] or not counts["equal"] else 0


if __name__ == "__main__":
    sys.exit(main())
