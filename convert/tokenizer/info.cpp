#include "convert/tokenizer/info.h"

#include <limits>
#include <nlohmann/json.hpp>
#include <unordered_set>

#include "ggmlx/core/error.h"

namespace convert {
namespace {

using ggmlx::ErrorKind;
using nlohmann::json;

/// The tree without the merges: they are most of the file and say nothing about ids.
json parse_without_merges(std::string_view text) {
    auto keep = [](int, json::parse_event_t event, json& value) {
        return !(event == json::parse_event_t::key && value == "merges");
    };
    try {
        return json::parse(text, keep);
    } catch (const json::exception& error) {
        ggmlx::fail(ErrorKind::CorruptFile, "tokenizer.json: {}", error.what());
    }
}

class TokenIdSet {
  public:
    void add(const std::string& token, const json& id) {
        ggmlx::require(id.is_number_integer() && id >= 0 && id <= std::numeric_limits<int32_t>::max(),
                       ErrorKind::CorruptFile, "tokenizer.json: the id of token \"{}\" is {}", token, id.dump());
        add(id.get<int64_t>());
    }
    void add(int64_t id) {
        seen_.insert(id);
        max_ = std::max(max_, id);
    }
    int64_t count() const { return static_cast<int64_t>(seen_.size()); }
    int64_t max() const { return max_; }

  private:
    std::unordered_set<int64_t> seen_;
    int64_t max_ = -1;
};

}  // namespace

TokenizerInfo tokenizer_info(std::string_view tokenizer_json) {
    const json root = parse_without_merges(tokenizer_json);
    const json* vocab = nullptr;
    if (root.is_object() && root.contains("model") && root["model"].is_object() && root["model"].contains("vocab"))
        vocab = &root["model"]["vocab"];
    ggmlx::require(vocab && (vocab->is_object() || vocab->is_array()), ErrorKind::CorruptFile,
                   "tokenizer.json has no model.vocab");
    TokenIdSet ids;
    if (vocab->is_object())
        for (const auto& [token, id] : vocab->items()) ids.add(token, id);
    else
        for (size_t id = 0; id < vocab->size(); ++id) ids.add(static_cast<int64_t>(id));
    if (auto added = root.find("added_tokens"); added != root.end() && added->is_array())
        for (const json& token : *added)
            if (token.is_object()) ids.add(token.value("content", json("")).dump(), token.value("id", json()));
    const json& type = root["model"].value("type", json());
    return {type.is_string() ? type.get<std::string>() : "", ids.count(), ids.max()};
}

}  // namespace convert
