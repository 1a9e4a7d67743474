#pragma once
// Results as commands print them: JSON, and timings.

#include <nlohmann/json.hpp>
#include <string>

#include "src/session/generate.h"

namespace cli {

/// One line; bytes that are no UTF-8 become U+FFFD, since a token may end inside a character.
std::string json_line(const nlohmann::ordered_json& value);
nlohmann::ordered_json to_json(const llm::Timings& timings);
/// The same for people: "prompt 12 tokens in 34 ms (353/s), 100 tokens in 210 ms (476/s)".
std::string timing_line(const llm::Timings& timings);

}  // namespace cli
