#pragma once
// The table "type, tensors, bytes, percent" of a model, as text and as JSON.

#include <nlohmann/json_fwd.hpp>
#include <string>

#include "convert/type_totals.h"

namespace cli {

std::string type_table(const convert::TypeSummary& summary);
/// [{"type": "q8_0", "tensors": 36, "values": 260000, "bytes": 276250}, …]
nlohmann::ordered_json type_table_json(const convert::TypeSummary& summary);

/// 1234567 -> "1,234,567"
std::string with_thousands(int64_t n);

}  // namespace cli
