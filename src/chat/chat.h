#pragma once
// From a conversation to a prompt: which template a model brings, what it is given, and how messages are put in order
// first. As transformers' apply_chat_template does it; the differences are listed in README.md.

#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "src/chat/template.h"

namespace llm {

/// The texts of a checkpoint's files; empty: there is no such file.
struct ChatFiles {
    std::string tokenizer_config = {};    ///< tokenizer_config.json
    std::string chat_template = {};       ///< chat_template.jinja
    std::string chat_template_json = {};  ///< chat_template.json: {"chat_template": …}
    std::string special_tokens_map = {};  ///< special_tokens_map.json, where tokenizer_config.json names no tokens
};

/// A conversation as an API or a file gives it.
struct ChatRequest {
    nlohmann::ordered_json messages;   ///< array of {role, content, …}
    nlohmann::ordered_json tools;      ///< array, or null: none
    nlohmann::ordered_json documents;  ///< array, or null: none
    bool add_generation_prompt = true;
    bool continue_final_message = false;                                  ///< leave the last message open
    nlohmann::ordered_json variables = nlohmann::ordered_json::object();  ///< more variables (enable_thinking …)
    std::string template_name;  ///< empty: tool_use if there are tools, else default
};

/// Immutable; prompts may be made from any thread.
class ChatFormat {
  public:
    /// name: for messages (the model's path). Throws unsupported if there is no template, corrupt_file for broken files
    /// and templates.
    static ChatFormat from_files(const ChatFiles& files, const std::string& name);
    /// One template, with these special tokens ({"bos_token": "<s>", …}).
    static ChatFormat from_template(std::string_view source, const std::string& name,
                                    nlohmann::ordered_json special_tokens = nlohmann::ordered_json::object());

    /// Throws invalid_argument for a request that is wrong (naming the message) and for what the template refuses.
    Prompt prompt(const ChatRequest& request, const RenderOptions& options = {}) const;

    /// The template that a request gets. Throws invalid_argument if there is none of the name asked for.
    const ChatTemplate& chosen(const ChatRequest& request) const;
    std::vector<std::string> template_names() const;
    /// bos_token, eos_token … as templates see them.
    const nlohmann::ordered_json& special_tokens() const { return special_tokens_; }

  private:
    std::vector<std::pair<std::string, ChatTemplate>> templates_;
    nlohmann::ordered_json special_tokens_;
};

/// True if there is anything to make a ChatFormat of.
bool has_chat_template(const ChatFiles& files);

}  // namespace llm
