#pragma once
// What /set changes while a conversation goes on.

#include <string>
#include <string_view>

#include "src/session/generate.h"

namespace cli {

struct ChatSettings {
    llm::GenerateOptions generate;
    bool show_timings = false;
};

/// Sets one by its name, as the flag of that name does ("temp", "top-k", "timings" …). Throws UsageError for an unknown
/// name or a value that is none, invalid_argument for one that makes no sense; then nothing has changed.
void change_setting(ChatSettings& settings, std::string_view name, const std::string& value);

/// All names with their values, a line each.
std::string list_settings(const ChatSettings& settings);

}  // namespace cli
