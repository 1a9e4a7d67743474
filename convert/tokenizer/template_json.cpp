#include "convert/tokenizer/template_json.h"

#include <nlohmann/json.hpp>

namespace convert {
namespace {

using nlohmann::ordered_json;

/// Appends the parts for one text, called A or B.
void append_framed(const char* sequence, int type_id, const std::optional<FrameToken>& bos,
                   const std::optional<FrameToken>& eos, ordered_json& parts) {
    const auto special = [&](const std::optional<FrameToken>& token) {
        if (token) parts.push_back({{"SpecialToken", {{"id", token->text}, {"type_id", type_id}}}});
    };
    special(bos);
    parts.push_back({{"Sequence", {{"id", sequence}, {"type_id", type_id}}}});
    special(eos);
}

}  // namespace

ordered_json template_json(const std::optional<FrameToken>& bos, const std::optional<FrameToken>& eos) {
    if (!bos && !eos) return nullptr;
    ordered_json single = ordered_json::array(), pair = ordered_json::array(), tokens = ordered_json::object();
    append_framed("A", 0, bos, eos, single);
    append_framed("A", 0, bos, eos, pair);
    append_framed("B", 1, bos, eos, pair);
    for (const auto* token : {&bos, &eos})
        if (*token)
            tokens[(*token)->text] = {{"id", (*token)->text}, {"ids", {(*token)->id}}, {"tokens", {(*token)->text}}};
    return {{"type", "TemplateProcessing"},
            {"single", std::move(single)},
            {"pair", std::move(pair)},
            {"special_tokens", std::move(tokens)}};
}

}  // namespace convert
