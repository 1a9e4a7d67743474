#pragma once
// Added tokens of a checkpoint that has no tokenizer.json: they stand in tokenizer_config.json ("added_tokens_decoder")
// or in the older added_tokens.json.

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>
#include <vector>

namespace convert {

/// One entry of tokenizer.json's "added_tokens"; what the flags mean is told there.
struct AddedTokenSpec {
    int64_t id = -1;
    std::string content;
    bool special = false, lstrip = false, rstrip = false, single_word = false, normalized = false;
};

/// Either text may be empty; what tokenizer_config.json says about an id wins. Ordered by id. Throws corrupt_file for
/// malformed JSON and for ids that are no numbers.
std::vector<AddedTokenSpec> added_tokens_of(std::string_view tokenizer_config_json, std::string_view added_tokens_json);

/// "added_tokens" of a tokenizer.json.
nlohmann::ordered_json added_tokens_json(const std::vector<AddedTokenSpec>& tokens);

/// A document that must be a JSON object, null if the text is empty. Throws corrupt_file.
nlohmann::json parse_object(std::string_view text, std::string_view name);

}  // namespace convert
