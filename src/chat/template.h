#pragma once
// Chat templates: the Jinja that models bring with them, rendered as Hugging Face transformers renders it (jinja2's
// immutable sandbox with trim_blocks, lstrip_blocks, loop controls, `{% generation %}`, raise_exception, strftime_now
// and tojson as json.dumps prints it). See README.md for what is left out.

#include <cstddef>
#include <ctime>
#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <string_view>

#include "src/chat/prompt.h"

namespace llm {

/// What one rendering may use; more is an error.
struct RenderLimits {
    size_t max_steps = 50'000'000;          ///< operations, and bytes worked on
    size_t max_memory = size_t{256} << 20;  ///< bytes of values that are alive
    size_t max_output = size_t{64} << 20;   ///< bytes of the prompt
    size_t max_depth = 800;                 ///< of expressions, calls and values within each other
};

struct RenderOptions {
    std::optional<std::tm> now;  ///< for strftime_now; the local time if it is not given
    /// list.append, list.pop and the like work instead of being errors. Transformers refuses them; some templates that
    /// were edited for other engines need them.
    bool mutable_lists = false;
    RenderLimits limits;
};

/// Immutable; render may be called from any thread.
class ChatTemplate {
  public:
    /// name: for messages. Throws corrupt_file for a syntax error and unsupported for what is left out, with name and
    /// line.
    static ChatTemplate parse(std::string_view source, std::string name);

    /// variables: an object. Strings in it have Origin::Input, except those of `trusted` (also an object, whose
    /// variables win), which count as the template's own: special tokens. Strings in messages of the role "assistant"
    /// have Origin::Assistant; the messages are the elements of the variable `messages`.
    /// Throws invalid_argument, with the template's name, the line and a message: what raise_exception said, a wrong
    /// use of a value, or an exceeded limit.
    Prompt render(const nlohmann::ordered_json& variables, const nlohmann::ordered_json& trusted,
                  const RenderOptions& options = {}) const;
    Prompt render(const nlohmann::ordered_json& variables, const RenderOptions& options = {}) const;

    const std::string& name() const;
    const std::string& source() const;

  private:
    struct Parsed;
    explicit ChatTemplate(std::shared_ptr<const Parsed> parsed) : parsed_(std::move(parsed)) {}
    std::shared_ptr<const Parsed> parsed_;
};

}  // namespace llm
