#pragma once
// The post-processor of a tokenizer.json that puts BOS and EOS around every text.

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>

namespace convert {

struct FrameToken {
    int64_t id = 0;
    std::string text;
};

/// "TemplateProcessing" with the tokens that are given; null if none is.
nlohmann::ordered_json template_json(const std::optional<FrameToken>& bos, const std::optional<FrameToken>& eos);

}  // namespace convert
