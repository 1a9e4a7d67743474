#include "src/session/transcript.h"

#include <fmt/core.h>

#include <nlohmann/json.hpp>

#include "ggmlx/core/error.h"

namespace llm {

using ggmlx::ErrorKind;
using ggmlx::require;

namespace {

std::string hex(const ggmlx::Checksum& c) { return fmt::format("{:016x}{:016x}", c.high, c.low); }

std::string tokenizer_mark(const Model& model) {
    const auto& file = model.file();
    const std::string text = file.has_document("tokenizer.json") ? file.document("tokenizer.json") : "";
    return hex(ggmlx::xxh3(std::as_bytes(std::span(text))));
}

std::string mark_of(const std::vector<TokenId>& ids) { return hex(ggmlx::xxh3(std::as_bytes(std::span(ids)))); }

bool has_string(const nlohmann::json& json, const char* key) { return json.contains(key) && json[key].is_string(); }

}  // namespace

std::string save_transcript(const Model& model, const std::vector<TokenId>& ids) {
    const nlohmann::ordered_json json = {
        {"ggmlx_session", 1}, {"tokenizer", tokenizer_mark(model)}, {"ids", ids}, {"checksum", mark_of(ids)}};
    return json.dump() + "\n";
}

std::vector<TokenId> load_transcript(const Model& model, const std::string& text) {
    const auto json = nlohmann::json::parse(text, nullptr, false);
    const bool known = json.is_object() && json.value("ggmlx_session", nlohmann::json()) == 1 &&
                       has_string(json, "tokenizer") && has_string(json, "checksum") && json.contains("ids") &&
                       json["ids"].is_array();
    require(known, ErrorKind::CorruptFile, "this is no saved conversation, or a damaged one");
    require(json["tokenizer"] == tokenizer_mark(model), ErrorKind::InvalidArgument,
            "the conversation was saved with another tokenizer; load it with the model it belongs to");
    std::vector<TokenId> ids;
    for (const auto& value : json["ids"]) {
        const bool valid = value.is_number_integer() && value >= 0 && value < model.config().n_vocab;
        require(valid, ErrorKind::CorruptFile, "the saved conversation is damaged: element {} is no token id",
                ids.size());
        ids.push_back(value.get<TokenId>());
    }
    require(json["checksum"] == mark_of(ids), ErrorKind::CorruptFile,
            "the saved conversation is damaged: its checksum does not match");
    return ids;
}

}  // namespace llm
