#include "src/session/conversation.h"

#include <utility>

#include "ggmlx/core/error.h"
#include "src/chat/encode.h"

namespace llm {

nlohmann::ordered_json to_json(const ChatMessage& message) {
    nlohmann::ordered_json value = {{"role", message.role}, {"content", message.content}};
    if (!message.reasoning.empty()) value["reasoning_content"] = message.reasoning;
    return value;
}

Conversation::Conversation(const Tokenizer& tokenizer, std::shared_ptr<const ChatFormat> format,
                           nlohmann::ordered_json variables)
    : tokenizer_(tokenizer), format_(std::move(format)), variables_(std::move(variables)) {}

void Conversation::set_system(const std::string& text) {
    ggmlx::require(has_template() || text.empty(), ggmlx::ErrorKind::InvalidArgument,
                   "the model has no chat template, so there is no place for a system prompt; give one with "
                   "--chat-template-file");
    if (!messages_.empty() && messages_.front().role == "system") messages_.erase(messages_.begin());
    if (!text.empty()) messages_.insert(messages_.begin(), {"system", text, "", {}});
}

void Conversation::add_user(std::string text) { messages_.push_back({"user", std::move(text), "", {}}); }

ChatPrompt Conversation::prompt() const { return has_template() ? rendered_prompt() : plain_prompt(); }

ChatPrompt Conversation::plain_prompt() const {
    ChatPrompt prompt;
    for (const ChatMessage& message : messages_) {
        prompt.text += message.content;
        const bool first = prompt.ids.empty();
        const std::vector<TokenId> ids =
            message.ids.empty() ? tokenizer_.encode(message.content, {.add_special = first, .parse_special = false})
                                : message.ids;
        prompt.ids.insert(prompt.ids.end(), ids.begin(), ids.end());
    }
    return prompt;
}

ChatPrompt Conversation::rendered_prompt() const {
    nlohmann::ordered_json messages = nlohmann::ordered_json::array();
    for (const ChatMessage& message : messages_) messages.push_back(to_json(message));
    ChatRequest request;
    request.messages = std::move(messages);
    request.variables = variables_;
    const Prompt rendered = format_->prompt(request);
    const bool goes_on = !known_.ids.empty() && rendered.text.starts_with(known_.text);
    ChatPrompt prompt{rendered.text, goes_on ? known_.ids : std::vector<TokenId>()};
    const std::vector<TokenId> ids = encode(tokenizer_, rendered, goes_on ? known_.text.size() : 0);
    prompt.ids.insert(prompt.ids.end(), ids.begin(), ids.end());
    return prompt;
}

void Conversation::add_answer(const ChatPrompt& prompt, std::vector<TokenId> ids, const std::string& text,
                              std::string reasoning, std::string content) {
    known_ = prompt;
    known_.text += text;
    known_.ids.insert(known_.ids.end(), ids.begin(), ids.end());
    messages_.push_back({"assistant", std::move(content), std::move(reasoning), std::move(ids)});
}

bool Conversation::drop_answer() {
    if (messages_.empty() || messages_.back().role != "assistant") return false;
    messages_.pop_back();
    return true;
}

std::optional<std::string> Conversation::last_user() const {
    size_t n = messages_.size();
    if (n > 0 && messages_[n - 1].role == "assistant") --n;
    if (n == 0 || messages_[n - 1].role != "user") return std::nullopt;
    return messages_[n - 1].content;
}

bool Conversation::drop_user() {
    if (!last_user()) return false;
    drop_answer();
    messages_.pop_back();
    return true;
}

void Conversation::clear() {
    const bool has_system = !messages_.empty() && messages_.front().role == "system";
    messages_.resize(has_system ? 1 : 0);
    known_ = {};
}

void Conversation::restore(std::vector<ChatMessage> messages) {
    messages_ = std::move(messages);
    known_ = {};
}

}  // namespace llm
