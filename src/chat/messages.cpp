#include "src/chat/messages.h"

#include <array>
#include <optional>

#include "ggmlx/core/error.h"

namespace llm {
namespace {

using ggmlx::ErrorKind;
using ggmlx::require;
using nlohmann::ordered_json;

bool has_tool_calls(const ordered_json& message) {
    const auto calls = message.find("tool_calls");
    return calls != message.end() && calls->is_array() && !calls->empty();
}

/// Text parts only; a plain string is one, too.
void check_parts(const ordered_json& parts, size_t i) {
    for (size_t k = 0; k < parts.size(); ++k) {
        const ordered_json& part = parts[k];
        if (part.is_string()) continue;
        const auto type = part.is_object() ? part.find("type") : part.end();
        require(part.is_object() && type != part.end() && type->is_string(), ErrorKind::InvalidArgument,
                "messages[{}].content[{}] is no content part: it needs a \"type\"", i, k);
        require(*type == "text", ErrorKind::InvalidArgument,
                "messages[{}].content[{}] has the type \"{}\"; only \"text\" is supported", i, k,
                type->get_ref<const std::string&>());
        const auto text = part.find("text");
        require(text != part.end() && text->is_string(), ErrorKind::InvalidArgument,
                "messages[{}].content[{}] has no \"text\"", i, k);
    }
}

std::string joined(const ordered_json& parts) {
    std::string text;
    for (const ordered_json& part : parts)
        text += (part.is_string() ? part : part["text"]).get_ref<const std::string&>();
    return text;
}

/// A conversation whose last message has the role asked for.
ordered_json probe(const std::string& role, ordered_json content) {
    const ordered_json user = {{"role", "user"}, {"content", "question"}};
    ordered_json message = {{"role", role}, {"content", std::move(content)}};
    if (role == "system" || role == "developer") return ordered_json::array({message, user});
    if (role == "assistant") return ordered_json::array({user, message});
    if (role != "tool") return ordered_json::array({message});
    const ordered_json call = {{"id", "call00001"},
                               {"type", "function"},
                               {"function", {{"name", "f"}, {"arguments", ordered_json::object()}}}};
    message["tool_call_id"] = "call00001";
    message["name"] = "f";
    return ordered_json::array(
        {user, {{"role", "assistant"}, {"content", ""}, {"tool_calls", ordered_json::array({call})}}, message});
}

std::optional<std::string> rendered(const ChatTemplate& chat_template, ordered_json messages,
                                    const ordered_json& special_tokens) {
    const ordered_json variables = {{"messages", std::move(messages)},
                                    {"tools", nullptr},
                                    {"documents", nullptr},
                                    {"add_generation_prompt", false}};
    try {
        return chat_template.render(variables, special_tokens).text;
    } catch (const ggmlx::Error&) {
        return std::nullopt;
    }
}

class Normalizer {
  public:
    Normalizer(const ChatTemplate& chat_template, const ordered_json& special_tokens)
        : template_(chat_template), special_tokens_(special_tokens) {}

    ordered_json message(const ordered_json& given, size_t i);

  private:
    const ChatTemplate& template_;
    const ordered_json& special_tokens_;
    std::vector<std::pair<std::string, bool>> takes_parts_;  // by role
    std::optional<bool> takes_argument_text_;

    bool takes_parts(const std::string& role);
    bool takes_argument_text();
    void content(ordered_json& message, size_t i);
    void reasoning(ordered_json& message) const;
    void arguments(ordered_json& message);
};

/// True if the template makes the same of a text and of a list with that text.
bool Normalizer::takes_parts(const std::string& role) {
    for (const auto& [known, takes] : takes_parts_)
        if (known == role) return takes;
    const ordered_json part = {{"type", "text"}, {"text", "answer"}};
    const auto as_text = rendered(template_, probe(role, "answer"), special_tokens_);
    const auto as_parts = rendered(template_, probe(role, ordered_json::array({part})), special_tokens_);
    takes_parts_.emplace_back(role, as_text && as_text == as_parts);
    return takes_parts_.back().second;
}

/// True if the template can take the arguments of a tool call as JSON text: it neither fails nor quotes the text once
/// more. Templates that look at what arguments are do both well.
bool Normalizer::takes_argument_text() {
    if (!takes_argument_text_) {
        ordered_json messages = probe("tool", "answer");
        messages[1]["tool_calls"][0]["function"]["arguments"] = R"({"probed": "value"})";
        const auto text = rendered(template_, messages, special_tokens_);
        takes_argument_text_ = text && text->find("\"probed\"") != std::string::npos;
    }
    return *takes_argument_text_;
}

void Normalizer::content(ordered_json& message, size_t i) {
    auto found = message.find("content");
    // What an assistant says beside its tool calls may be null, missing, "" or []: all mean nothing.
    const bool nothing = found == message.end() || (found->is_array() && found->empty());
    if (nothing && has_tool_calls(message)) {
        message["content"] = "";
        return;
    }
    if (found == message.end()) return;
    require(found->is_string() || found->is_array(), ErrorKind::InvalidArgument,
            "messages[{}].content must be a text or a list of parts", i);
    if (!found->is_array()) return;
    check_parts(*found, i);
    if (!takes_parts(message["role"].get<std::string>())) *found = joined(*found);
}

/// Older names of reasoning_content are filled from each other.
void Normalizer::reasoning(ordered_json& message) const {
    for (const char* name : {"reasoning_content", "thinking", "reasoning"}) {
        const auto found = message.find(name);
        if (found == message.end()) continue;
        const ordered_json value = *found;
        if (!message.contains("thinking")) message["thinking"] = value;
        message["reasoning_content"] = value;
        return;
    }
}

void Normalizer::arguments(ordered_json& message) {
    if (!has_tool_calls(message)) return;
    for (ordered_json& call : message["tool_calls"]) {
        if (!call.is_object()) continue;
        ordered_json& function = call.contains("function") ? call["function"] : call;
        const auto found = function.is_object() ? function.find("arguments") : function.end();
        if (!function.is_object() || found == function.end() || !found->is_string()) continue;
        if (takes_argument_text()) continue;
        ordered_json parsed = ordered_json::parse(found->get_ref<const std::string&>(), nullptr, false);
        if (parsed.is_object()) *found = std::move(parsed);
    }
}

ordered_json Normalizer::message(const ordered_json& given, size_t i) {
    require(given.is_object(), ErrorKind::InvalidArgument, "messages[{}] is no object", i);
    const auto role = given.find("role");
    require(role != given.end() && role->is_string(), ErrorKind::InvalidArgument, "messages[{}] has no \"role\"", i);
    ordered_json message = ordered_json::object();
    for (const auto& [key, value] : given.items())
        if (!value.is_null()) message[key] = value;
    content(message, i);
    reasoning(message);
    arguments(message);
    return message;
}

}  // namespace

ordered_json normalize_messages(const ordered_json& messages, const ChatTemplate& chat_template,
                                const ordered_json& special_tokens) {
    require(messages.is_array() && !messages.empty(), ErrorKind::InvalidArgument,
            "\"messages\" must be a list with at least one message");
    Normalizer normalizer(chat_template, special_tokens);
    ordered_json result = ordered_json::array();
    for (size_t i = 0; i < messages.size(); ++i) result.push_back(normalizer.message(messages[i], i));
    return result;
}

}  // namespace llm
