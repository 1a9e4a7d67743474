#!/usr/bin/env python3
"""Makes the fixtures in this folder with Hugging Face's `tokenizers` package (0.23.3), the oracle of the tokenizer's tests.

    pip install tokenizers==0.23.3 && python3 make_fixtures.py
"""
import json
import os
import unicodedata

from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers, processors, trainers

HERE = os.path.dirname(os.path.abspath(__file__))
QWEN_REGEX = (r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+"
              r"|\s+(?!\S)|\s+")


def save(name, value, **options):
    with open(os.path.join(HERE, name), "w", encoding="utf-8") as out:
        json.dump(value, out, ensure_ascii=True, separators=(",", ":"), **options)
        out.write("\n")


def save_lines(name, values):
    """One JSON value a line, in a list, so that a change shows as a small difference."""
    with open(os.path.join(HERE, name), "w", encoding="utf-8") as out:
        out.write("[\n" + ",\n".join(json.dumps(v, separators=(",", ":")) for v in values) + "\n]\n")


# --- the corpus: 200 lines, each of which has gone wrong somewhere ---------------------------------------------------

CODE = [
    "def add(a, b):\n    return a + b", "class Node:\n\tdef __init__(self, key):\n\t\tself.key = key", "for i in range(10): print(i)",
    "int main(int argc, char** argv) { return argc > 1 ? 0 : 1; }", "std::vector<std::pair<int, float>> v{{1, 2.0f}};",
    "if (a<b && c>=d) { x[i] = y->z; } // TODO: fix", "/* a comment */ #include <vector>\r\n#define N 10\r\n", "x = 10\ny = 20\n\n\n\nprint(x+y)",
    '{"key": [1, 2.5e-3, null, true], "s": "\\n"}', "SELECT * FROM t WHERE id IN (1,2,3);", "<p class=\"x\">Hello&nbsp;world</p>",
    "fn main() { let s = String::from(\"x\"); println!(\"{}\", s); }", "const f = async (x) => { await g(x); };", "a_b a-b a.b aB AB Ab",
    "snake_case camelCase PascalCase kebab-case SCREAMING_CASE", "git commit -m 'Fix the bug' && git push", "0x1F600 0b1010 1e-9 1_000_000",
    "    four\n        eight\n\ttab\n \tmixed", "print(f'{a!r:>{w}}')", "regex: ^\\s*(\\w+)\\s*=\\s*\"([^\"]*)\"$",
]
PROSE = [
    "Once upon a time, there was a little girl named Lily.", "The quick brown fox jumps over the lazy dog.", "I'm sure they've said it's OK, you'll see.",
    "DON'T WE'LL I'D they'RE", "It cost $5.00 (or 4,50 \u20ac) -- really?!", "\"Quoted\" \u201ccurly\u201d \u2018single\u2019 \u2026 \u2013 \u2014",
    "Na\u00efve caf\u00e9 r\u00e9sum\u00e9 \u00e0 la carte", "Za\u017c\u00f3\u0142\u0107 g\u0119\u015bl\u0105 ja\u017a\u0144", "\u0130stanbul stra\u00dfe \u1e9e \u017ft", "Stra\u00dfe und Gr\u00f6\u00dfe",
    "\u041f\u0440\u0438\u0432\u0435\u0442, \u043c\u0438\u0440! \u041a\u0430\u043a \u0434\u0435\u043b\u0430?", "\u0395\u03bb\u03bb\u03b7\u03bd\u03b9\u03ba\u03ac \u03ba\u03b5\u03af\u03bc\u03b5\u03bd\u03bf\u03c2", "\u0645\u0631\u062d\u0628\u0627 \u0628\u0627\u0644\u0639\u0627\u0644\u0645", "\u05e9\u05c1\u05b8\u05dc\u05d5\u05b9\u05dd",
    "\u0928\u092e\u0938\u094d\u0924\u0947 \u0926\u0941\u0928\u093f\u092f\u093e", "\u0e2a\u0e27\u0e31\u0e2a\u0e14\u0e35\u0e0a\u0e32\u0e27\u0e42\u0e25\u0e01", "\u10e5\u10d0\u10e0\u10d7\u10e3\u10da\u10d8", "\u12a0\u121b\u122d\u129b", "\u1780\u17d2\u1798\u17c2\u179a", "\u0f56\u0f7c\u0f51\u0f0b\u0f61\u0f72\u0f42",
]
CJK = [
    "\u4f60\u597d\uff0c\u4e16\u754c\u3002", "\u65e5\u672c\u8a9e\u306e\u30c6\u30ad\u30b9\u30c8", "\u30ab\u30bf\u30ab\u30ca \uff76\uff80\uff76\uff85 \u3072\u3089\u304c\u306a", "\uc548\ub155\ud558\uc138\uc694 \uc138\uacc4", "\u4e00\u4e8c\u4e09 \u2177 \u2163 \u2460",
    "\u4e2d\u6587English\u6df7\u5408123\u6587\u672c", "\uff21\uff22\uff23\uff11\uff12\uff13\uff01", "\u300c\u5f15\u7528\u300d\u3010\u62ec\u53f7\u3011\u300a\u4e66\u540d\u300b", "\u7e41\u9ad4\u5b57 \u7b80\u4f53\u5b57", "\ud842\udfb7\u91ce\u5bb6".encode("utf-16", "surrogatepass").decode("utf-16"),
    "\u1100\u1161\u11a8 \uac01", "\u304c\u304b\u3099", "\u3231 \u33a1 \u2f00", "\u4e2d\u3000\u6587", "\u3001\u3002\uff0c\uff0e\u30fb",
]
EMOJI = [
    "\U0001f600\U0001f389", "\U0001f469\u200d\U0001f469\u200d\U0001f467\u200d\U0001f466", "\U0001f1e9\U0001f1ea\U0001f1ef\U0001f1f5", "\u2764\ufe0f \u2714\ufe0e", "\U0001f44d\U0001f3fd ok", "1\ufe0f\u20e3 #\ufe0f\u20e3",
    "a\U0001f600b \U0001f600 c", "\U0001d54f\U0001d7d8 \U0001f170",
]
NUMBERS = ["1" * n for n in range(1, 12)] + [
    "123456789", "1 22 333 4444 55555", "3.14159", "12,345,678", "v1.2.3-rc4", "\u0661\u0662\u0663\u0664", "\u0967\u0968\u0969", "\u00bd \u00b2 \u2153 \u2155", "a1b2c3", "2024-01-31T23:59:59Z",
    "\u2160\u2161\u2162", "\U00010107\U00010108", "\u3007\u3021\u3022",
]
BLANKS = [
    " ", "  ", "   ", " x", "  x", "x ", "x  ", " x ", "\t", "\t\tx", "\n", "\n\n", "\r\n", "\r\n\r\n", "x\r\ny\r\n", "x\n\n\ny", " \n ", "  \n\n  x",
    "a\u00a0b", "\u00a0\u00a0a", "a\u2003b\u2009c", "a\u200bb", "a\u200d\u200cb", "\ufeffx", "a\u2028b\u2029c", "a\u0085b", "a\u180eb", "a\u1680b", "\u3000x", "x\u202fy\u205fz",
    " " * 40 + "x", "x" + " " * 40, "\n" * 20, "\t \t \t", " \r", "\x0b\x0c", "\x1c\x1d\x1e\x1f", "\x00\x01\x7f",
]
MARKS = [
    "e\u0301", "\u00e9", "e\u0327\u0301 e\u0301\u0327", "A\u030a \u00c5 \u212b", "n\u0303\u0303\u0303", "\u0301x", "o\u0302\u0323", "\u1e69 s\u0323\u0307 s\u0307\u0323", "q\u0307\u0323", "\u0344 \u0340 \u2126",
    "\ufb01\ufb02 \ufb00", "\u01c4\u01c5\u01c6", "\u1fd3 \u0390", "\u0958 \u0915\u093c", "\u0cca \u0cc6\u0cc2", "\u0f71\u0f72\u0f74", "\U0001d15e", "\u2adc", "a\u0345\u0301", "\u0fb3\u0f80",
]
SYMBOLS = [
    "!!!", "...", "?!?!", "---", "===", "***", "# ## ###", "$x + y$", "\\alpha\\beta", "a/b/c", "~`^", "@user #tag", "\u00a7\u00b6\u2020", "\u2190\u2192\u21d2", "\u2211\u222b\u221a\u221e\u2248", "\u00a9\u00ae\u2122", "`code` **bold** _it_",
    "\u2581x \u2581", "\u0120x", "<0x41><0x0A>", "<s></s><unk>", "<|im_start|>user\nhi<|im_end|>", "<think>a</think>", "a<mask>b  <mask>  c", "'s's 'S 'T", "' s '", "'\u017f", "x'll'LL'lL",
]
CORPUS = (CODE + PROSE + CJK + EMOJI + NUMBERS + BLANKS + MARKS + SYMBOLS
          + [" ".join(PROSE[:6]), "".join(CJK), "".join(EMOJI), "\n".join(CODE[:8]), "\r\n".join(PROSE), "Z" * 300, "ab" * 200, "\u4e2d" * 150, "." * 200, "\u0301" * 100,
             "", " ".join(NUMBERS), "".join(MARKS), "".join(SYMBOLS), "".join(BLANKS)])


def expected(tokenizer):
    rows = []
    for text in CORPUS:
        ids = tokenizer.encode(text).ids
        rows.append([ids, tokenizer.decode(ids, skip_special_tokens=False), tokenizer.decode(ids)])
    return rows


# --- a byte-level tokenizer, and the same with one character of its regular expression changed ------------------------

def train_byte_level():
    tokenizer = Tokenizer(models.BPE())
    tokenizer.normalizer = normalizers.NFC()
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence([
        pre_tokenizers.Split(Regex(QWEN_REGEX), "isolated"),
        pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)])
    tokenizer.decoder = decoders.ByteLevel()
    tokenizer.post_processor = processors.ByteLevel(trim_offsets=False)
    trainer = trainers.BpeTrainer(vocab_size=700, initial_alphabet=pre_tokenizers.ByteLevel.alphabet(), show_progress=False)
    tokenizer.train_from_iterator(CORPUS * 2, trainer)
    tokenizer.add_special_tokens(["<|endoftext|>", "<|im_start|>", "<|im_end|>"])
    tokenizer.add_tokens([AddedToken("<think>", normalized=False), AddedToken("</think>", normalized=False),
                          AddedToken("<mask>", lstrip=True, normalized=False)])
    return tokenizer


def change_regex(tokenizer):
    tree = json.loads(tokenizer.to_str())
    split = tree["pre_tokenizer"]["pretokenizers"][0]
    assert r"]?\p{L}+" in split["pattern"]["Regex"]
    split["pattern"]["Regex"] = split["pattern"]["Regex"].replace(r"]?\p{L}+", r"]?\p{N}+")
    return Tokenizer.from_str(json.dumps(tree))


# --- Unigram: trained, with every kind of stage that such tokenizers have -----------------------------------------------

def charsmap():
    """The normalization table of sp_unigram.model (see make_sentencepiece.py): field 2 of field 3 of its protocol buffer."""
    def fields(message):
        at = 0

        def varint():
            nonlocal at
            value = shift = 0
            while True:
                byte = message[at]
                at += 1
                value |= (byte & 0x7F) << shift
                shift += 7
                if byte < 0x80:
                    return value
        while at < len(message):
            key = varint()
            size = {0: 0, 1: 8, 2: None, 5: 4}[key & 7]
            if key & 7 == 0:
                varint()
                continue
            size = varint() if size is None else size
            yield key >> 3, message[at:at + size]
            at += size
    with open(os.path.join(HERE, "sp_unigram.model"), "rb") as file:
        normalizer = dict(fields(file.read()))[3]
    return dict(fields(normalizer))[2]


def train_unigram():
    tokenizer = Tokenizer(models.Unigram())
    tokenizer.normalizer = normalizers.Sequence([normalizers.Precompiled(charsmap()), normalizers.Strip(left=False, right=True), normalizers.Replace(Regex(" {2,}"), "\u2581")])
    tokenizer.pre_tokenizer = pre_tokenizers.Metaspace(prepend_scheme="always")
    tokenizer.decoder = decoders.Metaspace(prepend_scheme="always")
    trainer = trainers.UnigramTrainer(vocab_size=500, special_tokens=["<pad>", "</s>", "<unk>"], unk_token="<unk>", show_progress=False)
    tokenizer.train_from_iterator(CORPUS * 2, trainer)
    tokenizer.post_processor = processors.TemplateProcessing(single="$A </s>", pair="$A </s> $B </s>", special_tokens=[("</s>", 1)])
    return tokenizer


# --- single constructs ------------------------------------------------------------------------------------------------

NORMALIZERS = [
    normalizers.NFC(), normalizers.NFD(), normalizers.NFKC(), normalizers.NFKD(), normalizers.Lowercase(),
    normalizers.Prepend("\u2581"), normalizers.Replace(" ", "\u2581"), normalizers.Replace(Regex(r"\s+"), " "),
    normalizers.Replace(Regex("x*"), "-"), normalizers.Strip(), normalizers.Strip(left=True, right=False),
    normalizers.Strip(left=False, right=True), normalizers.Sequence([]), normalizers.Precompiled(charsmap()),
    normalizers.Sequence([normalizers.NFKC(), normalizers.Replace(Regex(" {2,}"), " "), normalizers.Lowercase()]),
]
BEHAVIORS = ["removed", "isolated", "merged_with_previous", "merged_with_next", "contiguous"]
PRE_TOKENIZERS = (
    [pre_tokenizers.Split(" ", b) for b in BEHAVIORS]
    + [pre_tokenizers.Split(Regex(r"\d"), b, invert=i) for b in BEHAVIORS for i in (False, True)]
    + [pre_tokenizers.Split(Regex(r), "isolated") for r in (
        "x*", r"\p{Han}+", "[\u4e00-\u9fa5\u3040-\u309f]+", r"[\p{L}&&[^\p{Han}]]+", r"\p{N}{1,3}+", r"\h+", r"^\s*", r"\S+$", r"(?m:a.b)",
        r"(?<=\d)\p{L}+", r"(?>[ab]+)b?", r"[\s\d]+", r"[^\s[a-c]]+", r"\P{L}+", r"\p{^L}+", r"\x{4e2d}|\u6587|\x41", r"a{,2}b", r"[\v\f]+", r"a{b}|\{",
        r"(?i:stra\u00dfe|K)", r"\A\S+|\s\Z")]
    + [pre_tokenizers.ByteLevel(add_prefix_space=a, use_regex=r) for a in (False, True) for r in (False, True)]
    + [pre_tokenizers.Digits(), pre_tokenizers.Digits(individual_digits=True), pre_tokenizers.Punctuation(),
       pre_tokenizers.Punctuation("removed"), pre_tokenizers.Punctuation("contiguous"), pre_tokenizers.Punctuation("merged_with_previous"), pre_tokenizers.Punctuation("merged_with_next"), pre_tokenizers.Whitespace(),
       pre_tokenizers.WhitespaceSplit(), pre_tokenizers.CharDelimiterSplit("a")]
    + [pre_tokenizers.Metaspace(prepend_scheme=p, split=s) for p in ("always", "first", "never") for s in (False, True)]
    + [pre_tokenizers.Sequence([pre_tokenizers.WhitespaceSplit(), pre_tokenizers.Metaspace(prepend_scheme="first")]),
       pre_tokenizers.Sequence([pre_tokenizers.Digits(True), pre_tokenizers.Metaspace(prepend_scheme="first", split=False)]),
       pre_tokenizers.Sequence([pre_tokenizers.ByteLevel(use_regex=False), pre_tokenizers.Split("\u0120", "merged_with_next")])])
LLAMA_DECODERS = [decoders.Replace("\u2581", " "), decoders.ByteFallback(), decoders.Fuse(), decoders.Strip(" ", 1, 0)]
DECODERS = [
    decoders.ByteLevel(), decoders.Metaspace(), decoders.Metaspace(prepend_scheme="never"), decoders.Fuse(), decoders.ByteFallback(),
    decoders.Replace("\u2581", " "), decoders.Replace(Regex("[xy]+"), "z"), decoders.Strip("x", 1, 2), decoders.Strip(" ", 1, 0),
    decoders.Sequence(LLAMA_DECODERS), decoders.Sequence(LLAMA_DECODERS[:3]), decoders.Sequence([decoders.ByteFallback(), decoders.Strip("A", 1, 1)]),
    decoders.Sequence([decoders.Fuse(), decoders.Replace("ab", "c"), decoders.Strip("c", 1, 2)]), decoders.Sequence([decoders.ByteLevel(), decoders.Strip(" ", 1, 1)]),
]
TOKEN_LISTS = [
    [], ["a"], ["\u2581Hello", "\u2581world", "!"], ["\u2581\u2581a", "\u2581", "b\u2581"], ["<0xE4>", "<0xBD>", "<0xA0>", "x"], ["<0x41>", "<0x41>", "<0x0A>"],
    ["a", "<0xF0>", "<0x9F>", "<0x98>", "<0x80>"], ["\u0120Hello", "\u0120w\u00c3", "\u00a9"], ["\u00f0\u0141", "\u013a", "\u0122"], ["caf\u00c3", "\u4e2d", "\u00a9"],
    ["xxaxx", "x", "xx", "xxx", "xxxx"], [" a ", "  ", "b"], ["a", "b", "ab", "aab"], ["xyx", "y"], ["<0xZZ>", "<0x4>", "<0x041>"], ["\u00c3", "a"], ["\u00e4\u00bd", "\u0142"],
]


def decoded(decoder, tokens):
    """The decoded text; None where the package panics (Strip of more characters than a token has)."""
    try:
        return decoder.decode(list(tokens))
    except BaseException as error:
        if type(error).__name__ != "PanicException":
            raise
        return None


def constructs():
    texts = [t for t in CORPUS if len(t) < 60][::3] + ["a1 b22  c333", " a  b ", "x=10; y = \"z\"", "aabb ab\nab", "a\nb", "A-B_C", "  lead", "trail  "]
    tree = {"texts": texts, "token_lists": TOKEN_LISTS, "normalizers": [], "pre_tokenizers": [], "decoders": []}
    for n in NORMALIZERS:
        tree["normalizers"].append([json.loads(n.__getstate__()), [n.normalize_str(t) for t in texts]])
    for p in PRE_TOKENIZERS:
        tree["pre_tokenizers"].append([json.loads(p.__getstate__()), [[s for s, _ in p.pre_tokenize_str(t)] for t in texts]])
    for d in DECODERS:
        tree["decoders"].append([json.loads(d.__getstate__()), [decoded(d, t) for t in TOKEN_LISTS]])
    return tree


# --- whole tokenizers of a few tokens: unknown characters, byte fallback, added tokens, Metaspace -----------------------

def small_tokenizers():
    words = ["a", "b", "c", "ab", "abc", "bc", "\u2581", "\u2581a", "\u2581ab", "1", "2", "\u4e2d"]
    merges = [("a", "b"), ("\u2581", "a"), ("b", "c"), ("\u2581a", "b"), ("ab", "c")]
    byte_tokens = [f"<0x{b:02X}>" for b in range(256)]
    vocab = {t: i for i, t in enumerate(["<unk>", "<s>", "</s>"] + byte_tokens + words)}
    plain = {t: i for i, t in enumerate(["<unk>", "<s>", "</s>"] + words)}
    some_bytes = {t: i for i, t in enumerate(["<unk>"] + byte_tokens[:0x80] + words)}
    added = [AddedToken("<x>", normalized=False), AddedToken("<l>", lstrip=True, normalized=False), AddedToken("<r>", rstrip=True, normalized=False),
             AddedToken("<lr>", lstrip=True, rstrip=True, normalized=False), AddedToken("cab", single_word=True, normalized=False), AddedToken("A B", normalized=True),
             AddedToken("<x><y>", normalized=False), AddedToken("  ", normalized=False)]
    texts = ["", "a", "abc", "a b c", "abcabc", " abc", "x", "xyz", "axb", "\u4e2d\u6587", "a\u00e9b", "1212", "ab<x>ab", "a <l> b", "a <r> b", " <lr>  <lr> ", "a  <l><r>  b", "cab", "cabs cab cab1 _cab cab.",
             "A B", "a b A B c", "xA B", "<x><y><x>", "a  b", "<s>a</s>", "<s>", "a<s> b", "  ", "<x> a", "\U0001f600a", "xx yy", "abab\n", "\u2581a", "a\u2581b", "<0x41>"]
    result = []

    def add(name, model, **parts):
        tokenizer = Tokenizer(model)
        for key, value in parts.items():
            if key not in ("special", "added"):
                setattr(tokenizer, key, value)
        tokenizer.add_special_tokens(parts.get("special", []))
        tokenizer.add_tokens(parts.get("added", []))
        rows = []
        for text in texts:
            ids = tokenizer.encode(text).ids
            rows.append([text, ids, tokenizer.encode(text, add_special_tokens=False).ids, tokenizer.decode(ids, skip_special_tokens=False), tokenizer.decode(ids)])
        result.append({"name": name, "tokenizer": json.loads(tokenizer.to_str()), "cases": rows})

    llama = normalizers.Sequence([normalizers.Prepend("\u2581"), normalizers.Replace(" ", "\u2581")])
    bos = processors.TemplateProcessing(single="<s> $A </s>", pair=None, special_tokens=[("<s>", 1), ("</s>", 2)])
    bpe = models.BPE
    add("no options", bpe(plain, merges))
    add("unknown", bpe(plain, merges, unk_token="<unk>"))
    add("unknown fused", bpe(plain, merges, unk_token="<unk>", fuse_unk=True))
    add("ignore merges", bpe(plain, merges[:1], ignore_merges=True, unk_token="<unk>"), pre_tokenizer=pre_tokenizers.WhitespaceSplit())
    add("byte fallback", bpe(vocab, merges, unk_token="<unk>", fuse_unk=True, byte_fallback=True), normalizer=llama, decoder=decoders.Sequence(LLAMA_DECODERS),
        post_processor=bos, special=["<s>", "</s>"])
    add("byte fallback with bytes missing", bpe(some_bytes, merges, unk_token="<unk>", fuse_unk=True, byte_fallback=True))
    add("byte fallback with bytes missing, not fused", bpe(some_bytes, merges, unk_token="<unk>", byte_fallback=True))
    for scheme in ("always", "first", "never"):
        add("metaspace " + scheme, bpe(vocab, merges, unk_token="<unk>", byte_fallback=True), pre_tokenizer=pre_tokenizers.Metaspace(prepend_scheme=scheme),
            decoder=decoders.Metaspace(prepend_scheme=scheme), special=["<s>", "</s>"], added=added)
    add("added", bpe(plain, merges, unk_token="<unk>"), special=["<s>", "</s>"], added=added)
    add("added, normalized", bpe(plain, merges, unk_token="<unk>"), normalizer=normalizers.Lowercase(), special=["<s>", "</s>"],
        added=added + [AddedToken("AB", normalized=True), AddedToken("BC", normalized=False)])
    add("added, llama", bpe(vocab, merges, unk_token="<unk>", byte_fallback=True), normalizer=llama, post_processor=processors.Sequence([processors.ByteLevel(), bos]),
        added=added + [AddedToken("b c", normalized=True)])
    pieces = [("<unk>", 0.0), ("<s>", 0.0), ("</s>", 0.0)] + [(w, -1.5 - 0.25 * (i % 5)) for i, w in enumerate(words)]
    all_bytes = [(t, 0.0) for t in byte_tokens]
    t5 = normalizers.Sequence([normalizers.Precompiled(charsmap()), normalizers.Strip(left=False, right=True), normalizers.Replace(Regex(" {2,}"), "\u2581")])
    add("unigram", models.Unigram(pieces, unk_id=0, byte_fallback=False), special=["<s>", "</s>"], added=added)
    add("unigram, nothing added", models.Unigram(pieces, unk_id=0, byte_fallback=False))
    add("unigram, metaspace", models.Unigram(pieces, unk_id=0, byte_fallback=False), normalizer=t5, pre_tokenizer=pre_tokenizers.Metaspace(), decoder=decoders.Metaspace(), special=["<s>", "</s>"])
    add("unigram, byte fallback", models.Unigram(pieces + all_bytes, unk_id=0, byte_fallback=True), normalizer=llama, decoder=decoders.Sequence(LLAMA_DECODERS), post_processor=bos)
    add("unigram, bytes missing", models.Unigram(pieces + all_bytes[:0xC0], unk_id=0, byte_fallback=True), special=["<s>", "</s>"])
    add("unigram, equal ways", models.Unigram([("<unk>", -1.0)] + [(w, -1.0 * len(w)) for w in words], unk_id=0, byte_fallback=False))
    return result


# --- properties of all code points, as ranges ---------------------------------------------------------------------------

def flat_ranges(code_points):
    """[first, count, gap, count, gap, count …]: ranges as differences."""
    out, end = [], 0
    for c in code_points:
        if out and c == end:
            out[-1] += 1
        else:
            out += [c - end, 1]
        end = c + 1
    return out


def fnv1a(texts):
    value = 0xCBF29CE484222325
    for text in texts:
        for byte in text.encode():
            value = ((value ^ byte) * 0x100000001B3) & 0xFFFFFFFFFFFFFFFF
    return f"{value:016x}"


def unicode_properties():
    characters = [chr(c) for c in range(0x110000) if not 0xD800 <= c < 0xE000]
    everything = "".join(characters)

    def matched(pre_tokenizer):
        return flat_ranges(sorted({ord(c) for piece, _ in pre_tokenizer.pre_tokenize_str(everything) for c in piece}))

    names = [r"\s", r"\h", r"\d"] + [r"\p{%s}" % n for n in "L N P S M Z Lu Ll Lm Lo Lt Mn Nd Pc Han Hiragana Katakana Hangul Thai Arabic Latin Cyrillic".split()]
    regexes = {n: matched(pre_tokenizers.Split(Regex(n), "removed", invert=True)) for n in names}
    kept = set(everything)

    def removed(pre_tokenizer):
        return flat_ranges(sorted(ord(c) for c in kept - {c for piece, _ in pre_tokenizer.pre_tokenize_str(everything) for c in piece}))

    # With Whitespace a word character beside a symbol is cut off from it.
    def is_word(c):
        return len(pre_tokenizers.Whitespace().pre_tokenize_str("a" + c)) == 1

    white = {c for c in characters if not pre_tokenizers.WhitespaceSplit().pre_tokenize_str(c)}
    predicates = {
        "white_space": flat_ranges(sorted(map(ord, white))),
        "punctuation": removed(pre_tokenizers.Punctuation("removed")),
        "numeric": flat_ranges(sorted(ord(c) for c in characters if len(pre_tokenizers.Digits().pre_tokenize_str("a" + c)) == 2)),
        "word": flat_ranges(sorted(ord(c) for c in characters if c not in white and is_word(c))),
    }
    assigned = [c for c in characters if unicodedata.category(c) not in ("Cn", "Co")]
    forms = {"NFC": normalizers.NFC(), "NFD": normalizers.NFD(), "NFKC": normalizers.NFKC(), "NFKD": normalizers.NFKD(), "Lowercase": normalizers.Lowercase()}
    hashes = {name: fnv1a(n.normalize_str(c) for c in assigned) for name, n in forms.items()}
    return {"unicode": unicodedata.unidata_version, "regexes": regexes, "predicates": predicates, "assigned": flat_ranges(map(ord, assigned)), "normalized_fnv1a": hashes}


def main():
    tokenizer = train_byte_level()
    changed = change_regex(tokenizer)
    with open(os.path.join(HERE, "byte_level.json"), "w", encoding="utf-8") as out:
        out.write(tokenizer.to_str())
    save_lines("corpus.json", CORPUS)
    save_lines("byte_level_expected.json", expected(tokenizer))
    save_lines("byte_level_changed_expected.json", expected(changed))
    stories = Tokenizer.from_file(os.path.join(HERE, "stories260k.json"))
    save_lines("stories260k_expected.json", expected(stories))
    unigram = train_unigram()
    with open(os.path.join(HERE, "unigram.json"), "w", encoding="utf-8") as out:
        out.write(unigram.to_str())
    save_lines("unigram_expected.json", expected(unigram))
    save("constructs.json", constructs())
    save_lines("small.json", small_tokenizers())
    save("unicode.json", unicode_properties())
    print(len(CORPUS), "lines")


if __name__ == "__main__":
    main()
