#!/usr/bin/env python3
"""Compares ggmlx's tokenizer with Hugging Face's, token for token, on thousands of made-up strings.

    scripts/compare_tokenizers.py build/release/tests/tokenize_lines TOKENIZER.json[.zst] [TOKENIZER.json ...]
        [--count 2000] [--seed 1] [--text FILE ...]

Needs the Python package `tokenizers`. Compared are the ids, the decoded text with and without special tokens, and that the
pieces of a stream put together are the decoded text. Strings are mixed from code, prose, many scripts, emoji, digits, white
space of all kinds, combining marks, control characters, random code points and the tokenizer's own added tokens; --text adds
lines of files. Code points newer than Unicode 14 are left out: Oniguruma's tables know them, PCRE2 10.42's do not.
"""
import argparse
import json
import os
import random
import subprocess
import sys
import tempfile
import unicodedata

from tokenizers import Tokenizer

SAMPLES = [
    "The quick brown fox", "I'm sure they've said it's OK, you'll see; DON'T WE'LL", "Once upon a time, ", "naïve café",
    "def f(x):\n    return x**2  # square\n\n\nclass A:\n\tpass\r\n", "for (int i = 0; i < n; ++i) { a[i] += b->c; }\r\n",
    '{"key": [1, 2.5e-3, null, true], "s": "\\n"}', "<div class=\"x\">&nbsp;</div>", "snake_case camelCase SCREAMING_CASE",
    "https://example.org/a?b=c&d=%20#e", "你好,世界。", "日本語のテキスト、カタカナ", "안녕하세요 세계", "Привет, мир!", "Ελληνικά",
    "مرحبا بالعالم", "שלום עולם", "नमस्ते दुनिया", "สวัสดีชาวโลก", "ქართული", "አማርኛ", "བོད་ཡིག",
    "😀🎉", "👩‍👩‍👧‍👦", "🇩🇪🇯🇵", "❤️", "✔︎", "½²ⅷⅣ①", "ﬁﬂ", "Å Å", "e\u0301\u0327", "가각", "İstanbul ſtraße ẞ",
    "1234567890", "3.14159", "12,345,678", "0x1F600", "١٢٣٤", "१२३", "\r\n", "\n\n\n", "\t\t", "    ", " ", "  \n  ", "\u00a0",
    "\u2003", "\u3000", "\u200b", "\ufeff", "\u2028", "\u0085", "\u180e", "\x00", "\x07", "\x1b[0m", "\x7f", "\ufffd", "▁", "Ġ",
    "<0x41>", "<0x0A>", "<s>", "</s>", "<unk>", "'s", "'S", "'ſ", "'LL", "---", "...", "!!!", "/*", "*/", "\"", "\\",
]


def assigned_characters():
    """Code points that Python's own tables know and that Unicode 14 had."""
    newer = [(0x31350, 0x323AF), (0x2EBF0, 0x2EE5D)]
    wanted = [c for c in range(0x110000) if unicodedata.category(chr(c)) not in ("Cn", "Cs", "Co")]
    return [c for c in wanted if not any(a <= c <= b for a, b in newer)]


class Mixer:
    def __init__(self, seed, tokenizer, lines):
        self.random = random.Random(seed)
        self.characters = assigned_characters()
        self.added = [t.content for t in tokenizer.get_added_tokens_decoder().values()]
        self.vocabulary = sorted(tokenizer.get_vocab())
        self.lines = lines

    def part(self):
        r = self.random
        kind = r.randrange(10)
        if kind == 0:
            return "".join(chr(r.choice(self.characters)) for _ in range(r.randint(1, 6)))
        if kind == 1:
            return "".join(chr(r.randint(0, 0x7F)) for _ in range(r.randint(1, 20)))
        if kind == 2:
            return r.choice(SAMPLES) * r.randint(1, 5)
        if kind == 3 and self.added:
            return r.choice(["", " ", "\n"]) + r.choice(self.added) + r.choice(["", " ", "  "])
        if kind == 4:
            return r.choice(self.vocabulary)
        if kind == 5:
            return " " * r.randint(1, 20) + r.choice(["", "\n", "x"])
        if kind == 6 and self.lines:
            return r.choice(self.lines)
        if kind == 7:
            return str(r.randrange(10 ** r.randint(1, 12)))
        return r.choice(SAMPLES)

    def text(self):
        r = self.random
        text = "".join(self.part() + r.choice(["", "", " "]) for _ in range(r.randint(1, 8)))
        if r.randrange(40) == 0:  # one long word
            text = r.choice(SAMPLES).strip() * r.randint(50, 400)
        return text


EXPLAINED = "explained"


def decoded_difference(what, ours, theirs, has_byte_tokens):
    """A difference of decoded texts. Where byte tokens do not form UTF-8, ggmlx keeps the characters among them, while the
    package turns the whole run into U+FFFD (see src/tokenizer/README.md)."""
    if ours == theirs:
        return None
    if has_byte_tokens and "\ufffd" in theirs and theirs.count("\ufffd") >= ours.count("\ufffd"):
        return EXPLAINED
    return f"{what}: {ours!r}, instead of {theirs!r}"


def first_difference(text, ours, reference, has_byte_tokens):
    expected_ids = reference.encode(text).ids
    ids = ours["ids"]
    if ids != expected_ids:
        at = next((i for i, (a, b) in enumerate(zip(ids, expected_ids)) if a != b), min(len(ids), len(expected_ids)))
        return f"ids differ from place {at} on: {ids[at:at + 8]} instead of {expected_ids[at:at + 8]}"
    if "".join(ours["pieces"]) != ours["all"]:
        return f"streamed pieces give {''.join(ours['pieces'])!r}"
    return (decoded_difference("decoded", ours["all"], reference.decode(ids, skip_special_tokens=False), has_byte_tokens)
            or decoded_difference("decoded without special tokens", ours["visible"], reference.decode(ids, skip_special_tokens=True),
                                  has_byte_tokens))


def compare(program, path, arguments, lines):
    if path.endswith(".zst"):
        with tempfile.TemporaryDirectory() as folder:
            expanded = os.path.join(folder, "tokenizer.json")
            subprocess.run(["zstd", "-dqf", path, "-o", expanded], check=True)
            return compare_file(program, expanded, path, arguments, lines)
    return compare_file(program, path, path, arguments, lines)


def compare_file(program, path, name, arguments, lines):
    reference = Tokenizer.from_file(path)
    reference.no_truncation()
    reference.no_padding()
    mixer = Mixer(arguments.seed, reference, lines)
    texts = [mixer.text() for _ in range(arguments.count)] + [""] + SAMPLES
    stdin = "".join(json.dumps(t) + "\n" for t in texts)
    run = subprocess.run([program, path], input=stdin, capture_output=True, text=True, encoding="utf-8")
    if run.returncode != 0:
        print(f"{name}: {run.stderr.strip()}")
        return False
    results = run.stdout.split("\n")[:-1]
    has_byte_tokens = "ByteFallback" in str(json.loads(reference.to_str())["decoder"])
    failures, tokens, explained = [], 0, 0
    for text, line in zip(texts, results, strict=True):
        ours = json.loads(line)
        tokens += len(ours["ids"])
        difference = first_difference(text, ours, reference, has_byte_tokens)
        if difference == EXPLAINED:
            explained += 1
        elif difference:
            failures.append((text, difference))
    for text, difference in failures[:10]:
        print(f"{name}: {text!r}\n    {difference}")
    print(f"{name}: {len(texts)} texts, {tokens} tokens, {len(failures)} texts differ, {explained} by ill-formed byte tokens alone")
    return not failures


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("program")
    parser.add_argument("tokenizers", nargs="+", metavar="TOKENIZER.json")
    parser.add_argument("--count", type=int, default=2000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--text", nargs="*", default=[], metavar="FILE")
    arguments = parser.parse_args()
    lines = [line for path in arguments.text for line in open(path, encoding="utf-8", newline="").readlines()]
    return 0 if all([compare(arguments.program, path, arguments, lines) for path in arguments.tokenizers]) else 1


if __name__ == "__main__":
    sys.exit(main())
