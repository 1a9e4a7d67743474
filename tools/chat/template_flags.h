#pragma once
// Flags that say how messages become a prompt.

#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>

#include "src/chat/chat.h"
#include "src/chat/reasoning.h"
#include "src/model.h"
#include "tools/args.h"

namespace cli {

struct TemplateFlags {
    std::string text, file, variables, reasoning_format = "auto", reasoning_effort;
    std::optional<int64_t> reasoning_budget;
    bool none = false;

    void add_to(Args& args);
    /// The template of the flags, else the model's; null if there is none or --no-conversation was given.
    std::shared_ptr<const llm::ChatFormat> format(const llm::Model& model) const;
    /// Variables for the template. Throws UsageError if --chat-template-kwargs is no JSON object.
    nlohmann::ordered_json template_variables() const;
    /// Nothing if thoughts are to be shown as the model wrote them.
    std::optional<llm::ReasoningMarkers> markers(const llm::ChatFormat* format) const;
};

}  // namespace cli
