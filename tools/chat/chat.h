#pragma once
// The conversation of `ggmlx chat`: messages in, answers out as they come, and what "/" commands do.

#include <functional>
#include <optional>
#include <string>
#include <utility>

#include "src/chat/reasoning.h"
#include "src/session/conversation.h"
#include "src/session/generate.h"
#include "tools/chat/settings.h"
#include "tools/chat/terminal.h"
#include "tools/interrupt.h"

namespace cli {

class Chat {
  public:
    /// markers: nothing to show answers as the model wrote them, thoughts and all.
    Chat(const llm::Model& model, llm::Engine& engine, llm::Conversation conversation, ChatSettings settings,
         std::optional<llm::ReasoningMarkers> markers, const Style& style, bool quiet);

    /// Answers one message. If that fails the conversation stays as it was.
    void say(const std::string& text);

    enum class Next { Read, Leave };
    /// Does what a line that begins with "/" asks for.
    Next command(const std::string& line);
    /// After /edit: the message that the next line begins with, to be edited. Else empty. Forgets it.
    std::string take_edit() { return std::exchange(edit_, {}); }

    Interrupt& interrupt() { return interrupt_; }

  private:
    const llm::Model& model_;
    llm::Session session_;
    llm::Conversation conversation_;
    ChatSettings settings_;
    std::optional<llm::ReasoningMarkers> markers_;
    const Style& style_;
    bool quiet_;
    Interrupt interrupt_;
    llm::Timings last_;
    std::string edit_;
    bool replace_last_ = false;  ///< the next message takes the last one's place

    /// Changes the conversation, or leaves it as it was and throws.
    void attempt(const std::function<void()>& change);
    void answer();
    void show(const llm::ChatMessage& message) const;
    void regenerate();
    void edit(const std::string& text);
    void set(const std::string& argument);
    void set_system(const std::string& text);
    void save(const std::string& path) const;
    void load(const std::string& path);
    void count_tokens() const;
};

/// What /help prints.
extern const char* const kChatHelp;

}  // namespace cli
