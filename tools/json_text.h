#pragma once
// JSON as commands print it.

#include <nlohmann/json.hpp>
#include <string>

#include "src/session/generate.h"

namespace cli {

/// One line; bytes that are no UTF-8 become U+FFFD, since a token may end inside a character.
std::string json_line(const nlohmann::ordered_json& value);
nlohmann::ordered_json to_json(const llm::Timings& timings);

}  // namespace cli
