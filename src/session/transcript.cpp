#include "src/session/transcript.h"

#include <fmt/core.h>

#include <nlohmann/json.hpp>

#include "ggmlx/core/error.h"

namespace llm {

using ggmlx::ErrorKind;
using ggmlx::require;
using nlohmann::ordered_json;

namespace {

std::string mark_of(std::string_view text) {
    const ggmlx::Checksum c = ggmlx::xxh3(std::as_bytes(std::span(text)));
    return fmt::format("{:016x}{:016x}", c.high, c.low);
}

std::string tokenizer_mark(const Model& model) {
    const auto& file = model.file();
    return mark_of(file.has_document("tokenizer.json") ? file.document("tokenizer.json") : "");
}

/// Answers end where the user stopped them, perhaps inside a character.
std::string dump_text(const ordered_json& json) {
    return json.dump(-1, ' ', false, ordered_json::error_handler_t::replace);
}

bool has_string(const ordered_json& json, const char* key) { return json.contains(key) && json[key].is_string(); }

ChatMessage message_of(const ordered_json& json, const Model& model) {
    const bool valid = json.is_object() && has_string(json, "role") && has_string(json, "content") &&
                       (!json.contains("reasoning_content") || has_string(json, "reasoning_content")) &&
                       (!json.contains("ids") || json["ids"].is_array());
    require(valid, ErrorKind::CorruptFile, "the saved conversation is damaged: a message is no message");
    ChatMessage message{json["role"], json["content"], json.value("reasoning_content", ""), {}};
    for (const auto& value : json.value("ids", ordered_json::array())) {
        require(value.is_number_integer() && value >= 0 && value < model.config().n_vocab, ErrorKind::CorruptFile,
                "the saved conversation is damaged: \"{}\" is no token id", dump_text(value));
        message.ids.push_back(value.get<TokenId>());
    }
    return message;
}

}  // namespace

std::string save_transcript(const Model& model, const std::vector<ChatMessage>& messages) {
    ordered_json list = ordered_json::array();
    for (const ChatMessage& message : messages) {
        list.push_back(to_json(message));
        if (!message.ids.empty()) list.back()["ids"] = message.ids;
    }
    const std::string mark = mark_of(dump_text(list));
    return dump_text({{"ggmlx_session", 1},
                      {"tokenizer", tokenizer_mark(model)},
                      {"messages", std::move(list)},
                      {"checksum", mark}}) +
           "\n";
}

std::vector<ChatMessage> load_transcript(const Model& model, const std::string& text) {
    const auto json = ordered_json::parse(text, nullptr, false);
    const bool known = json.is_object() && json.value("ggmlx_session", ordered_json()) == 1 &&
                       has_string(json, "tokenizer") && has_string(json, "checksum") && json.contains("messages") &&
                       json["messages"].is_array();
    require(known, ErrorKind::CorruptFile, "this is no saved conversation, or a damaged one");
    require(json["tokenizer"] == tokenizer_mark(model), ErrorKind::InvalidArgument,
            "the conversation was saved with another tokenizer; load it with the model it belongs to");
    require(json["checksum"] == mark_of(dump_text(json["messages"])), ErrorKind::CorruptFile,
            "the saved conversation is damaged: its checksum does not match");
    std::vector<ChatMessage> messages;
    for (const auto& message : json["messages"]) messages.push_back(message_of(message, model));
    return messages;
}

}  // namespace llm
