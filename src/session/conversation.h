#pragma once
// Conversation: messages, and the token ids that a model goes on from. With a chat template every message is rendered
// as the model was trained to read it; without one the text so far is continued as it stands.

#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "src/chat/chat.h"
#include "src/tokenizer/tokenizer.h"

namespace llm {

struct ChatMessage {
    std::string role;  ///< "system", "user" or "assistant"
    std::string content;
    std::string reasoning;     ///< of an answer: the thoughts ahead of it
    std::vector<TokenId> ids;  ///< of an answer: as the model drew them, without the end-of-sequence token
    bool operator==(const ChatMessage&) const = default;
};

/// What an answer goes on from.
struct ChatPrompt {
    std::string text;
    std::vector<TokenId> ids;
};

/// Belongs to one thread. An answer's own ids are used again as long as the rendered text begins with the text they
/// stand for, so that a long conversation is not evaluated anew each turn.
class Conversation {
  public:
    /// format: null for a model without a chat template. variables: an object, further variables of the template
    /// ("enable_thinking": false).
    Conversation(const Tokenizer& tokenizer, std::shared_ptr<const ChatFormat> format,
                 nlohmann::ordered_json variables = nlohmann::ordered_json::object());

    bool has_template() const { return format_ != nullptr; }
    const std::vector<ChatMessage>& messages() const { return messages_; }

    /// Replaces the system prompt, or removes it if `text` is empty. Throws invalid_argument without a template, where
    /// there is no place for it.
    void set_system(const std::string& text);
    void add_user(std::string text);
    /// All messages and the start of an answer. Throws what rendering throws: a template may refuse a conversation.
    ChatPrompt prompt() const;
    /// The answer to prompt(): what was drawn (ids without the end-of-sequence token, text with the markers of
    /// thoughts) and what a reader sees of it.
    void add_answer(const ChatPrompt& prompt, std::vector<TokenId> ids, const std::string& text, std::string reasoning,
                    std::string content);
    /// Takes the last answer back. False if the conversation does not end with one.
    bool drop_answer();
    /// The last message of the user, if an answer at most came after it.
    std::optional<std::string> last_user() const;
    /// Takes it back, with its answer. False if there is none.
    bool drop_user();
    /// Forgets everything but the system prompt.
    void clear();
    /// Goes on with a saved conversation.
    void restore(std::vector<ChatMessage> messages);

  private:
    const Tokenizer& tokenizer_;
    std::shared_ptr<const ChatFormat> format_;
    nlohmann::ordered_json variables_;
    std::vector<ChatMessage> messages_;
    ChatPrompt known_;  ///< ids that were drawn or evaluated, and the text they stand for

    ChatPrompt plain_prompt() const;
    ChatPrompt rendered_prompt() const;
};

/// The messages as templates and files have them: {role, content, reasoning_content?}.
nlohmann::ordered_json to_json(const ChatMessage& message);

}  // namespace llm
