#include "convert/gguf/tokenizer.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <unordered_map>

#include "convert/gguf/pretokenizer.h"
#include "convert/tokenizer/added_tokens.h"
#include "convert/tokenizer/sentencepiece_json.h"
#include "convert/tokenizer/template_json.h"
#include "ggmlx/core/error.h"

namespace convert {
namespace {

using ggmlx::ErrorKind;
using ggmlx::fail;
using ggmlx::require;
using nlohmann::json;
using nlohmann::ordered_json;

constexpr std::string_view kTokens = "tokenizer.ggml.tokens", kTokenTypes = "tokenizer.ggml.token_type",
                           kScores = "tokenizer.ggml.scores", kChatTemplate = "tokenizer.chat_template";
constexpr int64_t kNoId = 0xffffffff;  // some write -1 as u32 for "none"

/// The numbers of tokenizer.ggml.token_type.
enum class TokenKind : int64_t { Normal = 1, Unknown = 2, Control = 3, UserDefined = 4, Unused = 5, Byte = 6 };

/// The vocabulary; ids are places.
struct GgufVocabulary {
    std::vector<std::string_view> tokens;
    std::vector<TokenKind> kinds;
};

/// Before an array is read, so that memory stays in proportion to the tokens.
void require_count(const GgufMetadata& metadata, std::string_view key, size_t n_tokens) {
    require(metadata.count(key) == n_tokens, ErrorKind::CorruptFile, "{}: {} has {} entries for {} tokens",
            metadata.path(), key, metadata.count(key), n_tokens);
}

GgufVocabulary read_vocabulary(const GgufMetadata& metadata) {
    GgufVocabulary vocabulary;
    vocabulary.tokens = metadata.texts(kTokens);
    require(!vocabulary.tokens.empty(), ErrorKind::CorruptFile, "{} has no {}", metadata.path(), kTokens);
    require_count(metadata, kTokenTypes, vocabulary.tokens.size());
    const auto kinds = metadata.integers(kTokenTypes);
    for (size_t id = 0; id < kinds.size(); ++id) {
        require(kinds[id] >= 1 && kinds[id] <= 6, ErrorKind::CorruptFile,
                "{}: tokenizer.ggml.token_type says {} for token {}, which is none of 1 to 6", metadata.path(),
                kinds[id], id);
        // Places that only make the list as long as the embedding may be empty.
        vocabulary.kinds.push_back(vocabulary.tokens[id].empty() ? TokenKind::Unused
                                                                 : static_cast<TokenKind>(kinds[id]));
    }
    return vocabulary;
}

std::optional<int64_t> token_id(const GgufMetadata& metadata, std::string_view name) {
    const auto id = metadata.integer(fmt::format("tokenizer.ggml.{}_token_id", name), -1, kNoId);
    return id && *id >= 0 && *id != kNoId ? id : std::nullopt;
}

/// Ids that matter to a conversation must be tokens.
std::optional<int64_t> checked_id(const GgufMetadata& metadata, std::string_view name, size_t n_tokens) {
    const auto id = token_id(metadata, name);
    require(!id || *id < static_cast<int64_t>(n_tokens), ErrorKind::CorruptFile,
            "{}: tokenizer.ggml.{}_token_id is {}, but there are {} tokens", metadata.path(), name, id.value_or(0),
            n_tokens);
    return id;
}

/// The control tokens with a well-known spelling of an end of turn that the chat template writes.
std::vector<int64_t> ends_of_turns(const GgufVocabulary& vocabulary, std::string_view chat_template) {
    constexpr std::string_view kSpellings[] = {"<|eot_id|>",    "<|im_end|>",           "<|end|>",
                                               "<end_of_turn>", "<|end_of_text|>",      "<|endoftext|>",
                                               "<|eom_id|>",    "<｜end▁of▁sentence｜>"};
    std::vector<int64_t> ids;
    for (const std::string_view spelling : kSpellings) {
        if (chat_template.find(spelling) == chat_template.npos) continue;
        const auto at = std::find(vocabulary.tokens.begin(), vocabulary.tokens.end(), spelling);
        const auto id = static_cast<size_t>(at - vocabulary.tokens.begin());
        if (at != vocabulary.tokens.end() && vocabulary.kinds[id] == TokenKind::Control)
            ids.push_back(static_cast<int64_t>(id));
    }
    return ids;
}

/// Control tokens are special; GGUF says nothing of the other flags.
std::vector<AddedTokenSpec> added_tokens(const GgufVocabulary& vocabulary) {
    std::vector<AddedTokenSpec> list;
    for (size_t id = 0; id < vocabulary.tokens.size(); ++id) {
        const bool special = vocabulary.kinds[id] == TokenKind::Control;
        if (special || vocabulary.kinds[id] == TokenKind::UserDefined)
            list.push_back({static_cast<int64_t>(id), std::string(vocabulary.tokens[id]), special});
    }
    return list;
}

/// The id of BOS or EOS with its text if it is to be added to every text.
std::optional<FrameToken> frame_token(const GgufMetadata& metadata, const GgufVocabulary& vocabulary,
                                      std::string_view name, bool by_default) {
    const auto id = checked_id(metadata, name, vocabulary.tokens.size());
    const auto wanted = metadata.boolean(fmt::format("tokenizer.ggml.add_{}_token", name));
    require(id || !wanted.value_or(false), ErrorKind::CorruptFile,
            "{}: tokenizer.ggml.add_{}_token is true, but there is no tokenizer.ggml.{}_token_id", metadata.path(),
            name, name);
    if (!id || !wanted.value_or(by_default)) return std::nullopt;
    return FrameToken{*id, std::string(vocabulary.tokens[static_cast<size_t>(*id)])};
}

/// `"token":id,…` written directly: as a JSON tree the vocabulary would take many times its size.
std::string vocabulary_text(const GgufMetadata& metadata, const GgufVocabulary& vocabulary) {
    std::string out;
    std::unordered_map<std::string_view, size_t> ids;
    for (size_t id = 0; id < vocabulary.tokens.size(); ++id) {
        if (vocabulary.kinds[id] == TokenKind::Unused) continue;
        const std::string_view token = vocabulary.tokens[id];
        const auto [other, is_new] = ids.emplace(token, id);
        require(is_new, ErrorKind::CorruptFile, "{}: the tokens {} and {} are both \"{}\"", metadata.path(),
                other->second, id, token);
        fmt::format_to(std::back_inserter(out), "{}{}:{}", out.empty() ? "" : ",", json(token).dump(), id);
    }
    return out;
}

/// `["left","right"],…`. A merge is two tokens with a space between; the first character may be a space itself.
std::string merges_text(const GgufMetadata& metadata) {
    std::string out;
    const auto merges = metadata.texts("tokenizer.ggml.merges");
    for (size_t i = 0; i < merges.size(); ++i) {
        const size_t space = merges[i].find(' ', 1);
        require(space != std::string_view::npos && space + 1 < merges[i].size(), ErrorKind::CorruptFile,
                "{}: tokenizer.ggml.merges: entry {} is \"{}\", not two tokens", metadata.path(), i, merges[i]);
        fmt::format_to(std::back_inserter(out), "{}[{},{}]", out.empty() ? "" : ",",
                       json(merges[i].substr(0, space)).dump(), json(merges[i].substr(space + 1)).dump());
    }
    return out;
}

std::string byte_level_json(const GgufMetadata& metadata, std::vector<std::string>& notes) {
    const std::string_view pre = metadata.required_text("tokenizer.ggml.pre");
    const GgufPretokenizer rule = gguf_pretokenizer(pre, metadata.path());
    if (pre == "default")
        notes.push_back(
            "warning: the file names no pre-tokenizer (tokenizer.ggml.pre is \"default\"); text is cut by GPT-2's "
            "rule, "
            "which may not be the model's");
    const GgufVocabulary vocabulary = read_vocabulary(metadata);

    const ordered_json post_processor = template_json(frame_token(metadata, vocabulary, "bos", rule.add_bos),
                                                      frame_token(metadata, vocabulary, "eos", false));

    std::string out = R"({"version":"1.0","truncation":null,"padding":null,"added_tokens":)" +
                      added_tokens_json(added_tokens(vocabulary)).dump();
    out += fmt::format(R"(,"normalizer":{},"pre_tokenizer":{},"post_processor":{})", rule.normalizer.dump(),
                       rule.rule.dump(), post_processor.dump());
    out += R"(,"decoder":{"type":"ByteLevel","add_prefix_space":true,"trim_offsets":true,"use_regex":true})";
    out += R"(,"model":{"type":"BPE","dropout":null,"unk_token":null,"continuing_subword_prefix":null)";
    out += R"(,"end_of_word_suffix":null,"fuse_unk":false,"byte_fallback":false,"ignore_merges":)";
    out += rule.ignore_merges ? "true" : "false";
    out += R"(,"vocab":{)" + vocabulary_text(metadata, vocabulary) + R"(},"merges":[)" + merges_text(metadata);
    return out += "]}}\n";
}

std::string sentencepiece_json(const GgufMetadata& metadata) {
    const GgufVocabulary vocabulary = read_vocabulary(metadata);
    const size_t n_tokens = vocabulary.tokens.size();
    require_count(metadata, kScores, n_tokens);
    const auto scores = metadata.reals(kScores);
    SentencePieces pieces;
    for (size_t id = 0; id < n_tokens; ++id) {
        const auto type = static_cast<SentencePieces::Type>(vocabulary.kinds[id]);
        const std::string_view text = vocabulary.tokens[id];
        pieces.pieces.push_back({text.empty() ? fmt::format("[EMPTY_{}]", id) : std::string(text), scores[id], type});
        pieces.byte_fallback = pieces.byte_fallback || vocabulary.kinds[id] == TokenKind::Byte;
        if (vocabulary.kinds[id] == TokenKind::Unknown && pieces.unk_id < 0) pieces.unk_id = static_cast<int64_t>(id);
    }
    const auto bos = frame_token(metadata, vocabulary, "bos", true),
               eos = frame_token(metadata, vocabulary, "eos", false);
    pieces.add_bos = bos.has_value();
    pieces.add_eos = eos.has_value();
    pieces.bos_id = bos ? bos->id : -1;
    pieces.eos_id = eos ? eos->id : -1;
    pieces.add_dummy_prefix = metadata.boolean("tokenizer.ggml.add_space_prefix").value_or(true);
    pieces.remove_extra_whitespaces = metadata.boolean("tokenizer.ggml.remove_extra_whitespaces").value_or(false);
    return tokenizer_json(pieces);
}

/// One string, or Hugging Face's list if there are several: "tokenizer.chat_template" is the default one,
/// "tokenizer.chat_template.NAME" the others.
ordered_json chat_templates(const GgufMetadata& metadata) {
    ordered_json list = ordered_json::array();
    if (const auto text = metadata.text(kChatTemplate)) list.push_back({{"name", "default"}, {"template", *text}});
    for (const auto& [key, value] : metadata.values())
        if (key.starts_with(kChatTemplate) && key.size() > kChatTemplate.size() + 1 && key[kChatTemplate.size()] == '.')
            list.push_back({{"name", key.substr(kChatTemplate.size() + 1)}, {"template", metadata.required_text(key)}});
    if (list.empty()) return nullptr;
    return list.size() == 1 && list[0]["name"] == "default" ? list[0]["template"] : list;
}

}  // namespace

GgufSpecialIds gguf_special_ids(const GgufMetadata& metadata) {
    if (!metadata.find(kTokens)) return {};
    const GgufVocabulary vocabulary = read_vocabulary(metadata);
    const size_t n_tokens = vocabulary.tokens.size();
    const auto in_range = [&](std::optional<int64_t> id) {
        return id && *id < static_cast<int64_t>(n_tokens) ? id : std::nullopt;
    };
    GgufSpecialIds ids;
    ids.bos = checked_id(metadata, "bos", n_tokens);
    ids.eos = checked_id(metadata, "eos", n_tokens);
    ids.unknown = in_range(token_id(metadata, "unknown"));
    ids.padding = in_range(token_id(metadata, "padding"));
    const auto add_end = [&](std::optional<int64_t> id) {
        if (id && std::find(ids.ends.begin(), ids.ends.end(), *id) == ids.ends.end()) ids.ends.push_back(*id);
    };
    for (const char* name : {"eos", "eot", "eom"}) add_end(checked_id(metadata, name, n_tokens));
    for (const int64_t id : ends_of_turns(vocabulary, metadata.text(kChatTemplate).value_or(""))) add_end(id);
    return ids;
}

std::string gguf_tokenizer_json(const GgufMetadata& metadata, std::vector<std::string>& notes) try {
    const auto model = metadata.text("tokenizer.ggml.model");
    if (!model || *model == "none" || *model == "no_vocab") return "";
    if (*model == "gpt2") return byte_level_json(metadata, notes);
    if (*model == "llama") return sentencepiece_json(metadata);
    fail(ErrorKind::Unsupported,
         "{}: the tokenizer \"{}\" (tokenizer.ggml.model) is not supported; this version reads gpt2 (byte-level BPE) "
         "and "
         "llama (SentencePiece's BPE)",
         metadata.path(), *model);
} catch (const json::type_error& error) {
    fail(ErrorKind::CorruptFile, "{}: a token or a merge is not UTF-8: {}", metadata.path(), error.what());
}

std::string gguf_tokenizer_config_json(const GgufMetadata& metadata) try {
    const GgufSpecialIds ids = gguf_special_ids(metadata);
    const auto tokens = metadata.texts(kTokens);
    ordered_json config = ordered_json::object();
    if (const auto value = metadata.boolean("tokenizer.ggml.add_bos_token")) config["add_bos_token"] = *value;
    if (const auto value = metadata.boolean("tokenizer.ggml.add_eos_token")) config["add_eos_token"] = *value;
    const auto name_token = [&](const char* name, std::optional<int64_t> id) {
        if (id) config[name] = tokens[static_cast<size_t>(*id)];
    };
    name_token("bos_token", ids.bos);
    name_token("eos_token", ids.eos);
    name_token("unk_token", ids.unknown);
    name_token("pad_token", ids.padding);
    config["clean_up_tokenization_spaces"] = false;
    if (ordered_json templates = chat_templates(metadata); !templates.is_null())
        config["chat_template"] = std::move(templates);
    return config.dump(2) + "\n";
} catch (const json::type_error& error) {
    fail(ErrorKind::CorruptFile, "{}: a special token or the chat template is not UTF-8: {}", metadata.path(),
         error.what());
}

}  // namespace convert
