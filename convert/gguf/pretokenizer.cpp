#include "convert/gguf/pretokenizer.h"

#include <string>

#include "ggmlx/core/error.h"

namespace convert {
namespace {

using nlohmann::json;

// --- pieces of regular expressions, in the notation of tokenizer.json (Oniguruma's) ---

const std::string kContraction = R"((?i:'s|'t|'re|'ve|'m|'ll|'d))";
const std::string kWord = R"([^\r\n\p{L}\p{N}]?\p{L}+)";
const std::string kSpaces = R"(\s*[\r\n]+|\s+(?!\S)|\s+)";
/// Words that end where a capital letter follows a small one.
const std::string kUpper = R"([\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}])", kLower = R"([\p{Ll}\p{Lm}\p{Lo}\p{M}])";
const std::string kCapitalised = R"([^\r\n\p{L}\p{N}]?)" + kUpper + "*" + kLower + "+";
const std::string kAllCapitals = R"([^\r\n\p{L}\p{N}]?)" + kUpper + "+" + kLower + "*";
/// DeepSeek's own lists of characters.
const std::string kHan = "[一-龥ࠀ-一가-\uD7FF]+";
const std::string kCasedLetters =
    R"(A-Za-z\x{B5}\x{C0}-\x{D6}\x{D8}-\x{F6}\x{F8}-\x{1BA}\x{1BC}-\x{1BF}\x{1C4}-\x{293}\x{295}-\x{2AF})"
    R"(\x{370}-\x{373}\x{376}\x{377}\x{37B}-\x{37D}\x{37F}\x{386}\x{388}-\x{38A}\x{38C}\x{38E}-\x{3A1})"
    R"(\x{3A3}-\x{3F5}\x{3F7}-\x{481}\x{48A}-\x{52F}\x{531}-\x{556}\x{10A0}-\x{10C5}\x{13A0}-\x{13F5})"
    R"(\x{13F8}-\x{13FD}\x{1C90}-\x{1CBA}\x{1CBD}-\x{1CBF}\x{1D00}-\x{1D2B}\x{1D6B}-\x{1D77})"
    R"(\x{1D79}-\x{1D9A}\x{1E00}-\x{1F15}\x{1F18}-\x{1F1D}\x{1F20}-\x{1F45}\x{1F48}-\x{1F4D})"
    R"(\x{1F50}-\x{1F57}\x{1F59}\x{1F5B}\x{1F5D}\x{1F5F}-\x{1F7D}\x{1F80}-\x{1FB4}\x{1FB6}-\x{1FBC}\x{1FBE})"
    R"(\x{1FC2}-\x{1FC4}\x{1FC6}-\x{1FCC}\x{1FD0}-\x{1FD3}\x{1FD6}-\x{1FDB}\x{1FE0}-\x{1FEC})"
    R"(\x{1FF2}-\x{1FF4}\x{1FF6}-\x{1FFC}\x{2102}\x{2107}\x{210A}-\x{2113}\x{2115}\x{2119}-\x{211D}\x{2124})"
    R"(\x{2126}\x{2128}\x{212A}-\x{212D}\x{212F}-\x{2134}\x{2139}\x{213C}-\x{213F}\x{2145}-\x{2149}\x{214E})"
    R"(\x{2183}\x{2184}\x{2C00}-\x{2C7B}\x{2C7E}-\x{2CE4}\x{2CEB}-\x{2CEE}\x{2CF2}\x{2CF3}\x{A640}-\x{A66D})"
    R"(\x{A680}-\x{A69B}\x{A722}-\x{A76F}\x{A771}-\x{A787}\x{A78B}-\x{A78E}\x{AB70}-\x{ABBF})"
    R"(\x{FB00}-\x{FB06}\x{FB13}-\x{FB17}\x{FF21}-\x{FF3A}\x{FF41}-\x{FF5A}\x{10400}-\x{1044F})"
    R"(\x{104B0}-\x{104D3}\x{104D8}-\x{104FB}\x{10C80}-\x{10CB2}\x{10CC0}-\x{10CF2}\x{118A0}-\x{118DF})"
    R"(\x{1E900}-\x{1E943})";

// --- steps ---

json split(const std::string& regex) {
    return {{"type", "Split"}, {"pattern", {{"Regex", regex}}}, {"behavior", "Isolated"}, {"invert", false}};
}
json digits(bool individual) { return {{"type", "Digits"}, {"individual_digits", individual}}; }
json byte_level(bool use_regex) {
    return {{"type", "ByteLevel"}, {"add_prefix_space", false}, {"trim_offsets", true}, {"use_regex", use_regex}};
}
json sequence(json steps) { return {{"type", "Sequence"}, {"pretokenizers", std::move(steps)}}; }

// --- rules, as the models' own tokenizer.json files state them ---

json gpt2() { return byte_level(true); }

/// SmolLM2, StarCoder, Refact: GPT-2's after single digits.
json single_digits() { return sequence({digits(true), byte_level(true)}); }

json llama3() {
    return sequence(
        {split(kContraction + "|" + kWord + R"(|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|)" + kSpaces), byte_level(false)});
}

json qwen2() {
    return sequence(
        {split(kContraction + "|" + kWord + R"(|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|)" + kSpaces), byte_level(false)});
}

/// GPT-4o's vocabulary o200k, which gpt-oss has too.
json o200k() {
    return sequence({split(kCapitalised + kContraction + "?|" + kAllCapitals + kContraction +
                           R"(?|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*|)" + kSpaces),
                     byte_level(false)});
}

/// Mistral Nemo.
json tekken() {
    return sequence({split(kCapitalised + "|" + kAllCapitals + R"(|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n/]*|)" + kSpaces),
                     byte_level(false)});
}

json deepseek_v3() {
    return sequence({split(R"(\p{N}{1,3})"), split("[一-龥\u3040-ゟ゠-ヿ]+"),
                     split(R"([!"#$%&'()*+,\-./:;<=>?@\[\\\]^_`{|}~][A-Za-z]+|)"
                           R"([^\r\n\p{L}\p{P}\p{S}]?[\p{L}\p{M}]+| ?[\p{P}\p{S}]+[\r\n]*|)" +
                           kSpaces),
                     byte_level(false)});
}

json deepseek_llm() {
    return sequence({split("[\r\n]"), split(R"(\s?[)" + kCasedLetters + "]+"),
                     split(R"(\s?[!-/:-~！-／：-～‘-‟　-。]+)"), split(R"(\s+$)"), split(kHan), digits(true),
                     byte_level(false)});
}

json deepseek_coder() {
    return sequence(
        {split("[\r\n]"), split(R"(\s?\p{L}+)"), split(R"(\s?\p{P}+)"), split(kHan), digits(true), byte_level(false)});
}

json falcon() {
    return sequence({{{"type", "Punctuation"}, {"behavior", "Contiguous"}},
                     byte_level(true),
                     digits(false),
                     split("[0-9][0-9][0-9]")});
}

struct NamedPretokenizer {
    std::string_view name;
    json (*rule)();
    bool nfc = false;  ///< text is normalized to NFC first
    bool ignore_merges = false, add_bos = false;
};

constexpr NamedPretokenizer kPretokenizers[] = {
    {"default", gpt2},
    {"gpt-2", gpt2},
    {"phi-2", gpt2},
    {"smollm", single_digits},
    {"starcoder", single_digits},
    {"refact", single_digits},
    {"llama-bpe", llama3, false, true, true},
    {"llama3", llama3, false, true, true},
    {"llama-v3", llama3, false, true, true},
    {"smaug-bpe", llama3},
    {"qwen2", qwen2, true},
    {"deepseek-r1-qwen", qwen2, true},
    {"gpt-4o", o200k, false, true},
    {"tekken", tekken, false, true, true},
    {"deepseek-v3", deepseek_v3},
    {"deepseek-llm", deepseek_llm},
    {"deepseek-coder", deepseek_coder},
    {"falcon", falcon},
};

}  // namespace

GgufPretokenizer gguf_pretokenizer(std::string_view pre, std::string_view path) {
    std::string known;
    for (const NamedPretokenizer& entry : kPretokenizers) {
        if (entry.name == pre)
            return {.normalizer = entry.nfc ? json{{"type", "NFC"}} : json(),
                    .rule = entry.rule(),
                    .ignore_merges = entry.ignore_merges,
                    .add_bos = entry.add_bos};
        known += (known.empty() ? "" : ", ") + std::string(entry.name);
    }
    ggmlx::fail(ggmlx::ErrorKind::Unsupported,
                "{}: the pre-tokenizer \"{}\" (tokenizer.ggml.pre) is not known, so text would be cut into wrong "
                "tokens; this version knows {}. Convert the original checkpoint, which states the rule",
                path, pre, known);
}

}  // namespace convert
