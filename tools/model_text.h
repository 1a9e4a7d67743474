#pragma once
// What a model is, in a few words: for inspect and plan.

#include <nlohmann/json.hpp>
#include <string>

#include "src/config.h"

namespace cli {

/// "qwen3_moe: 48 layers, 2048 wide; 32 heads of 128, 4 for keys and values"
std::string describe_model(const llm::ModelConfig& config);
/// "128 of 768 wide, 8 for each token, in 48 of 48 layers"; empty for a dense model.
std::string describe_experts(const llm::ModelConfig& config);
/// "30,532,122,624, of which 3,041,867,776 work on each token"; the second number for mixtures only.
std::string describe_parameters(const llm::ModelConfig& config);

/// The sizes of a config by name, and those of its experts if there are any.
nlohmann::ordered_json model_json(const llm::ModelConfig& config);

}  // namespace cli
