#include "src/chat/continue_message.h"

#include <nlohmann/json.hpp>
#include <string_view>

#include "ggmlx/core/error.h"
#include "src/chat/characters.h"

namespace llm {
namespace {

using ggmlx::ErrorKind;
using ggmlx::require;
using nlohmann::ordered_json;

/// The one that transformers uses, so that templates see the same.
constexpr std::string_view kMark = "CONTINUE_FINAL_MESSAGE_TAG ";

std::string_view trimmed(std::string_view text) {
    const size_t begin = jinja::skip_space(text, 0, text.size());
    return text.substr(begin, jinja::skip_space_back(text, begin, text.size()) - begin);
}

void cut(Prompt& prompt, size_t size) {
    prompt.text.resize(size);
    while (!prompt.runs.empty() && prompt.runs.back().end > size) {
        const bool inside = prompt.runs.size() == 1 || prompt.runs[prompt.runs.size() - 2].end < size;
        if (inside && size > 0) {
            prompt.runs.back().end = size;
            break;
        }
        prompt.runs.pop_back();
    }
}

}  // namespace

std::string mark_final_message(ordered_json& messages) {
    ordered_json& message = messages.back();
    const auto content = message.find("content");
    ordered_json* text = nullptr;
    if (content != message.end() && content->is_string()) text = &*content;
    if (content != message.end() && content->is_array())
        for (ordered_json& part : *content)
            if (part.is_object() && part.contains("text")) text = &part["text"];
    require(text && text->is_string(), ErrorKind::InvalidArgument,
            "continue_final_message: the last message has no text to continue");
    const auto original = text->get<std::string>();
    *text = original + std::string(kMark);
    return original;
}

Prompt cut_at_mark(Prompt prompt, const std::string& text) {
    const std::string_view mark = trimmed(kMark);
    const size_t at = prompt.text.rfind(mark);
    require(at != std::string::npos && prompt.text.find(trimmed(text)) != std::string::npos, ErrorKind::InvalidArgument,
            "continue_final_message: the last message does not appear in the prompt; the template leaves it out or "
            "changes it");
    const bool keeps_space = std::string_view(prompt.text).substr(at, kMark.size()) == kMark;
    cut(prompt, keeps_space ? at : jinja::skip_space_back(prompt.text, 0, at));
    return prompt;
}

}  // namespace llm
