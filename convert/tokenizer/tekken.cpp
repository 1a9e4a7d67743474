#include "convert/tokenizer/tekken.h"

#include <nlohmann/json.hpp>

#include "ggmlx/core/base64.h"
#include "ggmlx/core/error.h"

namespace convert {
namespace {

using ggmlx::ErrorKind;
using ggmlx::require;
using nlohmann::json;

constexpr int64_t kMaxTekkenTokens = int64_t{1} << 24, kMaxSpecialTokens = int64_t{1} << 16;

// The special tokens of files that do not list them; the others have names by their number.
constexpr const char* kFirstSpecial[] = {"<unk>",
                                         "<s>",
                                         "</s>",
                                         "[INST]",
                                         "[/INST]",
                                         "[AVAILABLE_TOOLS]",
                                         "[/AVAILABLE_TOOLS]",
                                         "[TOOL_RESULTS]",
                                         "[/TOOL_RESULTS]",
                                         "[TOOL_CALLS]",
                                         "[IMG]",
                                         "<pad>",
                                         "[IMG_BREAK]",
                                         "[IMG_END]",
                                         "[PREFIX]",
                                         "[MIDDLE]",
                                         "[SUFFIX]",
                                         "[SYSTEM_PROMPT]",
                                         "[/SYSTEM_PROMPT]",
                                         "[TOOL_CONTENT]"};

const json& tekken_member(const json& object, const char* key) {
    const auto it = object.is_object() ? object.find(key) : object.end();
    require(object.is_object() && it != object.end(), ErrorKind::CorruptFile, "tekken.json: '{}' is missing", key);
    return *it;
}

int64_t tekken_count(const json& object, const char* key, int64_t max = kMaxTekkenTokens) {
    const json& value = tekken_member(object, key);
    require(value.is_number_integer() && value >= 0 && value <= max, ErrorKind::CorruptFile, "tekken.json: '{}' is {}",
            key, value.dump());
    return value.get<int64_t>();
}

std::string tekken_text(const json& object, const char* key) {
    const json& value = tekken_member(object, key);
    require(value.is_string(), ErrorKind::CorruptFile, "tekken.json: '{}' is no string", key);
    return value.get<std::string>();
}

std::vector<AddedTokenSpec> special_tokens(const json& root, int64_t n_special) {
    std::vector<AddedTokenSpec> tokens;
    for (int64_t id = 0; id < n_special; ++id) tokens.push_back({id, "<SPECIAL_" + std::to_string(id) + ">", true});
    const auto listed = root.find("special_tokens");
    if (listed == root.end() || listed->is_null()) {
        for (size_t id = 0; id < std::min(tokens.size(), std::size(kFirstSpecial)); ++id)
            tokens[id].content = kFirstSpecial[id];
        return tokens;
    }
    require(listed->is_array(), ErrorKind::CorruptFile, "tekken.json: special_tokens is no list");
    for (const json& entry : *listed) {
        const int64_t id = tekken_count(entry, "rank");
        require(id < n_special, ErrorKind::CorruptFile, "tekken.json: special token {} of {}", id, n_special);
        tokens[static_cast<size_t>(id)].content = tekken_text(entry, "token_str");
    }
    return tokens;
}

}  // namespace

RankedTokens read_tekken(std::string_view document) {
    const json root = parse_object(document, "tekken.json");
    const json& config = tekken_member(root, "config");
    RankedTokens model;
    model.pattern = tekken_text(config, "pattern");
    model.first_id = tekken_count(config, "default_num_special_tokens", kMaxSpecialTokens);
    const int64_t n_ranks = tekken_count(config, "default_vocab_size") - model.first_id;
    model.added = special_tokens(root, model.first_id);
    if (model.first_id > 1 && model.added[1].content == "<s>") model.bos = "<s>";
    const json& vocab = tekken_member(root, "vocab");
    require(vocab.is_array(), ErrorKind::CorruptFile, "tekken.json: vocab is no list");
    for (const json& entry : vocab) {
        const int64_t rank = tekken_count(entry, "rank");
        if (rank >= n_ranks) continue;  // the file may have more tokens than the model
        auto bytes = ggmlx::from_base64(tekken_text(entry, "token_bytes"));
        require(bytes.has_value(), ErrorKind::CorruptFile, "tekken.json: token_bytes of rank {} is not base64", rank);
        model.tokens.push_back({std::move(*bytes), rank});
    }
    return model;
}

}  // namespace convert
