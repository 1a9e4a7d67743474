#include "convert/tokenizer/files.h"

#include <algorithm>
#include <cctype>
#include <iterator>
#include <nlohmann/json.hpp>

#include "convert/tokenizer/sentencepiece_model.h"
#include "convert/tokenizer/tekken.h"
#include "convert/tokenizer/tiktoken.h"
#include "ggmlx/core/error.h"

namespace convert {
namespace {

using ggmlx::ErrorKind;
using ggmlx::require;
using nlohmann::json;

// Classes whose ids are not those of the SentencePiece file: they put tokens of their own in front.
constexpr std::string_view kShiftedIds[] = {"XLMRobertaTokenizer", "CamembertTokenizer", "BarthezTokenizer",
                                            "MBartTokenizer",      "MBart50Tokenizer",   "NllbTokenizer",
                                            "PegasusTokenizer",    "MarianTokenizer",    "SeamlessM4TTokenizer",
                                            "XGLMTokenizer",       "FNetTokenizer",      "M2M100Tokenizer"};

/// tokenizer_config.json, as far as it matters here. Missing fields leave the default.
class TokenizerConfig {
  public:
    explicit TokenizerConfig(const ReadFile& read)
        : text_(read("tokenizer_config.json").value_or("")), root_(parse_object(text_, "tokenizer_config.json")) {}

    const std::string& text() const { return text_; }
    bool flag(const char* key, bool if_missing) const {
        const json value = find(key);
        return value.is_boolean() ? value.get<bool>() : if_missing;
    }
    /// "LlamaTokenizer", also where the file says LlamaTokenizerFast.
    std::string tokenizer_class() const {
        const json value = find("tokenizer_class");
        std::string name = value.is_string() ? value.get<std::string>() : "";
        if (name.ends_with("Fast")) name.resize(name.size() - 4);
        return name;
    }
    /// The Python module that auto_map names: "tokenization_kimi" of ["tokenization_kimi.TikTokenTokenizer", null].
    std::string module() const {
        const json map = find("auto_map");
        json entry = map.is_object() ? map.value("AutoTokenizer", json()) : json();
        if (entry.is_array() && !entry.empty()) entry = json(entry.front());
        const std::string name = entry.is_string() ? entry.get<std::string>() : "";
        const std::string module = name.substr(0, name.find('.'));
        const bool plain =
            std::all_of(module.begin(), module.end(), [](unsigned char c) { return std::isalnum(c) != 0 || c == '_'; });
        return plain ? module : "";
    }

  private:
    json find(const char* key) const { return root_.is_object() ? root_.value(key, json()) : json(); }

    std::string text_;
    json root_;
};

std::vector<AddedTokenSpec> added_tokens(const TokenizerConfig& config, const ReadFile& read) {
    return added_tokens_of(config.text(), read("added_tokens.json").value_or(""));
}

std::string from_sentencepiece(std::string_view bytes, const ReadFile& read) {
    const TokenizerConfig config(read);
    const std::string tokenizer_class = config.tokenizer_class();
    require(
        std::find(std::begin(kShiftedIds), std::end(kShiftedIds), tokenizer_class) == std::end(kShiftedIds),
        ErrorKind::Unsupported,
        "tokenizer_config.json: {} numbers tokens otherwise than its SentencePiece file; it is supported only with a "
        "tokenizer.json",
        tokenizer_class);
    const bool is_t5 = tokenizer_class == "T5Tokenizer";
    SentencePieces model = read_sentencepiece_model(bytes);
    model.add_bos = config.flag("add_bos_token", !is_t5);
    model.add_eos = config.flag("add_eos_token", is_t5);
    model.add_dummy_prefix = config.flag("add_prefix_space", model.add_dummy_prefix);
    model.legacy = config.flag("legacy", true);
    model.added = added_tokens(config, read);
    return tokenizer_json(model);
}

std::string from_tiktoken(std::string_view name, std::string_view bytes, const ReadFile& read) {
    RankedTokens model = read_tiktoken(bytes);
    if (apply_known_encoding(name, model)) return tokenizer_json(std::move(model));
    const TokenizerConfig config(read);
    const std::string module = config.module();
    const auto python = module.empty() ? std::nullopt : read(module + ".py");
    const auto pattern = python ? pattern_of_module(*python) : std::nullopt;
    require(pattern.has_value(), ErrorKind::Unsupported,
            "{} holds ranks alone; the expression that cuts text (pat_str) is told neither by its name nor by a Python "
            "module that tokenizer_config.json names ({}); it is supported only with a tokenizer.json",
            name, module.empty() ? "auto_map names none" : module + ".py");
    model.pattern = *pattern;
    model.added = added_tokens(config, read);
    return tokenizer_json(std::move(model));
}

}  // namespace

std::string tokenizer_document(std::string_view name, std::string_view bytes, const ReadFile& read) {
    if (name == "tekken.json") return tokenizer_json(read_tekken(bytes));
    if (name.ends_with(".json")) return std::string(bytes);
    if (is_tiktoken(bytes)) return from_tiktoken(name, bytes, read);
    return from_sentencepiece(bytes, read);
}

std::optional<std::string> tokenizer_document(const ReadFile& read) {
    for (const std::string_view name :
         {"tokenizer.json", "tekken.json", "tokenizer.model", "spiece.model", "tiktoken.model", "o200k_base.tiktoken"})
        if (auto bytes = read(name)) return tokenizer_document(name, *bytes, read);
    return std::nullopt;
}

}  // namespace convert
