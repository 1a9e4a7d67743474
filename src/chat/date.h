#pragma once
// The day that strftime_now tells a template.

#include <ctime>
#include <string_view>

namespace llm {

/// "2026-01-15" as the beginning of that day. Throws invalid_argument for anything else.
std::tm parse_date(std::string_view text);

}  // namespace llm
