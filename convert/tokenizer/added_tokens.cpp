#include "convert/tokenizer/added_tokens.h"

#include <charconv>
#include <map>
#include <nlohmann/json.hpp>

#include "ggmlx/core/error.h"

namespace convert {
namespace {

using ggmlx::ErrorKind;
using ggmlx::require;
using nlohmann::json;
using nlohmann::ordered_json;

int64_t parse_id(const std::string& text) {
    int64_t id = -1;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), id);
    require(error == std::errc() && end == text.data() + text.size() && id >= 0, ErrorKind::CorruptFile,
            "tokenizer_config.json: added token id '{}' is no number", text);
    return id;
}

bool flag(const json& object, const char* key, bool if_missing) {
    const json value = object.value(key, json(if_missing));
    require(value.is_boolean(), ErrorKind::CorruptFile, "tokenizer_config.json: '{}' of an added token is {}", key,
            value.type_name());
    return value.get<bool>();
}

AddedTokenSpec parse_token(const std::string& id, const json& object) {
    require(object.is_object() && object.value("content", json()).is_string(), ErrorKind::CorruptFile,
            "tokenizer_config.json: added token {} has no content", id);
    AddedTokenSpec t{parse_id(id), object["content"].get<std::string>()};
    t.special = flag(object, "special", false);
    t.lstrip = flag(object, "lstrip", false);
    t.rstrip = flag(object, "rstrip", false);
    t.single_word = flag(object, "single_word", false);
    t.normalized = flag(object, "normalized", !t.special);
    return t;
}

}  // namespace

json parse_object(std::string_view text, std::string_view name) {
    if (text.empty()) return nullptr;
    json root = json::parse(text, nullptr, false);
    require(root.is_object(), ErrorKind::CorruptFile, "{} is no JSON object", name);
    return root;
}

std::vector<AddedTokenSpec> added_tokens_of(std::string_view tokenizer_config_json, std::string_view added_json) {
    std::map<int64_t, AddedTokenSpec> tokens;
    const json added = parse_object(added_json, "added_tokens.json");
    for (const auto& [content, id] : added.items()) {
        require(id.is_number_integer() && id >= 0, ErrorKind::CorruptFile, "added_tokens.json: the id of '{}' is {}",
                content, id.dump());
        tokens[id.get<int64_t>()] = {id.get<int64_t>(), content};
    }
    const json config = parse_object(tokenizer_config_json, "tokenizer_config.json");
    const json decoder = config.is_object() ? config.value("added_tokens_decoder", json::object()) : json::object();
    require(decoder.is_object(), ErrorKind::CorruptFile, "tokenizer_config.json: added_tokens_decoder is {}",
            decoder.type_name());
    for (const auto& [id, object] : decoder.items()) {
        AddedTokenSpec t = parse_token(id, object);
        tokens[t.id] = std::move(t);
    }
    std::vector<AddedTokenSpec> list;
    for (auto& [id, t] : tokens) list.push_back(std::move(t));
    return list;
}

ordered_json added_tokens_json(const std::vector<AddedTokenSpec>& tokens) {
    ordered_json list = ordered_json::array();
    for (const AddedTokenSpec& t : tokens)
        list.push_back({{"id", t.id},
                        {"content", t.content},
                        {"single_word", t.single_word},
                        {"lstrip", t.lstrip},
                        {"rstrip", t.rstrip},
                        {"normalized", t.normalized},
                        {"special", t.special}});
    return list;
}

}  // namespace convert
